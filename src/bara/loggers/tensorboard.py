"""Rounds as TensorBoard's scalars: `bara run --log tensorboard:DIR`, then `tensorboard --logdir DIR`."""

from pathlib import Path
from typing import final

from tensorboard.summary import Writer

from bara.loggers import metrics
from bara.records import RoundRecord


@final
class TensorBoardLogger:
    """Writes a run's event files; a resumed run goes on in the same folder.

    Args:
        place: TensorBoard's folder, which holds one for each run.
        run: The run's name.
    """

    def __init__(self, place: str, run: str) -> None:
        self._writer = Writer(str(Path(place) / run))

    def log(self, record: RoundRecord) -> None:
        """Every number of the round, on disk at once so that it can be watched."""
        for name, value in metrics(record).items():
            self._writer.add_scalar(name, value, record.round)
        self._writer.flush()

    def close(self, *, finished: bool) -> None:  # noqa: ARG002 - TensorBoard knows no end
        """Close the event file."""
        self._writer.close()
