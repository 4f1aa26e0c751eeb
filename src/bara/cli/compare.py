"""The verb `compare`: allocators side by side, over one federation or a suite of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Jobs, listed
from bara.cli.output import command_line, errors, print_json, run_grid, show
from bara.errors import ConfigError

if TYPE_CHECKING:
    from bara.experiments.config import Config

USUAL = "even,even:carry_over=true,increasing,finale,bara,planner"
"""The allocators that are compared unless others are asked for."""


def compare_command(
    config: ConfigFile = None,
    allocators: Annotated[
        str | None,
        typer.Option(
            help="Which, by comma; options as in even:carry_over=true. "
            f"Unless given, the one that CONFIG or --set names, if any, and then {USUAL}."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from the configuration's own upwards.")] = 5,
    suite: Annotated[
        str | None, typer.Option(help="Instead of CONFIG, every setting of a suite: development, report.")
    ] = None,
    only: Annotated[str, typer.Option(help="With --suite: these of its settings, by comma.")] = "",
    full: Annotated[bool, typer.Option("--full", help="With --suite: all samples, for larger machines.")] = False,
    changes: Changes = [],
    out: Annotated[
        Path | None,
        typer.Option(help="Keep results, results.csv and report.html here, and go on where an earlier call stopped."),
    ] = None,
    jobs: Jobs = -1,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a cluster: dask:tcp://HOST:8786 or ray:HOST:6379.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="With --json: every round, too.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run the same federation, or a suite of them, under several allocators and seeds, side by side."""
    with errors(debug):
        from bara.experiments.comparison import Comparison, cells
        from bara.experiments.config import Config
        from bara.experiments.suites import Standings, settings
        from bara.files import write_whole
        from bara.reports.html import comparison_report
        from bara.reports.terminal import comparison_table, suite_table

        if suite and config:
            raise ConfigError(f"both {str(config)!r} and --suite {suite}; required is one of them")
        if (full or only) and not suite:
            raise ConfigError("--full and --only are for suites; required is --suite, too")
        chosen = settings(suite, changes, only=listed(only), full=full) if suite else []
        experiment = chosen[0].config if chosen else Config.load(config, changes)
        names = _names(allocators, experiment)
        played = {one.name: one.config for one in chosen} if chosen else {None: experiment}
        grid = [cell for name, one in played.items() for cell in cells(one, names, seeds, name)]
        results, failures = run_grid(grid, out, jobs, cluster, quiet=as_json)
        if out is not None and results:
            kept = Comparison(command_line(), "" if suite else experiment.to_toml(), [cell.key for cell in grid])
            kept.keep(out)
            write_whole(out / "report.html", [comparison_report(results, kept.config, kept.command)])
        standings = Standings.of_suite(chosen, results)
        if as_json:
            failed = [{key: value for key, value in vars(f).items() if value is not None} for f in failures]
            tree: dict[str, Any] = {"results": [r.to_json(history=history) for r in results], "failures": failed}
            print_json(tree | ({"standings": standings.to_json()} if standings else {}))
        else:
            show(suite_table(standings, failures) if standings else comparison_table(results, failures))
        if failures:
            raise typer.Exit(1)


def _names(allocators: str | None, experiment: "Config") -> list[str]:
    """Those that were asked for; else the usual ones, after the one that the configuration names."""
    if allocators is not None:
        return listed(allocators, "--allocators")
    own = [experiment.allocator.label] if "allocator" in experiment.model_fields_set else []
    return own + listed(USUAL)
