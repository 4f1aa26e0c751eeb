"""What reports draw: lines over an axis, each with a band where it is a mean. Pages and figures draw the same ones."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from bara.records import Prospect, decimal_money
from bara.reports.comparison import Comparison
from bara.reports.frontier import Frontier
from bara.reports.result import Result, by_setting, measure_of
from bara.reports.statistics import estimate

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
        look: Which colour and which dashes, by number, where two things are told apart; None for
            the line's own.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    faint: bool = False
    look: tuple[int, int] | None = None


@dataclass(frozen=True)
class Chart:
    """Lines over one axis.

    Attributes:
        title: What stands above it.
        x_name: What the axis is.
        y_name: What the lines are of.
        lines: What is drawn.
        marks: Places on the axis to point out, in print: where, and what is there.
        between: How low and how high the print goes, with a line at zero; None for as far as the
            lines go.
        per_cent: Whether the lines are of fractions, which are shown in per cent.
    """

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[float, str], ...] = ()
    between: tuple[float, float] | None = None
    per_cent: bool = False

    @property
    def name(self) -> str:
        """What its file is called, and `plot` takes: the title in small letters.

        >>> Chart("Accuracy over rounds", "round", "accuracy", ()).name
        'accuracy-over-rounds'
        """
        return re.sub(r"[^a-z0-9.]+", "-", self.title.lower()).strip("-")


def headline(words: str) -> str:
    """Words as a title begins with them.

    >>> headline("accuracy"), headline("AUC")
    ('Accuracy', 'AUC')
    """
    return words[:1].upper() + words[1:]


def run_charts(result: Result) -> list[Chart]:
    """One run: accuracy over rounds and over money, clients per round, money left, and beliefs."""
    history = result.history
    rounds = [entry["round"] for entry in history]
    accuracy = [entry["accuracy"] for entry in history]
    spent = list(accumulate(entry["cost"] for entry in history))
    recruited = [entry["n"] for entry in history][1:] or [0]
    name = result.measure
    charts = [
        Chart(
            f"{headline(name)} over rounds",
            "round",
            name,
            (Line(name, rounds, accuracy), *_forecast(history, name)),
            per_cent=True,
        ),
        Chart(
            f"{headline(name)} over money spent",
            "spent",
            name,
            (Line(name, spent, accuracy),),
            per_cent=True,
        ),
        Chart(
            "Clients per round",
            "round",
            "clients",
            (Line("clients", rounds[1:] or rounds, recruited),),
        ),
        Chart(
            "Money left",
            "round",
            "money",
            (Line("money left", rounds, [result.budget - s for s in spent]),),
        ),
    ]
    return charts + _belief(result.belief or {}, name) + _outlook(result)


def charts_of(shown: Result | Comparison) -> list[Chart]:
    """Every figure of a run's or a comparison's report; in a suite, of each setting."""
    if isinstance(shown, Result):
        return run_charts(shown)
    frontier = shown.frontier
    whole = (
        shown.results
        if frontier is None
        else [one for one in shown.results if one.share == frontier.full]
    )
    charts = [] if frontier is None else [frontier_chart(frontier)]
    for setting, runs in by_setting(whole).items():
        charts += [
            replace(one, title=f"{setting}: {one.title}" if setting else one.title)
            for one in comparison_charts(runs)
        ]
    return charts


def _looks(results: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Colours tell allocators apart and dashes what else was varied, where both are several."""
    allocators = [*dict.fromkeys(result.allocator for result in results)]
    variants = [*dict.fromkeys(result.variant for result in results)]
    if len(allocators) == 1 or len(variants) == 1:
        return {}
    return {r.name: (allocators.index(r.allocator), variants.index(r.variant)) for r in results}


