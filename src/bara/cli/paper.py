"""The verb `paper`: the paper's figures and tables, claims beside measurements."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import AsJson, Changes, Debug, Jobs, listed
from bara.cli.output import command_line, errors, print_json, say, show
from bara.text import counted, note


class Deadline(StrEnum):
    """The choice of what the paper's T_max binds."""

    RUNS = "runs"
    SHARES = "shares"


def paper_command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[EXHIBIT]...",
            help="fig1, fig2, fig3, fig4, table1, table2, ablation, regimes, border, or all.",
        ),
    ] = ["all"],
    scale: Annotated[
        str,
        typer.Option(
            help="A factor on the presets' samples (digits has all), or full: all samples and the "
            "paper's networks."
        ),
    ] = "1",
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 3,
    searched: Annotated[
        int, typer.Option(help="How many values of n to search for the best (fig3).")
    ] = 7,
    unlimited: Annotated[
        bool, typer.Option("--unlimited", help="Search n* without a budget (fig3).")
    ] = False,
    data: Annotated[
        str,
        typer.Option(
            help="Datasets, separated by commas; digits needs no files.",
            show_default="mnist, fashion-mnist, cifar10, cifar100",
        ),
    ] = "mnist,fashion-mnist,cifar10,cifar100",
    deadline: Annotated[
        Deadline,
        typer.Option(
            help="What T_max binds: every run, or only the shares of EA, MIA and MDA, so that the "
            "others go on until their money ends.",
        ),
    ] = Deadline.RUNS,
    changes: Changes = [],
    out: Annotated[
        Path,
        typer.Option(
            help="The folder for figures, tables and runs; a stopped call continues there."
        ),
    ] = Path("paper"),
    jobs: Jobs = -1,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Reproduce the paper's figures and tables."""
    with errors(debug):
        import bara.paper.figures  # noqa: F401 - a missing package fails now, not after hours
        from bara.paper.analysis import analyse
        from bara.paper.exhibits import UNBOUND, Scale, exhibits, known_datasets, union
        from bara.paper.pages import exhibit_table, publish_paper
        from bara.paper.runtime_estimate import expected_seconds
        from bara.reports.comparison import label
        from bara.studies.grid import run_grid, tell_replaced, unfinished

        wanted = exhibits(names)
        if deadline is Deadline.SHARES:
            wanted = [one.unbound() for one in wanted]
            changes = [*UNBOUND, *changes]
        size = Scale(Scale.factor(scale), seeds, searched, unlimited, tuple(changes))
        datasets = known_datasets(listed(data, "--data"))
        grids = {one.name: size.cells(one, datasets) for one in wanted}
        grid = union(grids.values())
        todo = unfinished(grid, out / "runs")
        tell_replaced(todo, out / "runs")
        if not as_json:
            note(f"{counted(len(grid), 'run')}, {len(grid) - len(todo)} done")
            if todo:
                minutes = sum(expected_seconds(todo, jobs).values()) / 60
                about = "less than two minutes"
                if minutes >= 2:
                    about = f"about {minutes:,.0f} minutes"
                note(f"the rest will take {about}")
        results, failures = run_grid(grid, out / "runs", jobs, progress=not as_json)
        shown = [analyse(one, results, datasets, size) for one in wanted]
        opened = publish_paper(shown, results, out, command_line())
        if as_json:
            trees = []
            for one in shown:
                tree = {"name": one.exhibit.name, "rows": one.rows}
                trees.append({**tree, "measured": one.measured, "size": one.size})
            print_json({"exhibits": trees, "failures": list(map(vars, failures))})
        else:
            for one in shown:
                show(exhibit_table(one))
            for failure in failures:
                note(f"{label(failure)}: {failure.error}")
            say(f"open {opened}")
        if failures:
            raise typer.Exit(1)
