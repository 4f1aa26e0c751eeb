"""One federation under a budget, from its beginning or from where it stopped."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bara.errors import BaraError, ConfigError, RunStoppedError, TrainingError, WaitingError
from bara.loggers import Loggers
from bara.reports.html import run_report
from bara.reports.result import Result
from bara.runs import play as runs
from bara.runs.config import Config, Source
from bara.runs.factory import assemble, check_engine
from bara.runs.folder import RunFolder
from bara.runs.play import Interruption, Observer
from bara.runs.progress import Wanted, attending, watching
from bara.server.metrics import metric_title
from bara.text import counted


def run(
    source: Source = None,
    /,
    *,
    out: str | Path | bool | None = None,
    log: Sequence[str] = (),
    observe: Observer | None = None,
    progress: Wanted = None,
    **keys: Any,
) -> Result:
    """Train one federation under a budget.

    Args:
        source: The experiment: a TOML file, a preset by its name, a mapping, a `Config`, or None
            for the defaults.
        out: The folder to leave books, models, result and report in, from which it can be resumed;
            True for a new one below `runs/`, None to keep nothing.
        log: Loggers, as in `tensorboard:DIR` or `mlflow:URI`; they need a folder.
        observe: Shown each round as awarded and as settled, after it is in the books.
        progress: Whether to show how far it is; None for where somebody watches, a terminal or a
            notebook.
        **keys: Changes to the experiment: a table (`budget={"max_rounds": 50}`) or the main key of
            one (`budget=600`, `allocator=MyAllocator`, `data="mnist"`).

    Raises:
        InterruptionError: After Ctrl-C; the round is finished first, and `so_far` holds what was
            played.
    """
    config = Config.load(source, **keys)
    if out is None or out is False:
        if log:
            raise ConfigError("loggers write into the run's folder; give one: out=...")
        return _play(config, None, log, observe, progress)
    with RunFolder.new(None if out is True else Path(out), config) as folder, _hinted(folder):
        return _play(folder.config, folder, log, observe, progress)


def resume(
    folder: str | Path,
    *,
    log: Sequence[str] = (),
    observe: Observer | None = None,
    progress: Wanted = None,
    **parts: Any,
) -> Result:
    """Go on where a run stopped, to the same result as if it had not.

    Args:
        folder: The run's.
        log: As for `run`.
        observe: As for `run`.
        progress: As for `run`.
        **parts: What was an object when the run began, which its books only name:
            `allocator=MyAllocator()`; likewise `mechanism`, `federation`, `data`, and by key
            `training={"model": MyModel}`.
    """
    with RunFolder.find(Path(folder)) as found:
        found.config = found.config.with_parts(**parts)
        check_engine(found.config)
        found.claim_books()  # first of all: another process may have the run, or the record not be whole
        with _hinted(found):
            return _play(found.config, found, log, observe, progress)


def _play(
    config: Config,
    folder: RunFolder | None,
    log: Sequence[str],
    observe: Observer | None,
    progress: Wanted,
) -> Result:
    """Play a run to its end, or until it is stopped between rounds."""
    size = counted(config.clients.count, "client")
    title = f"{config.dataset}, {size}, {config.allocator.label} on {config.mechanism.label}"
    place = None if folder is None else folder.path
    watched = watching(
        title, config.purse(), progress=progress, measure=metric_title(config.metric)
    )
    with Interruption() as interruption, watched as watch:
        observers = [watch, *([observe] if observe else []), interruption.observe]
        session = assemble(config, place)  # what cannot be run leaves nothing behind
        with (
            contextlib.nullcontext()
            if place is None
            else Loggers(log, place, config.model_dump(mode="json")) as to
        ):
            observers += [to.observe] if to else []
            observers += [attending(folder.address)] if folder else []
            result = runs.run(config, *observers, folder=folder, session=session)
    if folder is None:
        return result
    return folder.finish(result, run_report(result, config.to_toml(), folder.command))


@contextlib.contextmanager
def _hinted(folder: RunFolder) -> Iterator[None]:
    """An error that the run itself is not to blame for says how to go on, once there is something to go on with."""
    try:
        yield
    except RunStoppedError as stopped:
        then = "then go" if isinstance(stopped, WaitingError) else "the books are closed; go"
        told = type(stopped)(f"{stopped}; {then} on with: {folder.resume_command}")
        told.so_far = stopped.so_far
        raise told from None
    except (Exception, KeyboardInterrupt) as error:
        passes = not isinstance(error, BaraError) or isinstance(error, TrainingError)
        if (passes or isinstance(error.__cause__, OSError)) and (
            folder.path / "config.toml"
        ).exists():
            error.add_note(f"the books are whole; go on with: {folder.resume_command}")
        raise
