"""What reports draw: lines over an axis, each with a band where it is a mean. Pages and figures draw the same ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bara.experiments.results import Result
from bara.experiments.statistics import estimate


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
    """Lines over one axis."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]


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
    """Several allocators: the same over rounds, each the mean over its seeds with the 95 % interval of that mean."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.allocator, []).append(result)
    return [
        Chart(title, "round", name, tuple(mean_line(one, runs, value) for one, runs in groups.items()))
        for title, name, value in (
            ("Accuracy over rounds", "accuracy", _accuracy),
            ("Clients a round", "clients", _clients),
            ("Money left", "money", _money_left),
        )
    ]


def mean_line(name: str, runs: Sequence[Result], values: Callable[[Result], Sequence[float]]) -> Line:
    """The mean over runs, round by round; one that has ended keeps its last value."""
    rounds = range(1, max(run.rounds for run in runs) + 1)
    columns = [values(run) for run in runs]
    found = [estimate([column[min(t, len(column) - 1)] for column in columns]) for t in rounds]
    ys = [one.mean for one in found]
    if len(runs) < 2:
        return Line(name, list(rounds), ys)
    pairs = [(one.mean - (one.margin or 0), one.mean + (one.margin or 0)) for one in found]
    return Line(name, list(rounds), ys, ([low for low, _ in pairs], [high for _, high in pairs]))


def _accuracy(run: Result) -> list[float]:
    return [entry["accuracy"] for entry in run.history]


def _clients(run: Result) -> list[float]:
    return [entry["n"] for entry in run.history]


def _money_left(run: Result) -> list[float]:
    return [run.budget - spent for spent in accumulate(entry["cost"] for entry in run.history)]


def _forecast(history: Sequence[dict[str, Any]]) -> list[Line]:
    """What a planning allocator expected the final accuracy to be, as it went on."""
    told = [entry for entry in history if "forecast" in entry]
    if not told:
        return []
    low, mean, high = zip(*(entry["forecast"] for entry in told), strict=True)
    return [Line("expected final accuracy, 90 % interval", [entry["round"] for entry in told], mean, (low, high))]


def _belief(belief: dict[str, Any]) -> list[Chart]:
    """What the allocator expects of every n at the end, where it tells."""
    if not belief.get("mean"):
        return []
    pairs = list(zip(belief["mean"], belief["deviation"], strict=True))
    band = [mean - deviation for mean, deviation in pairs], [mean + deviation for mean, deviation in pairs]
    line = Line("mean and deviation", belief["arms"], belief["mean"], band)
    return [Chart("What the allocator believed at the end", "clients a round", "final accuracy", (line,))]
