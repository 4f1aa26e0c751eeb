"""The verb `compare`: allocators and other settings side by side, on the same federations."""

from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import AsJson, ConfigFile, Debug, Jobs, listed, numbers, varied, whole_numbers
from bara.cli.output import command_line, errors, print_json, say, show
from bara.errors import ConfigError


def compare_command(
    config: ConfigFile = None,
    allocators: Annotated[
        str | None,
        typer.Option(
            help="Allocators, separated by commas, with options as in even:carry_over=true. "
            "Default: the one that CONFIG or --set names, if any, and then even, "
            "even:carry_over=true, increasing, finale, bara, planner."
        ),
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            help="Mechanisms, separated by commas. Default: the one that CONFIG or --set names."
        ),
    ] = None,
    tune: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Tune a key for every line of the table: its values are tried with --pilots other "
            "seeds, and the one that keeps the best model on validation data is reported. May be "
            "repeated.",
        ),
    ] = [],
    pilots: Annotated[int, typer.Option(help="With --tune: how many seeds to tune with.")] = 2,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="N|SEED,...",
            help="How many seeds, counting up from the configuration's; or, with a comma, which: "
            "3,7 or a single one as 7,",
        ),
    ] = "5",
    against: Annotated[
        str,
        typer.Option(
            help="What the others are measured against, all else equal: an allocator, a "
            "mechanism, memory=off, or a whole line. Default: the first allocator; in a suite even."
        ),
    ] = "",
    suite: Annotated[
        str | None,
        typer.Option(
            help="Run every setting of a suite instead of CONFIG: development, report, silos, "
            "verdict."
        ),
    ] = None,
    budgets: Annotated[
        str,
        typer.Option(
            help="Compare several budgets, separated by commas: shares of the configured one "
            "(0.25,0.5,1) or, if any is above 10, amounts."
        ),
    ] = "",
    only: Annotated[
        str, typer.Option(help="With --suite: only these settings, separated by commas.")
    ] = "",
    full: Annotated[
        bool, typer.Option("--full", help="With --suite: use all samples; needs a larger machine.")
    ] = False,
    changes: Annotated[
        list[str],
        typer.Option(
            "--set",
            "--vary",
            metavar="KEY=VALUE",
            help="Set one key; values separated by commas are compared. May be repeated.",
        ),
    ] = [],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Keep results, results.csv and report.html here; go on where an earlier call "
            "stopped, and add to what it compared."
        ),
    ] = None,
    jobs: Jobs = -1,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a cluster: dask:tcp://HOST:8786 or ray:HOST:6379.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="With --json: include every round.")
    ] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print the table as LaTeX.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare allocators on the same federation, or on a suite of them, seed by seed."""
    with errors(debug):
        from bara.reports.terminal import table_of
        from bara.studies.compare import compare

        if [latex, markdown, as_json].count(True) > 1:
            raise ConfigError("give one of --latex, --markdown and --json")
        keys, grid = varied(changes)
        fixed, tuned = varied(tune)
        if fixed:
            key = next(iter(fixed))
            raise ConfigError(f"--tune {key} must have two values or more, separated by commas")
        found = compare(
            config,
            allocators=None if allocators is None else listed(allocators, "--allocators"),
            mechanisms=None if mechanisms is None else listed(mechanisms, "--mechanisms"),
            grid=grid,
            budgets=numbers(budgets, "--budgets"),
            tune=tuned,
            pilots=pilots,
            seeds=whole_numbers(seeds, "--seeds"),
            against=against,
            suite=suite,
            only=listed(only),
            full=full,
            out=out,
            jobs=jobs,
            cluster=cluster,
            progress=not as_json,
            command=command_line(),
            **keys,
        )
        if as_json:
            print_json(found.to_json(history=history))
        elif latex:
            say(found.to_latex(), nl=False)
        elif markdown:
            say(found.to_markdown(), nl=False)
        else:
            show(table_of(found))
        if found.failures:
            raise typer.Exit(1)
