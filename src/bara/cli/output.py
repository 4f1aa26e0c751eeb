"""How the verbs show their work and their errors."""

import json
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bara.errors import BaraError, ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

    from bara.experiments.comparison import Cell, Failure
    from bara.experiments.results import Result


def command_line() -> str:
    """What the user typed, to be repeated."""
    return shlex.join(["bara", *sys.argv[1:]])


def print_json(tree: Any) -> None:
    """One document."""
    typer.echo(json.dumps(tree, indent=1))


def show(what: "RenderableType") -> None:
    """A table or a panel."""
    from rich.console import Console

    Console().print(what)


@contextmanager
def errors(debug: bool) -> Iterator[None]:
    """One clear line: exit 2 for what was asked wrongly, 1 for work that failed."""
    try:
        yield
    except BaraError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"bara: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator["Progress"]:
    """A live bar on a terminal; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, TextColumn("{task.fields[note]}"), console=console, disable=quiet or not console.is_terminal
    ) as progress:
        yield progress


def run_grid(
    grid: Sequence["Cell"], out: Path | None, jobs: int, cluster: str | None = None, *, quiet: bool
) -> tuple[list["Result"], list["Failure"]]:
    """Run a grid behind a progress bar, or plain lines; what came of it, in the grid's order."""
    from bara.experiments.comparison import Failure, compare, connected, in_order, label
    from bara.reports.terminal import per_cent

    # joblib restarts a worker whose memory has grown, as it does with another dataset, and warns of it.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    done: list[Result | Failure] = []
    try:
        with connected(cluster) as backend, progress_bar(quiet=quiet) as progress:
            task = progress.add_task("running", total=len(grid), note="")
            for outcome in compare(grid, folder=out, jobs=jobs, backend=backend):
                done.append(outcome)
                progress.update(task, advance=1, note=label(outcome))
                if progress.disable and not quiet:
                    end = outcome.error if isinstance(outcome, Failure) else per_cent(outcome.accuracy_final)
                    typer.echo(f"{len(done)} of {len(grid)}: {label(outcome)}: {end}", err=True)
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"kept in {out}; the same command goes on from there"
        typer.echo(f"stopped after {len(done)} of {len(grid)} runs: {kept}", err=True)
        raise typer.Exit(130) from None
    return in_order(grid, done, out)
