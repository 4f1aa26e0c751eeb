"""The command-line application: every verb with its examples."""

from typing import Annotated

import typer

import bara
from bara.cli.audit import audit_command
from bara.cli.compare import compare_command
from bara.cli.dashboard import dashboard_command
from bara.cli.data import data_app
from bara.cli.doctor import doctor_command
from bara.cli.ledger import ledger_app, receipt_command
from bara.cli.new import new_command
from bara.cli.options import Debug, examples
from bara.cli.paper import paper_command
from bara.cli.plan import plan_command
from bara.cli.report import report_command
from bara.cli.run import resume_command, run_command

app = typer.Typer(
    help="Decides, round by round, how much of a federation's money to spend on which "
    "participants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    suggest_commands=False,  # click already does
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bara {bara.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Debug = False,
) -> None:
    pass


app.command(
    "run",
    epilog=examples("bara run", "bara run --set allocator.name=even --set budget.total=600"),
)(run_command)
app.command("resume", epilog=examples("bara resume runs/20260101-120000-000-digits-bara"))(
    resume_command
)
app.command(
    "audit",
    epilog=examples(
        "bara audit bid-price-first",
        "bara audit turns --runs 3",
        "bara audit my_package:MyMechanism --trials 20000",
    ),
)(audit_command)
app.command(
    "compare",
    epilog=examples(
        "bara compare --allocators even,even:carry_over=true,planner --seeds 5",
        "bara compare --mechanisms bid-price-first,fair --set training.memory=off,plain --latex",
        "bara compare --suite report --out results/report",
    ),
)(compare_command)
app.command(
    "paper",
    help="Reproduce the paper's figures and tables, and show what it claims beside what was "
    "measured.",
    epilog=examples(
        "bara paper fig1", "bara paper all --seeds 5 --out paper", "bara paper all --data digits"
    ),
)(paper_command)
app.command(
    "plan",
    help="Forecast rounds, cost and accuracy for allocators and budgets, or find the budget that "
    "reaches a goal.",
    epilog=examples(
        "bara plan experiment.toml --past runs --budgets 500,1000,2000",
        "bara plan --past runs --reach 0.85 --confidence 0.9 --allocators planner",
    ),
)(plan_command)
app.command(
    "new", epilog=examples("bara new allocator my-allocator", "bara new flower-app my-app")
)(new_command)
app.command(
    "report",
    epilog=examples("bara report runs/20260101-120000-000-digits-planner", "bara report results"),
)(report_command)
app.command(
    "dashboard",
    epilog=examples("bara dashboard runs", "bara dashboard runs --host 0.0.0.0 --port 8000"),
)(dashboard_command)
app.command("doctor", epilog=examples("bara doctor"))(doctor_command)
app.command("receipt", epilog=examples("bara receipt client-03.json --public-key HEX --paid 12.5"))(
    receipt_command
)
app.add_typer(
    data_app,
    name="data",
    epilog=examples("bara data list", "bara data fetch mnist", "bara data show digits"),
)
app.add_typer(
    ledger_app,
    name="ledger",
    epilog=examples(
        "bara ledger DIR statement",
        "bara ledger DIR verify --receipt FILE",
        "bara ledger DIR export --csv",
    ),
)
