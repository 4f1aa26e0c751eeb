"""What a run or a comparison left behind, as results again."""

from dataclasses import replace
from pathlib import Path

from bara.errors import ConfigError
from bara.experiments.stored_results import result_of
from bara.reports.comparison import Comparison, Kept
from bara.reports.result import Result
from bara.runs.database import DatabaseRun, find_run


def open(place: str | Path, *, run: str | None = None) -> Result | Comparison:  # noqa: A001 - bara.open
    """A run or a comparison, from its folder or from the database that holds its books; nothing is changed there.

    A run that has not ended is opened as far as it is. Of a database, accuracies are those of the
    final model: models that were kept beside it are in the folder.

    Args:
        place: A run's folder, the folder of a comparison, a ledger's file, or a database's URL.
        run: Which run of a database.
    """
    path = Path(place)
    if "://" not in str(place):
        if Kept.is_in(path):
            return Comparison.open(path)
        if not path.exists():
            raise ConfigError(f"there is no run and no comparison in {str(path)!r}")
        place = f"sqlite:///{path.resolve()}" if path.is_file() else place
    with find_run(str(place), run) as found:
        if isinstance(found, DatabaseRun):
            return result_of(found.read_books())
        if (path / "result.json").is_file():
            return found.result()
        return replace(result_of(found.read_books()), folder=path)
