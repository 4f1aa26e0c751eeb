"""The TensorBoard logger: `bara run --log tensorboard:DIR`, then `tensorboard --logdir DIR`."""

from pathlib import Path
from typing import final

from tensorboard.summary import Writer

from bara.loggers import metrics
from bara.records import RoundRecord


@final
class TensorBoardLogger:
    """A logger to TensorBoard's event files; a resumed run goes on in the same folder.

    Args:
        place: TensorBoard's log folder, which has a subfolder for each run.
        run: The run's name.
    """

    def __init__(self, place: str, run: str) -> None:
        self._writer = Writer(str(Path(place) / run))

    def log(self, record: RoundRecord) -> None:
        """Log all numbers of a round, written to disk at once so that they can be watched."""
        for name, value in metrics(record).items():
            self._writer.add_scalar(name, value, record.round)
        self._writer.flush()

    def close(self, *, finished: bool) -> None:  # noqa: ARG002 - event files have no end
        """Close the event file."""
        self._writer.close()
