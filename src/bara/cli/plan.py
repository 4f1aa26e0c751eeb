"""The verb `plan`: what a budget would buy, and what a goal would cost, before anything is spent."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, Jobs, listed
from bara.cli.output import errors, print_json, run_grid, say, show
from bara.errors import ConfigError


def plan_command(
    config: ConfigFile = None,
    past: Annotated[
        list[Path], typer.Option(help="Learn from these finished runs: a run's folder or a folder of runs.")
    ] = [],
    allocators: Annotated[str, typer.Option(help="Which, by comma.")] = "even,even:carry_over=true,planner",
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
        from bara.experiments.config import Config
        from bara.experiments.forecasts import BUDGETS, budget_for, curves, forecast_cells, outlooks, past_results
        from bara.records import decimal_money
        from bara.reports.terminal import outlook_table

        experiment = Config.load(config, changes)
        runs = past_results(past)
        drawn = curves(experiment, runs, draws)
        names = listed(allocators, "--allocators")
        total = decimal_money(experiment.purse().total)
        if reach is not None:
            _check_fractions(reach, confidence)
            if budgets:
                raise ConfigError("both --reach and --budgets; required is one of them: the first looks for a budget")
            grid = forecast_cells(experiment, names[:1], [total * part for part in BUDGETS], drawn)
        else:
            grid = forecast_cells(experiment, names, _budgets(budgets, total), drawn)
        results, failures = run_grid(grid, None, jobs, quiet=as_json)
        if failures:
            raise ConfigError(f"the forecast with {failures[0].allocator} failed: {failures[0].error}")
        found = list(outlooks(results))
        needed = None if reach is None else budget_for(reach, confidence, results)
        if as_json:
            answer = {} if reach is None else {"reach": reach, "confidence": confidence, "budget": needed}
            print_json({"past_runs": len(runs), "forecasts": [asdict(one) for one in found], **answer})
            return
        show(outlook_table(found, len(runs), draws))
        if reach is not None:
            goal = f"{100 * reach:g} % with {100 * confidence:g} % confidence"
            most = f"more than {total * BUDGETS[-1]:,.0f}, or more rounds than {experiment.budget.max_rounds}"
            say(f"{goal}: " + (f"{needed:,.0f}" if needed is not None else most))


def _budgets(text: str, total: float) -> list[float]:
    try:
        return [float(part) for part in text.split(",")] if text else [total / 2, total, 2 * total]
    except ValueError:
        raise ConfigError(f"--budgets {text!r}; required are numbers by comma, like 500,1000") from None


def _check_fractions(reach: float, confidence: float) -> None:
    for name, value in (("--reach", reach), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise ConfigError(f"{name} is {value}; required is a fraction between 0 and 1, like 0.85")
