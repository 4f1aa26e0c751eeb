"""A grid of runs behind a progress bar."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from bara import datasets
from bara.errors import DatasetError, InterruptionError
from bara.reports.result import Result
from bara.reports.terminal import per_cent
from bara.runs.progress import Wanted, counting
from bara.studies.cluster import connected
from bara.studies.grid import Cell, Failure, in_order, label, outcomes, unfinished
from bara.text import counted

_CLEARED_UP = "ignore:resource_tracker"


def run_grid(
    grid: Sequence[Cell],
    folder: Path | None = None,
    jobs: int = -1,
    cluster: str | None = None,
    *,
    progress: Wanted = None,
) -> tuple[list[Result], list[Failure]]:
    """Run a grid, and show how far it is; what came of it, in the grid's order.

    Raises:
        DatasetError: If data is missing on this machine, where the runs would look for it.
        InterruptionError: After Ctrl-C; `so_far` holds what would have been returned.
    """
    # joblib restarts a worker whose memory has grown, as it does with another dataset, and warns of
    # it.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    # After Ctrl-C, what clears up behind the workers may find it done, and warns of that in a
    # process of its own.
    if _CLEARED_UP not in sys.warnoptions:
        sys.warnoptions.append(_CLEARED_UP)
    if cluster is None:
        _require_data(grid if folder is None else unfinished(grid, folder))
    done: list[Result | Failure] = []
    try:
        with connected(cluster) as backend, counting(len(grid), progress=progress) as tell:
            for outcome in outcomes(grid, folder=folder, jobs=jobs, backend=backend):
                done.append(outcome)
                end = (
                    outcome.error
                    if isinstance(outcome, Failure)
                    else per_cent(outcome.accuracy_final)
                )
                tell(f"{label(outcome)}: {end}")
    except KeyboardInterrupt:
        kept = (
            "nothing is kept without a folder"
            if folder is None
            else f"kept in {folder}; run the same again to go on"
        )
        stopped = InterruptionError(
            f"stopped after {len(done)} of {counted(len(grid), 'run')}: {kept}"
        )
        stopped.so_far = in_order(grid, done)
        raise stopped from None
    return in_order(grid, done)


def _require_data(grid: Sequence[Cell]) -> None:
    """Say once what is missing, before the first run: each run would say it again."""
    trained = [cell.config.data for cell in grid if cell.config.federation.engine == "simulator"]
    missing: list[DatasetError] = []
    for name, path in dict.fromkeys(
        (data.name, data.path) for data in trained if data.part is None
    ):
        try:
            datasets.require(name, path)
        except DatasetError as error:
            missing.append(error)
    if missing:
        raise missing[0] if len(missing) == 1 else DatasetError("; ".join(map(str, missing)))
