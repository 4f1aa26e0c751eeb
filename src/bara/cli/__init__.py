"""The command line: the verbs, and how their work is shown. No logic of its own."""

import os
import shlex
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import bara
from bara.cli.compare import compare_command
from bara.cli.dashboard import dashboard_command
from bara.cli.data import data_app
from bara.cli.ledger import ledger_app, receipt_command
from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Folder, errors, examples, print_json
from bara.cli.paper import paper_command
from bara.cli.plan import plan_command
from bara.cli.report import report_command
from bara.errors import RunStoppedError
from bara.experiments.config import Config, parse_spec
from bara.experiments.interruptions import Interruption
from bara.experiments.run_folder import RunFolder
from bara.experiments.runs import build_allocator, build_mechanism, run
from bara.ledger import Books
from bara.loggers import Loggers
from bara.mechanisms import MECHANISMS
from bara.mechanisms.audit import audit
from bara.reports.html import run_report
from bara.reports.live import watching
from bara.reports.terminal import audit_table, run_summary

app = typer.Typer(
    help="Decides, round by round, how much of a federation's money to spend on which participants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Logs = Annotated[
    list[str],
    typer.Option("--log", metavar="LOGGER[:PLACE]", help="tensorboard:DIR or mlflow:URI; may be repeated."),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bara {bara.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("run", epilog=examples("bara run", "bara run --set allocator.name=even --set budget.total=600"))
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
        experiment = Config.load(config, changes)
        if show_config:
            typer.echo(experiment.to_toml(), nl=False)
            return
        build_allocator(experiment)
        build_mechanism(experiment)
        if experiment.federation.engine == "synthetic" and find_spec("torch") is None:
            typer.echo(
                "no torch here: a synthetic learning curve trains instead (pip install 'bara-fl[sim]')", err=True
            )
        with RunFolder.new(out, experiment) as folder:
            _play(folder, folder.start, logs, as_json)


@app.command("resume", epilog=examples("bara resume runs/20260101-120000-000-digits-bara"))
def resume_command(folder: Folder, logs: Logs = [], as_json: AsJson = False, debug: Debug = False) -> None:
    """Go on where a run stopped, to the same result as if it had not."""
    with errors(debug), RunFolder.find(folder) as found:
        books = found.resume()
        _play(found, lambda: books, logs, as_json)


def _play(folder: RunFolder, books: Callable[[], Books], logs: list[str], as_json: bool) -> None:
    """Play a run to its end, or until it is stopped between rounds."""
    config = folder.config
    with Interruption() as interruption, watching(_title(config), config.purse(), quiet=as_json) as show:
        try:
            with Loggers(logs, folder.path, config.model_dump(mode="json")) as loggers:
                result = run(config, show, loggers.observe, interruption.observe, folder=folder.path, books=books)
        except RunStoppedError as stopped:
            why = str(stopped).replace("DIR", shlex.quote(str(folder.path)))
            typer.echo(f"bara: {why}; the books are closed; go on with: {folder.resume_command}", err=True)
            raise typer.Exit(130 if interruption.asked else 1) from None
    places = folder.finish(result, run_report(result, config.to_toml(), folder.command))
    if as_json:
        print_json(result.to_json())
    else:
        Console().print(run_summary(result, places))
    if not result.payments:
        typer.echo("nobody was ever recruited; a lone client needs a reserve price (mechanism.reserve)", err=True)


def _title(config: Config) -> str:
    return f"{config.dataset}, {config.clients.count} clients, {config.allocator.label} on {config.mechanism.label}"


@app.command("audit", epilog=examples("bara audit bid-price-first", "bara audit my_package:MyMechanism --trials 20000"))
def audit_command(
    mechanism: Annotated[
        str, typer.Argument(help="A mechanism's name or import path, with options: quality:quality=samples")
    ],
    trials: Annotated[int, typer.Option(min=1, help="Random rounds a property is tried on.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Where the rounds come from.")] = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check what a mechanism claims: rationality, budget, truthfulness; print counter-examples."""
    with errors(debug):
        spec = parse_spec(mechanism)
        findings = list(audit(MECHANISMS.build(spec.pop("name"), spec), trials, seed))
        if as_json:
            print_json({"mechanism": mechanism, "findings": [vars(f) for f in findings]})
        else:
            Console().print(audit_table(mechanism, findings))
        if any(finding.broken for finding in findings):
            raise typer.Exit(1)


app.command(
    "compare",
    epilog=examples(
        "bara compare --allocators even,even:carry_over=true,planner --seeds 5",
        "bara compare --suite report --out results/report",
    ),
)(compare_command)
app.command(
    "paper",
    epilog=examples("bara paper fig1", "bara paper all --seeds 5 --out paper", "bara paper all --data digits"),
)(paper_command)
app.command(
    "plan",
    epilog=examples(
        "bara plan experiment.toml --past runs --budgets 500,1000,2000",
        "bara plan --past runs --reach 0.85 --confidence 0.9 --allocators planner",
    ),
)(plan_command)
app.add_typer(
    data_app, name="data", epilog=examples("bara data list", "bara data fetch mnist", "bara data show digits")
)
app.add_typer(
    ledger_app,
    name="ledger",
    epilog=examples(
        "bara ledger DIR statement", "bara ledger DIR verify --receipt FILE", "bara ledger DIR export --csv"
    ),
)
app.command("report", epilog=examples("bara report runs/20260101-120000-000-digits-planner", "bara report results"))(
    report_command
)
app.command("dashboard", epilog=examples("bara dashboard runs", "bara dashboard runs --host 0.0.0.0 --port 8000"))(
    dashboard_command
)
app.command("receipt", epilog=examples("bara receipt client-03.json --public-key HEX --paid 12.5"))(receipt_command)


def main() -> None:
    """The program `bara`; plug-ins by import path are also found in the folder it is started in."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])  # for workers
    app()
