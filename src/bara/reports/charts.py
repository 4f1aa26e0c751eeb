"""What reports draw: lines over an axis, each with a band where it is a mean. Pages and figures draw the same ones."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from bara.experiments.frontier import Frontier
from bara.experiments.results import Result
from bara.experiments.statistics import estimate

_PARTS = 100
"""Points of a curve over money."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: What the legend calls it.
        xs: Where its points are.
        ys: And how high.
        band: Below and above each point, where it is uncertain.
        faint: Whether it stands behind the others: one repetition of many.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    faint: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over one axis.

    Attributes:
        title: What stands above it.
        x_name: What the axis is.
        y_name: What the lines are of.
        lines: What is drawn.
        marks: Places on the axis to point out, in print: where, and what is there.
        between: How low and how high the print goes, with a line at zero; None for as far as the lines go.
    """

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[float, str], ...] = ()
    between: tuple[float, float] | None = None


def run_charts(result: Result) -> list[Chart]:
    """One run: accuracy over rounds and over money, clients a round, money left, and what the allocator believed."""
    history = result.history
    rounds = [entry["round"] for entry in history]
    accuracy = [entry["accuracy"] for entry in history]
    spent = list(accumulate(entry["cost"] for entry in history))
    recruited = [entry["n"] for entry in history][1:] or [0]
    charts = [
        Chart("Accuracy over rounds", "round", "accuracy", (Line("accuracy", rounds, accuracy), *_forecast(history))),
        Chart("Accuracy over money spent", "spent", "accuracy", (Line("accuracy", spent, accuracy),)),
        Chart("Clients a round", "round", "clients", (Line("clients", rounds[1:] or rounds, recruited),)),
        Chart("Money left", "round", "money", (Line("money left", rounds, [result.budget - s for s in spent]),)),
    ]
    return charts + _belief(result.belief or {})


def comparison_charts(results: Sequence[Result]) -> list[Chart]:
    """Several allocators, each the mean over its seeds; accuracy with the 95 % interval of that mean."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.name, []).append(result)
    budget = max(result.budget for result in results)
    money = [budget * part / _PARTS for part in range(1, _PARTS + 1)]
    kinds: tuple[tuple[str, str, str, Callable[[Result], Sequence[float]]], ...] = (
        ("Accuracy over rounds", "round", "accuracy", _accuracy),
        ("Accuracy over money spent", "spent", "accuracy", lambda run: _accuracy_for(run, money)),
        ("Clients a round", "round", "clients", _clients),
        ("Money left", "round", "money", _money_left),
    )
    charts = []
    for title, x_name, y_name, values in kinds:
        lines = [_mean_line(one, [values(run) for run in runs]) for one, runs in groups.items()]
        if x_name == "spent":
            lines = [replace(line, xs=money) for line in lines]
        if y_name != "accuracy":
            lines = [replace(line, band=None) for line in lines]
        charts.append(Chart(title, x_name, y_name, tuple(lines)))
    return charts


def frontier_chart(frontier: Frontier) -> Chart:
    """What accuracy each reaches with how much of the budget, with the 95 % interval of the mean."""
    shares = [100 * share for share in frontier.shares]
    lines = []
    for name in frontier.names:
        found = [frontier.accuracy(name, share) for share in frontier.shares]
        low, high = ([one.mean + sign * (one.margin or 0.0) for one in found] for sign in (-1, 1))
        lines.append(Line(name, shares, [one.mean for one in found], (low, high)))
    return Chart("Accuracy over money", "part of the budget, %", "accuracy", tuple(lines))


def _mean_line(name: str, columns: Sequence[Sequence[float]]) -> Line:
    """The mean over runs, from the first round on; one that has ended keeps its last value."""
    length = max(map(len, columns))
    found = [estimate([column[min(t, len(column) - 1)] for column in columns]) for t in range(length)]
    pairs = [(max(one.mean - (one.margin or 0), 0.0), min(one.mean + (one.margin or 0), 1.0)) for one in found]
    band = ([low for low, _ in pairs], [high for _, high in pairs]) if len(columns) > 1 else None
    return Line(name, list(range(1, length + 1)), [one.mean for one in found], band)


def _rounds(run: Result) -> list[dict[str, Any]]:
    """The rounds played; of a run that could not pay the first, the initial model."""
    return run.history[1:] or run.history[:1]


def _accuracy(run: Result) -> list[float]:
    return [entry["accuracy"] for entry in _rounds(run)]


def _accuracy_for(run: Result, money: Sequence[float]) -> list[float]:
    """The accuracy reached with so much money, for each amount."""
    spent = list(accumulate(entry["cost"] for entry in run.history))
    return [run.history[bisect_right(spent, amount) - 1]["accuracy"] for amount in money]


def _clients(run: Result) -> list[float]:
    return [entry["n"] for entry in _rounds(run)]


def _money_left(run: Result) -> list[float]:
    return [run.budget - spent for spent in accumulate(entry["cost"] for entry in _rounds(run))]


def _forecast(history: Sequence[dict[str, Any]]) -> list[Line]:
    """What a planning allocator expected the final accuracy to be, as it went on."""
    told = [entry for entry in history if "forecast" in entry]
    if not told:
        return []
    low, mean, high = zip(*(entry["forecast"] for entry in told), strict=True)
    return [Line("expected final accuracy, 90 % interval", [entry["round"] for entry in told], mean, (low, high))]


def _belief(belief: dict[str, Any]) -> list[Chart]:
    """What the allocator expects of every n at the end, where it tells."""
    if len(set(belief.get("mean") or ())) < 2:  # once nothing is left to decide, every n comes to the same
        return []
    pairs = list(zip(belief["mean"], belief["deviation"], strict=True))
    band = [mean - deviation for mean, deviation in pairs], [mean + deviation for mean, deviation in pairs]
    line = Line("mean and deviation", belief["arms"], belief["mean"], band)
    return [Chart("What the allocator believed at the end", "clients a round", "final accuracy", (line,))]
