"""The verb `paper`: the paper's figures and tables, with what was measured beside what was claimed."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bara.cli.compare import run_grid
from bara.cli.options import AsJson, Changes, Debug, command_line, errors, listed, print_json
from bara.errors import ConfigError, UnknownNameError
from bara.experiments.comparison import unfinished
from bara.experiments.paper.analysis import show
from bara.experiments.paper.exhibits import DATASETS, EXHIBITS, PAPERS, Scale, exhibits, union
from bara.experiments.paper.runtime_estimate import expected_seconds
from bara.plugins import nearest
from bara.reports.paper import publish
from bara.reports.terminal import exhibit_table


def paper_command(
    names: Annotated[list[str], typer.Argument(metavar="[EXHIBIT]...", help=f"{', '.join(EXHIBITS)}, or all.")] = [
        "all"
    ],
    scale: Annotated[str, typer.Option(help="Times the presets' samples; full for all, as in the paper.")] = "1",
    seeds: Annotated[int, typer.Option(help="Repetitions.")] = 3,
    searched: Annotated[int, typer.Option(help="How many n the search for the best one tries (fig3).")] = 7,
    data: Annotated[str, typer.Option(help="Datasets, by comma; digits needs no files.")] = ",".join(PAPERS),
    changes: Changes = [],
    out: Annotated[Path, typer.Option(help="Where figures, tables and runs go; it goes on where it stopped.")] = Path(
        "paper"
    ),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the paper's figures and tables anew, resumably, and say what it claims and what was measured."""
    with errors(debug):
        import_module("bara.reports.figures")  # what drawing needs is missed now, not after hours
        wanted = exhibits(names)
        size = Scale(_samples(scale), seeds, searched, tuple(changes))
        datasets = _datasets(data)
        grids = {one.name: size.cells(one, datasets) for one in wanted}
        grid = union(grids.values())
        todo = unfinished(grid, out / "runs")
        if not as_json:
            typer.echo(f"{len(grid)} runs, {len(grid) - len(todo)} of them done", err=True)
            if todo:
                minutes = sum(expected_seconds(todo, jobs).values()) / 60
                about = f"about {minutes:,.0f} minutes" if minutes >= 2 else "less than two minutes"
                typer.echo(f"the others take {about}", err=True)
        results, failures = run_grid(grid, out / "runs", jobs, None, quiet=as_json)
        shown = [show(one, results, datasets, size) for one in wanted]
        opened = publish(shown, out, command_line())
        if as_json:
            lost = [vars(failure) for failure in failures]
            trees = [{"name": s.exhibit.name, "rows": s.rows, "measured": s.measured, "size": s.size} for s in shown]
            print_json({"exhibits": trees, "failures": lost})
        else:
            for one in shown:
                Console().print(exhibit_table(one))
            for failure in failures:
                typer.echo(f"{failure.setting}, {failure.allocator}, seed {failure.seed}: {failure.error}", err=True)
            typer.echo(f"open {opened}")
        if failures:
            raise typer.Exit(1)


def _samples(scale: str) -> float | None:
    if scale == "full":
        return None
    try:
        return float(scale)
    except ValueError:
        raise ConfigError(f"--scale {scale!r}; required is a number, or full") from None


def _datasets(names: str) -> list[str]:
    wanted = listed(names, "--data")
    for name in wanted:
        if name not in DATASETS:
            raise UnknownNameError(f"no preset is about {name!r}; {nearest(name, list(DATASETS))}")
    return wanted
