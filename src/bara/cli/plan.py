"""The verb `plan`: a forecast of what budgets buy and goals cost, before money is spent."""

from typing import Annotated

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Jobs, listed, numbers, varied
from bara.cli.output import errors, print_json, say, show
from bara.errors import ConfigError


def plan_command(
    config: ConfigFile = None,
    past: Annotated[
        list[str],
        typer.Option(
            help="Learn from past runs: a run's folder, a folder of runs or a database's URL; may "
            "be repeated."
        ),
    ] = [],
    allocators: Annotated[
        str,
        typer.Option(
            help="Allocators, separated by commas. Default: even, even:carry_over=true, planner; "
            "with a goal, planner."
        ),
    ] = "",
    start: Annotated[
        float | None, typer.Option(help="Without --past: the accuracy of the initial model (0.1).")
    ] = None,
    goal: Annotated[
        float | None, typer.Option(help="Without --past: the best accuracy it can reach (0.95).")
    ] = None,
    budgets: Annotated[
        str,
        typer.Option(
            help="Budgets, separated by commas. Default: half the configured one, all of it, and "
            "twice."
        ),
    ] = "",
    reach: Annotated[
        float | None,
        typer.Option(
            help="Find the budget with which the first allocator reaches this accuracy (0.85)."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="With --reach: how likely it must be.")] = 0.9,
    draws: Annotated[int, typer.Option(help="How many learning curves to draw.")] = 20,
    changes: Changes = [],
    jobs: Jobs = -1,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Forecast rounds, cost and accuracy, or find the budget that reaches a goal."""
    with errors(debug):
        from bara.reports.terminal import outlook_table
        from bara.studies.forecast import plan

        keys, grid = varied(changes)
        if grid:
            raise ConfigError(
                f"--set {next(iter(grid))} has several values, which only compare can vary; "
                "give one"
            )
        found = plan(
            config,
            past=past,
            start=start,
            goal=goal,
            allocators=listed(allocators, "--allocators") if allocators else (),
            budgets=numbers(budgets, "--budgets"),
            reach=reach,
            confidence=confidence,
            draws=draws,
            jobs=jobs,
            progress=not as_json,
            **keys,
        )
        if as_json:
            print_json(found.to_json())
            return
        show(outlook_table(found.rows, found.told))
        answer = found.answer()
        if answer:
            say(answer)
