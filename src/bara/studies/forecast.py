"""A forecast before spending: the same session over imagined learning curves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from bara.errors import ConfigError, LedgerError
from bara.ledger.store import run_names
from bara.protocols import requirements_of
from bara.records import decimal_money, money
from bara.reports.forecast import Forecast, Outlook
from bara.reports.frames import column
from bara.reports.result import FEW, Result, read_result
from bara.runs.config import Config, Source
from bara.runs.config_sections import FederationSection
from bara.runs.data import division, holdings, load_data
from bara.runs.database import DatabaseRun
from bara.runs.factory import build_allocator, build_mechanism
from bara.runs.folder import RunFolder
from bara.runs.place import Place
from bara.runs.progress import Wanted
from bara.runs.summary import result_of
from bara.server.metrics import metric_title
from bara.studies.curves import ImaginedCurve, curves, imagined, stated_curves
from bara.studies.grid import Cell, run_grid
from bara.surrogates import interval
from bara.text import counted

BUDGETS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Multiples of the configured budget among which the budget that reaches a goal is looked for."""

USED_UP = 0.95
"""The share of the money from which on it counts as used up."""

EVERYBODY = 0.85
"""The share of the clients from which on nearly everybody is recruited: some fail, and back off."""


def plan(
    experiment: Source = None,
    /,
    *,
    past: str | Path | Sequence[str | Path] = (),
    start: float | None = None,
    goal: float | None = None,
    allocators: Sequence[Any] = (),
    budgets: Sequence[float] = (),
    reach: float | None = None,
    confidence: float = 0.9,
    draws: int = 20,
    jobs: int = -1,
    progress: Wanted = None,
    **keys: Any,
) -> Forecast:
    """Forecast rounds, cost and accuracy for allocators and budgets, or the budget for a goal.

    Args:
        experiment: As for `run`.
        past: Runs to learn from: a run's folder, a folder of runs, a database's URL, or several of
            these.
        start: Without past runs: how good the initial model is.
        goal: Without past runs: how good it can get at best.
        allocators: Names, classes or objects; even, even:carry_over=true and planner unless given,
            or, with a target or a worth in the experiment, planner.
        budgets: How much money; half, all and twice the configured unless given.
        reach: Look for the budget that reaches this accuracy with the first allocator.
        confidence: How sure to be of it.
        draws: Learning curves to imagine.
        jobs: Processes; -1 for all cores.
        progress: As for `run`.
        **keys: Changes to the experiment, as for `run`.
    """
    config = Config.load(experiment, **keys)
    runs = past_results([past] if isinstance(past, str | Path) else past)
    drawn, source = _drawn(config, runs, start, goal, draws)
    total = decimal_money(config.purse().total)
    wanted = list(allocators) or _allocators_for(config)
    if reach is None:
        tried = list(budgets) or [total / 2, total, 2 * total]
    else:
        _check_reach(reach, confidence, budgets)
        tried = [total * multiple for multiple in BUDGETS]
        wanted = wanted[:1]
    grid = forecast_cells(config, wanted, tried, drawn)
    _, failures = run_grid(grid[:1], None, 1)  # what cannot run fails once, not in every draw
    if not failures:
        results, failures = run_grid(grid, None, jobs, progress=progress)
    if failures:
        raise ConfigError(f"the forecast with {failures[0].allocator} failed: {failures[0].error}")
    needed = None
    if reach is not None:
        needed = budget_for(reach, confidence, results)
    return Forecast(
        list(outlooks(results, config)),
        past_runs=len(runs),
        draws=draws,
        source=source,
        measure=metric_title(config.metric),
        reach=reach,
        confidence=confidence,
        budget=needed,
        most=max(tried),
        currency=config.budget.currency,
    )


def _drawn(
    config: Config, runs: Sequence[Result], start: float | None, goal: float | None, draws: int
) -> tuple[list[ImaginedCurve], str]:
    """Imagine learning curves, and say what they were drawn from."""
    if start is None and goal is None:
        source = "nothing known of the task: give past runs with --past"
        if runs:
            source = f"learned from {counted(len(runs), 'past run')}"
        return curves(config, runs, draws), source
    if runs or start is None or goal is None:
        raise ConfigError("--start and --goal belong together, and stand in for --past")
    return stated_curves(config, start, goal, draws), f"from {start:g} to {goal:g}, as stated"