def comparison_charts(results: Sequence[Result]) -> list[Chart]:
    """Several allocators, each the mean over its seeds; accuracy with the 95 % interval of that mean."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.name, []).append(result)
    looks = _looks(results)
    budget = max(result.budget for result in results)
    money = [budget * part / _PARTS for part in range(1, _PARTS + 1)]
    name = measure_of(results)
    kinds: tuple[tuple[str, str, str, Callable[[Result], Sequence[float]]], ...] = (
        (f"{headline(name)} over rounds", "round", name, _accuracy),
        (
            f"{headline(name)} over money spent",
            "spent",
            name,
            lambda run: _accuracy_for(run, money),
        ),
        ("Clients per round", "round", "clients", _clients),
        ("Money left", "round", "money", _money_left),
    )
    charts = []
    for title, x_name, y_name, values in kinds:
        lines = [
            replace(_mean_line(one, [values(run) for run in runs]), look=looks.get(one))
            for one, runs in groups.items()
        ]
        if x_name == "spent":
            lines = [replace(line, xs=money) for line in lines]
        if y_name != name:
            lines = [replace(line, band=None) for line in lines]
        charts.append(Chart(title, x_name, y_name, tuple(lines), per_cent=y_name == name))
    return charts


def frontier_chart(frontier: Frontier) -> Chart:
    """What accuracy each reaches with how much of the budget, with the 95 % interval of the mean."""
    shares = [100 * share for share in frontier.shares]
    lines = []
    for name in frontier.names:
        found = [frontier.accuracy(name, share) for share in frontier.shares]
        low, high = zip(*(one.within(0, 1) for one in found), strict=True)
        lines.append(Line(name, shares, [one.mean for one in found], (low, high)))
    title = f"{headline(frontier.measure)} over money"
    return Chart(title, "part of the budget, %", frontier.measure, tuple(lines), per_cent=True)


def _mean_line(name: str, columns: Sequence[Sequence[float]]) -> Line:
    """The mean over runs, from the first round on; one that has ended keeps its last value."""
    length = max(map(len, columns))
    found = [
        estimate([column[min(t, len(column) - 1)] for column in columns]) for t in range(length)
    ]
    pairs = [one.within(0, 1) for one in found]
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


def _forecast(history: Sequence[dict[str, Any]], measure: str) -> list[Line]:
    """What a planning allocator expected the final accuracy to be, as it went on."""
    told = [entry for entry in history if "forecast" in entry]
    if not told:
        return []
    low, mean, high = zip(*(entry["forecast"] for entry in told), strict=True)
    return [
        Line(
            f"expected final {measure}, 90 % interval",
            [entry["round"] for entry in told],
            mean,
            (low, high),
        )
    ]


def _belief(belief: dict[str, Any], measure: str) -> list[Chart]:
    """What the allocator expects of every n at the end, where it tells."""
    if (
        len(set(belief.get("mean") or ())) < 2
    ):  # once nothing is left to decide, every n comes to the same
        return []
    pairs = list(zip(belief["mean"], belief["deviation"], strict=True))
    band = (
        [mean - deviation for mean, deviation in pairs],
        [mean + deviation for mean, deviation in pairs],
    )
    line = Line("mean and deviation", belief["arms"], belief["mean"], band)
    return [
        Chart(
            "What the allocator believed at the end",
            "clients per round",
            f"final {measure}",
            (line,),
            per_cent=True,
        )
    ]


def _outlook(result: Result) -> list[Chart]:
    """Return the chart of what more money would buy, where the allocator's outlook tells."""
    outlook = (result.belief or {}).get("outlook") or {}
    prospects = [Prospect(**one) for one in outlook.get("prospects", ())]
    if len({one.accuracy for one in prospects}) < 2:
        return []
    spend = [decimal_money(one.spend) for one in prospects]
    accuracy = [one.accuracy for one in prospects]
    band = [one.low for one in prospects], [one.high for one in prospects]
    line = Line(f"{result.measure}, 90 % interval", spend, accuracy, band)
    enough = outlook.get("enough")
    marks = () if enough is None else ((decimal_money(enough), "enough"),)
    return [
        Chart(
            "What more money would buy",
            "spent in all",
            result.measure,
            (line,),
            marks,
            per_cent=True,
        )
    ]
