"""The verb `plan`: what a budget would buy, and what a goal would cost, before anything is spent."""

from typing import Annotated

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Jobs, listed, numbers, varied
from bara.cli.output import errors, print_json, say, show
from bara.errors import ConfigError


def plan_command(
    config: ConfigFile = None,
    past: Annotated[
        list[str], typer.Option(help="Learn from these runs: a run's folder, a folder of runs, a database's URL.")
    ] = [],
    allocators: Annotated[
        str, typer.Option(help="Which, by comma; even, even:carry_over=true and planner, or, with a goal, planner.")
    ] = "",
    start: Annotated[float | None, typer.Option(help="Without --past: how good the initial model is (0.1).")] = None,
    goal: Annotated[float | None, typer.Option(help="Without --past: how good it can get at best (0.95).")] = None,
    budgets: Annotated[str, typer.Option(help="How much money, by comma; half, all and twice the configured.")] = "",
    reach: Annotated[
        float | None, typer.Option(help="What budget reaches this accuracy (0.85)? With the first allocator.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="With --reach: how sure.")] = 0.9,
    draws: Annotated[int, typer.Option(help="Learning curves to imagine.")] = 20,
    changes: Changes = [],
    jobs: Jobs = -1,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Forecast rounds, cost and accuracy for several allocators and budgets, or the budget that reaches a goal."""
    with errors(debug):
        from bara.reports.money_curves import outlook_line
        from bara.reports.terminal import outlook_table
        from bara.verbs import plan

        keys, grid = varied(changes)
        if grid:
            raise ConfigError(f"--set {next(iter(grid))} has several values, which only compare can vary; give one")
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
        if found.money is not None:
            say(f"What money buys, by the curve of the past run: {outlook_line(found.money, found.currency)}")
        if answer := found.answer():
            say(answer)
