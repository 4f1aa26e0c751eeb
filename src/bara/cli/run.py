"""The verbs `run` and `resume`: a run of one federation, from its start or where it stopped."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug
from bara.cli.output import errors, print_json, say, show
from bara.errors import ConfigError
from bara.text import note

if TYPE_CHECKING:
    from bara.reports.result import Result

Logs = Annotated[
    list[str],
    typer.Option(
        "--log", metavar="LOGGER[:PLACE]", help="tensorboard:DIR or mlflow:URI; may be repeated."
    ),
]


def run_command(
    config: ConfigFile = None,
    changes: Changes = [],
    out: Annotated[
        Path | None, typer.Option(help="The run's folder. Default: a new one in runs/.")
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the whole configuration; run nothing.")
    ] = False,
    logs: Logs = [],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train one federation under a budget, and write its books, models and report to a folder."""
    with errors(debug):
        from bara.runs.config import Config
        from bara.runs.engines import SYNTHETIC
        from bara.runs.play import run

        experiment = Config.load(config, changes)
        if show_config:
            from bara.runs.reference import documented_toml

            say(documented_toml(experiment), nl=False)
            return
        if experiment.federation.engine == SYNTHETIC and find_spec("torch") is None:
            note(
                "without torch, a synthetic learning curve stands in for training "
                "(pip install 'bara-fl[sim]')"
            )
        result = run(experiment, out=out or True, log=logs, progress=not as_json)
        _tell(result, as_json)


ResumedFolder = Annotated[str, typer.Argument(metavar="DIR", help="The run's folder.")]


def resume_command(
    folder: ResumedFolder, logs: Logs = [], as_json: AsJson = False, debug: Debug = False
) -> None:
    """Continue a stopped run, to the same result as without the stop."""
    with errors(debug):
        from bara.runs.play import resume

        if "://" in folder:
            raise ConfigError(
                f"{folder!r} is a database; name the run's folder, which has its models, or, if "
                "your own program plays the run, start that again"
            )
        _tell(resume(folder, log=logs, progress=not as_json), as_json)


def _tell(result: "Result", as_json: bool) -> None:
    """Print the result of a run."""
    from bara.reports.terminal import run_summary

    folder = str(result.folder)  # never None here: both verbs write to a folder
    try:
        if as_json:
            print_json(result.to_json())
        else:
            places = {"report": str(Path(folder, "report.html")), "folder": folder}
            show(run_summary(result, places))
    except OSError as error:
        from bara.runs.folder import RunFolder

        again = RunFolder.find(Path(folder)).resume_command
        error.add_note(f"the books are whole; go on with: {again}")
        raise
    if not result.payments:
        note(f"nobody was paid; {_what_to_change(result, folder)}")


def _what_to_change(result: "Result", folder: str) -> str:
    """Say what may have kept everybody from being recruited."""
    mechanism = result.mechanism.partition(":")[0]
    if mechanism == "posted-price":
        return "mechanism.price must be at least what a client asks, and an offer must pay it"
    if mechanism == "tariff":
        return "a client's fee must be at least what it asks, and an offer must pay it"
    if result.clients == 1:
        return "a single bidder can only win under a reserve price (mechanism.reserve)"
    return f"what was offered and asked: bara ledger {folder} explain 1"
