"""What a budget would buy, and what a goal would cost, before anything is spent."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from bara.errors import ConfigError
from bara.records import MoneyOutlook, decimal_money, tell_money
from bara.reports.frames import frame
from bara.reports.html import short_table
from bara.reports.terminal import outlook_rows
from bara.runs.config import Config, Source
from bara.runs.progress import Wanted
from bara.server.metrics import metric_title
from bara.studies.forecast import (
    BUDGETS,
    Outlook,
    allocators_for,
    budget_for,
    curves,
    forecast_cells,
    outlooks,
    past_outlook,
    past_results,
    stated_curves,
)
from bara.text import counted
from bara.verbs._grid import run_grid


@final
@dataclass(frozen=True, repr=False)
class Forecast:
    """What allocators would make of budgets.

    Attributes:
        outlooks: One for each budget and allocator.
        past_runs: How many runs it was learned from.
        draws: Over how many imagined learning curves.
        source: What these were drawn from, in words.
        measure: What the model is measured by.
        reach: The accuracy that was asked for, if one was.
        confidence: How sure.
        budget: What reaches it; None beyond `most`, or where no goal was asked for.
        most: The largest budget that was tried.
        money: What money buys by the curve of the last past run; None without one.
        currency: What amounts are in, by its code of ISO 4217; None for units of no currency.
    """

    outlooks: list[Outlook]
    past_runs: int
    draws: int
    source: str
    measure: str = "accuracy"
    reach: float | None = None
    confidence: float = 0.9
    budget: float | None = None
    most: float = 0.0
    money: MoneyOutlook | None = None
    currency: str | None = None

    def to_frame(self) -> Any:
        """A pandas frame with a line for each budget and allocator."""
        rows = []
        for one in self.outlooks:
            row: dict[str, Any] = {"allocator": one.allocator, "budget": one.budget}
            for name in ("accuracy", "rounds", "spent"):
                low, mean, high = getattr(one, name)
                row |= {f"{name}_low": low, name: float(mean), f"{name}_high": high}
            rows.append(row)
        return frame(rows)

    def to_json(self) -> dict[str, Any]:
        """A plain tree."""
        goal: dict[str, Any] = {}
        if self.reach is not None:
            goal = {"reach": self.reach, "confidence": self.confidence, "budget": self.budget}
            goal |= {} if self.budget is not None else {"binds": self.outlooks[-1].binds}
        goal |= {} if self.money is None else {"money": asdict(self.money)}
        head = {"past_runs": self.past_runs, "currency": self.currency}
        return {**head, "forecasts": [asdict(one) for one in self.outlooks], **goal}

    @property
    def rows(self) -> list[list[str]]:
        """The table as people read it, a head first."""
        return outlook_rows(self.outlooks, self.measure, self.currency)

    @property
    def told(self) -> str:
        """What it was learned from, in a line."""
        return f"Over {self.draws} imagined learning curves, {self.source}."

    def answer(self) -> str | None:
        """What budget reaches the goal, in a line; None without a goal."""
        if self.reach is None:
            return None
        goal = f"{100 * self.reach:g} % with {100 * self.confidence:g} % confidence"
        if self.budget is not None:
            return f"{goal}: about {tell_money(self.budget, self.currency, about=True)}"
        most = tell_money(self.most, self.currency, about=True)
        return f"{goal}: not with up to {most}; what binds there is {self.outlooks[-1].binds}"

    def __repr__(self) -> str:
        """What it is, in a line."""
        what = self.answer() or f"{len(self.outlooks)} outlooks"
        return f"<Forecast: {what}, over {self.draws} curves, {self.source}>"

    def _repr_html_(self) -> str:
        head, *rows = self.rows
        return f"<div>{short_table(head, rows)}<p>{self!r}</p></div>".replace(
            "<Forecast", "&lt;Forecast"
        )


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
    """Forecast rounds, cost and accuracy for several allocators and budgets, or the budget that reaches a goal.

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
    if start is None and goal is None:
        drawn = curves(config, runs, draws)
        known = f"learned from {counted(len(runs), 'past run')}"
        source = known if runs else "nothing known of the task: give past runs with --past"
    elif runs or start is None or goal is None:
        raise ConfigError("--start and --goal belong together, and stand in for --past")
    else:
        drawn, source = (
            stated_curves(config, start, goal, draws),
            f"from {start:g} to {goal:g}, as stated",
        )
    total = decimal_money(config.purse().total)
    allocators = allocators or allocators_for(config)
    if reach is None:
        tried, wanted = list(budgets) or [total / 2, total, 2 * total], list(allocators)
    else:
        _check_goal(reach, confidence, budgets)
        tried, wanted = [total * part for part in BUDGETS], list(allocators[:1])
    results, failures = run_grid(
        forecast_cells(config, wanted, tried, drawn), None, jobs, progress=progress
    )
    if failures:
        raise ConfigError(f"the forecast with {failures[0].allocator} failed: {failures[0].error}")
    needed = None if reach is None else budget_for(reach, confidence, results)
    measure = metric_title(config.metric)
    found = list(outlooks(results, config))
    money, currency = past_outlook(config, runs), config.budget.currency
    return Forecast(
        found,
        len(runs),
        draws,
        source,
        measure,
        reach,
        confidence,
        needed,
        max(tried),
        money,
        currency,
    )


def _check_goal(reach: float, confidence: float, budgets: Sequence[float]) -> None:
    for name, value in (("reach", reach), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ConfigError(f"{name} must be a fraction between 0 and 1, like 0.85, got {value}")
    if budgets:
        raise ConfigError("give either a goal or budgets, not both: a goal looks for its budget")
