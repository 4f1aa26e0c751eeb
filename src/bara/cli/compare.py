"""The verb `compare`: allocators side by side, over one federation or a suite of them."""

import re
from itertools import product
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
    budgets: Annotated[
        str,
        typer.Option(
            help="Each allocator at several budgets, by comma: parts of the configured one (0.25,0.5,1), or, where one "
            "is above 10, amounts."
        ),
    ] = "",
    vary: Annotated[
        list[str],
        typer.Option(metavar="KEY=V1,V2", help="Each allocator with every one of these values; may be repeated."),
    ] = [],
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
        from bara.experiments.frontier import Frontier
        from bara.experiments.suites import Standings, settings
        from bara.files import write_whole
        from bara.reports.html import comparison_report
        from bara.reports.terminal import comparison_table, frontier_table, suite_table

        if suite and config:
            raise ConfigError(f"both {str(config)!r} and --suite {suite}; required is one of them")
        if (full or only) and not suite:
            raise ConfigError("--full and --only are for suites; required is --suite, too")
        played: list[tuple[str | None, str | None, Config]] = []  # setting, variant, experiment
        for variant in _variants(vary):
            varied, called = [*changes, *variant], ", ".join(map(_called, variant)) or None
            if suite:
                chosen = settings(suite, varied, only=listed(only), full=full)
                played += [(one.name, called, one.config) for one in chosen]
            else:
                played.append((None, called, Config.load(config, varied)))
        experiment = played[0][2]
        names = _names(allocators, experiment)
        shares = _shares(budgets, experiment, suite)
        grid = [cell for setting, variant, one in played for cell in cells(one, names, seeds, setting, variant, shares)]
        results, failures = run_grid(grid, out, jobs, cluster, quiet=as_json)
        if out is not None and results:
            kept = Comparison(command_line(), "" if suite else experiment.to_toml(), [cell.key for cell in grid])
            kept.keep(out)
            write_whole(out / "report.html", [comparison_report(results, kept.config, kept.command)])
        standings = Standings.of_suite(chosen, results) if suite and not shares else None
        frontier = Frontier(results) if shares and results else None
        if as_json:
            failed = [{key: value for key, value in vars(f).items() if value is not None} for f in failures]
            tree: dict[str, Any] = {"results": [r.to_json(history=history) for r in results], "failures": failed}
            tree |= {"standings": standings.to_json()} if standings else {}
            print_json(tree | ({"frontier": frontier.to_json()} if frontier and frontier.is_complete else {}))
        elif frontier and frontier.is_complete:
            show(frontier_table(frontier, failures))
        else:
            show(suite_table(standings, failures) if standings else comparison_table(results, failures))
        if failures:
            raise typer.Exit(1)


MOST_SHARE = 10.0
"""The largest number that --budgets takes for a part of the configured budget, not for an amount."""


def _shares(text: str, experiment: "Config", suite: str | None) -> list[float]:
    """The parts of the configured budget that --budgets asks for."""
    from bara.records import decimal_money

    try:
        found = sorted({float(part) for part in listed(text)})
    except ValueError:
        raise ConfigError(f"--budgets {text!r} must be numbers by comma, like 0.25,0.5,1 or 500,1000") from None
    if not all(0 < one < float("inf") for one in found):
        raise ConfigError(f"--budgets {text!r} must be positive numbers")
    if not found or found[-1] <= MOST_SHARE:
        return found
    if suite:
        raise ConfigError(f"--budgets {text!r} are amounts, but the settings of a suite have budgets of their own")
    total = decimal_money(experiment.purse().total)
    return [one / total for one in found]


def _variants(vary: list[str]) -> list[tuple[str, ...]]:
    """Every combination of the values that --vary asks for, as changes of the configuration."""
    choices = []
    for one in vary:
        key, equals, values = one.partition("=")
        named = [value.strip() for value in re.split(r",(?![^(]*\))", values) if value.strip()]
        if not equals or not key.strip() or not named:
            raise ConfigError(f"--vary {one!r} must be KEY=V1,V2, like training.memory=off,plain")
        choices.append([f"{key.strip()}={value}" for value in named])
    return list(product(*choices))


def _called(change: str) -> str:
    """A change of one key in short: `memory=off` for `training.memory=off`, `mechanism=fair` for its name."""
    key, _, value = change.partition("=")
    section, _, last = key.rpartition(".")
    return f"{section.rpartition('.')[2] if last == 'name' and section else last}={value}"


def _names(allocators: str | None, experiment: "Config") -> list[str]:
    """Those that were asked for; else the usual ones, after the one that the configuration names."""
    if allocators is not None:
        return listed(allocators, "--allocators")
    own = [experiment.allocator.label] if "allocator" in experiment.model_fields_set else []
    return own + listed(USUAL)
