"""The verbs `run` and `resume`: one federation under a budget, from its beginning or from where it stopped."""

import contextlib
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Folder
from bara.cli.output import errors, print_json, say, show
from bara.errors import BaraError, RunStoppedError, TrainingError
from bara.text import note

if TYPE_CHECKING:
    from bara.experiments.run_folder import RunFolder

Logs = Annotated[
    list[str], typer.Option("--log", metavar="LOGGER[:PLACE]", help="tensorboard:DIR or mlflow:URI; may be repeated.")
]


def run_command(
    config: ConfigFile = None,
    changes: Changes = [],
    out: Annotated[Path | None, typer.Option(help="The run's folder; a new one below runs/ unless given.")] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the whole configuration; run nothing.")
    ] = False,
    logs: Logs = [],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train one federation under a budget, and leave a folder with what happened."""
    with errors(debug):
        from bara.experiments.config import Config
        from bara.experiments.run_folder import RunFolder

        experiment = Config.load(config, changes)
        if show_config:
            say(experiment.to_toml(), nl=False)
            return
        if experiment.federation.engine == "synthetic" and find_spec("torch") is None:
            note("no torch here: a synthetic learning curve trains instead (pip install 'bara-fl[sim]')")
        with RunFolder.new(out, experiment) as folder, _hinted(folder):
            _play(folder, logs, as_json)


def resume_command(folder: Folder, logs: Logs = [], as_json: AsJson = False, debug: Debug = False) -> None:
    """Go on where a run stopped, to the same result as if it had not."""
    with errors(debug):
        from bara.experiments.run_folder import RunFolder

        with RunFolder.find(folder) as found:
            found.claim_books()  # first of all: another process may have the run, or the record not be whole
            with _hinted(found):
                _play(found, logs, as_json)


@contextlib.contextmanager
def _hinted(folder: "RunFolder") -> Iterator[None]:
    """An error that the run itself is not to blame for says how to go on, once there is something to go on with."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        passes = not isinstance(error, BaraError) or isinstance(error, TrainingError)
        if (passes or isinstance(error.__cause__, OSError)) and (folder.path / "config.toml").exists():
            error.add_note(f"the books are whole; go on with: {folder.resume_command}")
        raise


def _play(folder: "RunFolder", logs: list[str], as_json: bool) -> None:
    """Play a run to its end, or until it is stopped between rounds."""
    from bara.experiments.factory import assemble
    from bara.experiments.runs import Interruption, run
    from bara.loggers import Loggers
    from bara.reports.html import run_report
    from bara.reports.live import watching
    from bara.reports.terminal import run_summary

    config = folder.config
    title = f"{config.dataset}, {config.clients.count} clients, {config.allocator.label} on {config.mechanism.label}"
    with Interruption() as interruption, watching(title, config.purse(), quiet=as_json) as watch:
        try:
            session = assemble(config, folder.path)  # what cannot be run leaves nothing behind
            with Loggers(logs, folder.path, config.model_dump(mode="json")) as loggers:
                result = run(config, watch, loggers.observe, interruption.observe, folder=folder, session=session)
        except RunStoppedError as stopped:
            why = str(stopped).replace("DIR", shlex.quote(str(folder.path)))
            note(f"bara: {why}; the books are closed; go on with: {folder.resume_command}")
            raise typer.Exit(130 if interruption.asked else 1) from None
    places = folder.finish(result, run_report(result, config.to_toml(), folder.command))
    if as_json:
        print_json(result.to_json())
    else:
        show(run_summary(result, places))
    if not result.payments:
        note("nobody was ever recruited; a lone client needs a reserve price (mechanism.reserve)")