def _check_reach(reach: float, confidence: float, budgets: Sequence[float]) -> None:
    for name, value in (("reach", reach), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ConfigError(f"{name} must be a fraction between 0 and 1, like 0.85, got {value}")
    if budgets:
        raise ConfigError("give either reach or budgets, not both: reach looks for its budget")


def _allocators_for(config: Config) -> list[str]:
    """Name the usual allocators: where there is a goal, the one that has goals."""
    if config.budget.goal.name is None:
        return ["even", "even:carry_over=true", "planner"]
    return ["planner"]


# --- past runs -----------------------------------------------------------------------------------


def past_results(places: Iterable[Path | str]) -> list[Result]:
    """Read the results of past runs, as far as these have come.

    Args:
        places: Folders of runs, folders that hold such folders, and URLs of databases. A run of
            which no round is settled teaches nothing, and is left out.
    """
    found: list[Result] = []
    for place in places:
        results = list(_results_in(str(place)))
        if not results:
            raise ConfigError(
                f"no run with a settled round is in {str(place)!r}; give a run's folder, or one of "
                "runs"
            )
        found += results
    return found


def _results_in(place: str) -> Iterator[Result]:
    if "://" in place:
        for name in run_names(place):
            yield from _so_far(DatabaseRun(place, name))
        return
    folders = {path.parent for path in Path(place).glob("*/config.toml")}
    folders |= {path.parent for path in Path(place).glob("*/result.json")}
    for folder in (Path(place), *sorted(folders)):
        if (folder / "result.json").is_file():
            yield read_result(folder / "result.json")
        elif (folder / "config.toml").is_file():
            yield from _so_far(RunFolder.find(folder))


def _so_far(run: Place) -> Iterator[Result]:
    with run:
        try:
            books = run.read_books()
        except LedgerError:  # the run was stopped before there were any
            return
        if books.last_round() > 0:
            yield result_of(books)


# --- the imagined runs ---------------------------------------------------------------------------


def forecast_cells(
    config: Config,
    allocators: Sequence[Any],
    budgets: Sequence[float],
    drawn: Sequence[ImaginedCurve],
) -> list[Cell]:
    """Make a cell for every budget, allocator and curve; the setting is the budget."""
    for allocator in allocators:  # one that cannot be built is refused before anything is played
        build_allocator(config.with_allocator(allocator, config.seed))
    engine = {"engine": imagined, "workers": 1, **_held(config)}
    grid = []
    for budget in budgets:
        if not budget > 0:
            raise ConfigError(f"a forecast's budget must be positive, got {budget}")
        purse = config.with_total(budget).budget
        for allocator in allocators:
            for i, curve in enumerate(drawn):
                federation = FederationSection.model_validate({**engine, **curve.options()})
                there = config.with_allocator(allocator, config.seed + i)
                made = there.model_copy(update={"budget": purse, "federation": federation})
                grid.append(Cell(made, f"{budget:g}"))
    return grid


def _held(config: Config) -> dict[str, Any]:
    """Look up who holds what in the data, if bids depend on that; empty if they do not."""
    clients = config.clients
    columns = requirements_of(build_mechanism(config)).columns
    by_data = clients.cost_by in ("labels", "samples") or "samples" in columns
    if not config.engine.has_data or not (by_data or clients.costs is not None):
        return {}
    whole = load_data(config.data)
    return {"held": asdict(holdings(config, whole, division(config, whole)))}


def outlooks(results: Sequence[Result], config: Config) -> Iterator[Outlook]:
    """Add up the imagined runs for each budget and allocator."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.budget, result.allocator), []).append(result)
    for (budget, allocator), runs in groups.items():
        target = runs[0].target
        reached = None
        if target is not None:
            reached = fmean(run.accuracy_kept >= target for run in runs)
        yield Outlook(
            allocator,
            budget,
            accuracy=_interval([run.accuracy_final for run in runs]),
            rounds=_interval([float(run.rounds) for run in runs]),
            spent=_interval([run.spent for run in runs]),
            binds=what_binds(runs, config),
            reached=reached,
            clients=config.clients.count,
            paid=fmean(len(run.payments) for run in runs),
            few=fmean(run.share_of_most_paid(FEW) for run in runs),
        )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    low, high = interval(values)
    return low, float(np.mean(values)), high


def budget_for(target: float, confidence: float, results: Sequence[Result]) -> float | None:
    """Return the smallest budget that reaches the target; None beyond all that were tried."""
    budgets = sorted({result.budget for result in results})
    chances = []
    for budget in budgets:
        runs = [result for result in results if result.budget == budget]
        chances.append(np.mean([run.accuracy_final >= target for run in runs]))
    sure = np.maximum.accumulate(chances)  # more money does no harm; where it seems to, by chance
    if sure[-1] < confidence:
        return None
    k = int(np.argmax(sure >= confidence))
    if k == 0:
        return budgets[0]
    part = (confidence - sure[k - 1]) / (sure[k] - sure[k - 1])
    low, high = np.log(budgets[k - 1]), np.log(budgets[k])
    return float(np.exp(low + part * (high - low)))


# --- what keeps a run from being better ----------------------------------------------------------


def what_binds(runs: Sequence[Result], config: Config) -> str:
    """Name the limit that most of these runs came up against."""
    return Counter(_limit(run, config) for run in runs).most_common(1)[0][0]


def _limit(run: Result, config: Config) -> str:
    recruited = column(run.history[1:], "n")
    usual = median(recruited) if recruited else 0
    cap = config.ledger.client_cap
    if cap is not None and _caps_are_used_up(run, decimal_money(money(cap))):
        return "the cap per client"
    if run.spent >= USED_UP * run.budget or run.ended.startswith("the money") or not usual:
        return "the money"
    if run.rounds < config.budget.max_rounds:
        goal = config.budget.goal.name
        return run.ended if goal is None else f"the {goal}"
    if usual >= EVERYBODY * (run.clients - 1):
        return "the number of clients"
    return "the deadline"


def _caps_are_used_up(run: Result, cap: float) -> bool:
    """True where clients have, on average, less left of their caps than one usual payment."""
    payments = sum(column(run.history, "n"))
    if not payments:
        return False
    left = cap * run.clients - run.spent
    return bool(left < run.clients * run.spent / payments)
