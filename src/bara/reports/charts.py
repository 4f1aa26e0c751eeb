"""The charts of reports: lines over an axis, the same on HTML pages and in printed figures."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean
from typing import Any, NamedTuple

from bara.records import decimal_money
from bara.reports.comparison import Comparison
from bara.reports.dots import DotChart, comparison_dots, file_name, standings_dots
from bara.reports.frames import column
from bara.reports.frontier import Frontier
from bara.reports.result import Result, by_setting, measure_of, short_key
from bara.reports.statistics import estimate
from bara.text import counted, headline

_STEPS = 100
"""The number of points of a curve over money."""

MOST_BANDS = 4
"""The most lines of a chart that show intervals; more would hide each other."""

SHADES = "Shades: 95 % intervals."
"""The note below charts with intervals."""


class Look(NamedTuple):
    """The look of a line whose colour and whose dashes stand for two different things.

    Attributes:
        colour: The number of the colour.
        dashes: The number of the dashes.
        colour_name: What the colour stands for, for the legend.
        dashes_name: What the dashes stand for, for the legend.
    """

    colour: int
    dashes: int
    colour_name: str
    dashes_name: str


@dataclass(frozen=True)
class ChartLine:
    """A line of a chart.

    Attributes:
        name: The label in the legend.
        xs: The positions of the points along the axis.
        ys: The heights of the points.
        band: The lower and the upper end of each point's interval; None without intervals.
        faint: True for a line behind the others, such as one repetition of many.
        look: What colour and dashes stand for, where these are two things; None to number both by
            the line's place in the chart.
        dot: The number of the point to mark with a dot; None for no dot.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    faint: bool = False
    look: Look | None = None
    dot: int | None = None


@dataclass(frozen=True)
class Chart:
    """A chart of lines over one axis.

    Attributes:
        title: The text above the chart.
        x_name: The label of the horizontal axis.
        y_name: The label of the vertical axis.
        lines: The lines to draw.
        marks: Places on the horizontal axis to point out, each with its label.
        between: The lower and the upper limit of the vertical axis; None to fit the lines.
        zero_line: True for a line that marks zero, where values lie on both sides of it.
        per_cent: True for lines of fractions, which are shown in per cent.
        from_zero: True for a vertical axis that begins at zero; otherwise it fits the lines.
        has_log_x: True for a logarithmic horizontal axis.
        note: The text below a printed chart.
    """

    title: str
    x_name: str
    y_name: str
    lines: tuple[ChartLine, ...]
    marks: tuple[tuple[float, str], ...] = ()
    between: tuple[float, float] | None = None
    zero_line: bool = False
    per_cent: bool = False
    from_zero: bool = False
    has_log_x: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        """The title's first line in small letters: the name of the chart's file and in `plot`.

        >>> Chart("Accuracy over rounds", "round", "accuracy", ()).name
        'accuracy-over-rounds'
        """
        return file_name(self.title)


def run_charts(result: Result) -> list[Chart]:
    """Return the charts of one run: accuracy, clients, money left, and the allocator's beliefs."""
    history = result.history
    rounds = column(history, "round")
    accuracy = column(history, "accuracy")
    spent = list(accumulate(column(history, "cost")))
    left = [result.budget - amount for amount in spent]
    name = result.measure
    by_round = [ChartLine(name, rounds, accuracy), *_forecast(history, name)]
    by_money = ChartLine(name, spent, accuracy)
    clients = ChartLine("clients", rounds[1:] or rounds, column(history[1:], "n") or [0])
    money_left = ChartLine("money left", rounds, left)
    title = headline(name)
    return [
        Chart(f"{title} over rounds", "round", name, tuple(by_round), per_cent=True),
        Chart(f"{title} over money spent", "spent", name, (by_money,), per_cent=True),
        Chart("Clients per round", "round", "clients", (clients,)),
        Chart("Money left", "round", "money", (money_left,)),
        *_belief(result.belief or {}, name),
        *_outlook(result),
    ]


def charts_of(shown: Result | Comparison) -> Sequence[Chart | DotChart]:
    """Return every chart of a run's or a comparison's report; in a suite, of each setting."""
    if isinstance(shown, Result):
        return run_charts(shown)
    results = shown.results
    frontier = shown.frontier
    charts: list[Chart | DotChart] = []
    if shown.standings is not None:
        charts += standings_dots(shown.standings)
    if frontier is not None:
        charts.append(frontier_chart(frontier))
        results = [one for one in results if one.share == frontier.full]
    for setting, runs in by_setting(results).items():
        for chart in comparison_charts(runs, shown.against, shown.pilots):
            title = f"{setting}: {chart.title}" if setting else chart.title
            charts.append(replace(chart, title=title))
    return charts


def _looks(results: Sequence[Result]) -> dict[str, Look]:
    """Give each allocator a colour and each variant dashes, if there are several of both."""
    allocators = list(dict.fromkeys(result.allocator for result in results))
    variants = list(dict.fromkeys(result.variant for result in results))
    if len(allocators) == 1 or len(variants) == 1:
        return {}
    looks = {}
    for one in results:
        colour = allocators.index(one.allocator)
        dashes = variants.index(one.variant)
        looks[one.name] = Look(colour, dashes, one.allocator, one.variant or "as configured")
    return looks


def comparison_charts(
    results: Sequence[Result], against: str = "", pilots: Sequence[Result] = ()
) -> Sequence[Chart | DotChart]:
    """Return the charts of several allocators: what is compared, then the way there.

    Each line is the mean over an allocator's seeds, and ends where the last of them does. Lines of
    accuracy have the 95 % interval of that mean, where they are not too many.

    Args:
        results: The runs to draw.
        against: What each line is measured against, as for `baselines`.
        pilots: The runs that tuning chose by; those of other settings and budgets are not drawn.
    """
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.name, []).append(result)
    looks = _looks(results)
    measure = measure_of(results)

    def chart(
        title: str, x_name: str, y_name: str, mean: Callable[[str, Sequence[Result]], ChartLine]
    ) -> Chart:
        lines = []
        for name, runs in groups.items():
            line = mean(name, runs)
            if y_name != measure or len(groups) > MOST_BANDS:
                line = replace(line, band=None)
            lines.append(replace(line, look=looks.get(name)))
        note = SHADES if any(line.band for line in lines) else ""
        per_cent = y_name == measure
        return Chart(title, x_name, y_name, tuple(lines), per_cent=per_cent, note=note)

    title = headline(measure)
    return [
        *comparison_dots(results, against),
        chart(f"{title} over rounds", "round", measure, _mean_accuracy),
        chart(f"{title} over money spent", "spent", measure, _mean_accuracy_for_money),
        chart("Clients per round", "round", "clients", _mean_clients),
        chart("Money left", "round", "money", _mean_money_left),
        *_sensitivity(results, pilots, looks),
    ]


def _sensitivity(
    results: Sequence[Result], pilots: Sequence[Result], looks: Mapping[str, Look]
) -> list[Chart]:
    """Return the chart of validation accuracy over what was tuned, if that is a single number.

    Values with a failed pilot run are left out, as they were for the choice.
    """
    chosen = {(one.setting, one.share, one.name): one.tuned for one in results}
    own = [one for one in pilots if (one.setting, one.share, one.name) in chosen]
    keys: set[str] = set()
    for one in own:
        keys.update(one.tuned)
    if len(keys) != 1:
        return []
    (key,) = keys
    values = [one.tuned[key] for one in own]
    if not all(type(value) in (int, float) for value in values):
        return []
    scores: dict[Any, dict[float, list[float]]] = {}
    for one, value in zip(own, values, strict=True):
        by_value = scores.setdefault((one.setting, one.share, one.name), {})
        by_value.setdefault(value, []).append(one.validated)
    lines = []
    for contestant, by_value in scores.items():
        seeds = max(map(len, by_value.values()))
        xs = sorted(value for value, found in by_value.items() if len(found) == seeds)
        ys = [fmean(by_value[value]) for value in xs]
        best = chosen[contestant].get(key)
        dot = xs.index(best) if best in xs else None
        name = contestant[-1]
        lines.append(ChartLine(name, xs, ys, look=looks.get(name), dot=dot))
    seeds = len({one.seed for one in own})
    x_name = f"{short_key(key)} (dot: chosen by {counted(seeds, 'pilot')})"
    y_name = f"validation {measure_of(results)}"
    has_log_x = min(values) > 0
    return [Chart("Sensitivity", x_name, y_name, tuple(lines), per_cent=True, has_log_x=has_log_x)]


def frontier_chart(frontier: Frontier) -> Chart:
    """Return the chart of mean accuracy over shares of the budget, with 95 % intervals."""
    shares = [100 * share for share in frontier.shares]
    lines = []
    for name in frontier.names:
        found = [frontier.accuracy(name, share) for share in frontier.shares]
        means = [one.mean for one in found]
        ends = [one.within(0, 1) for one in found]
        low, high = zip(*ends, strict=True)
        band = (low, high) if len(frontier.names) <= MOST_BANDS else None
        lines.append(ChartLine(name, shares, means, band))
    title = f"{headline(frontier.measure)} over money"
    note = SHADES if any(line.band for line in lines) else ""
    x_name = "part of the budget, %"
    return Chart(title, x_name, frontier.measure, tuple(lines), per_cent=True, note=note)


def _mean_line(name: str, xs: Sequence[float], columns: Sequence[Sequence[float]]) -> ChartLine:
    """Return the line of the mean over runs, one column of values for each place along the axis."""
    means: list[float] = []
    lows: list[float] = []
    highs: list[float] = []
    for values in columns:
        found = estimate(values)
        low, high = found.within(0, 1)
        means.append(found.mean)
        lows.append(low)
        highs.append(high)
    band = (lows, highs) if max(map(len, columns)) > 1 else None
    return ChartLine(name, xs, means, band)


def _by_round(name: str, runs: Sequence[Sequence[float]], *, until_the_end: bool) -> ChartLine:
    """Return the mean over runs by round.

    Args:
        name: The label in the legend.
        runs: The values of each run, by round.
        until_the_end: True if a run that has ended counts with its last value, False if it no
            longer counts.
    """
    rounds = range(max(map(len, runs)))
    columns = []
    for t in rounds:
        going = [values[t] for values in runs if t < len(values)]
        if until_the_end:
            going += [values[-1] for values in runs if t >= len(values)]
        columns.append(going)
    return _mean_line(name, [t + 1 for t in rounds], columns)


def _rounds(run: Result) -> list[dict[str, Any]]:
    """Return the rounds played, or the initial model if the money did not pay for a first round."""
    return run.history[1:] or run.history[:1]


def _mean_accuracy(name: str, runs: Sequence[Result]) -> ChartLine:
    values = [column(_rounds(run), "accuracy") for run in runs]
    return _by_round(name, values, until_the_end=True)


def _mean_accuracy_for_money(name: str, runs: Sequence[Result]) -> ChartLine:
    """Return the mean accuracy for money, up to the most that any of the runs spent."""
    spent = [list(accumulate(column(run.history, "cost"))) for run in runs]
    most = max(amounts[-1] for amounts in spent)
    money = [most * step / _STEPS for step in range(_STEPS)] + [most]
    columns = []
    for amount in money:
        reached = []
        for run, amounts in zip(runs, spent, strict=True):
            reached.append(run.history[bisect_right(amounts, amount) - 1]["accuracy"])
        columns.append(reached)
    return _mean_line(name, money, columns)


def _mean_clients(name: str, runs: Sequence[Result]) -> ChartLine:
    values = [column(_rounds(run), "n") for run in runs]
    return _by_round(name, values, until_the_end=False)


def _mean_money_left(name: str, runs: Sequence[Result]) -> ChartLine:
    values = []
    for run in runs:
        spent = accumulate(column(_rounds(run), "cost"))
        values.append([run.budget - amount for amount in spent])
    return _by_round(name, values, until_the_end=True)


def _forecast(history: Sequence[dict[str, Any]], measure: str) -> list[ChartLine]:
    """Return the line of the final accuracy that a planning allocator expected in each round."""
    told = [entry for entry in history if "forecast" in entry]
    if not told:
        return []
    low, mean, high = zip(*column(told, "forecast"), strict=True)
    name = f"expected final {measure}, 90 % interval"
    return [ChartLine(name, column(told, "round"), mean, (low, high))]


def _belief(belief: dict[str, Any], measure: str) -> list[Chart]:
    """Return the chart of the final accuracy that the allocator expected of each n."""
    means = belief.get("mean") or []
    if len(set(means)) < 2:  # once nothing is left to decide, the belief is the same for every n
        return []
    lows = []
    highs = []
    for mean, deviation in zip(means, belief["deviation"], strict=True):
        lows.append(mean - deviation)
        highs.append(mean + deviation)
    line = ChartLine("mean and deviation", belief["arms"], means, (lows, highs))
    title = "What the allocator believed at the end"
    return [Chart(title, "clients per round", f"final {measure}", (line,), per_cent=True)]


def _outlook(result: Result) -> list[Chart]:
    """Return the chart of what more money would buy, where the allocator told its outlook."""
    outlook = (result.belief or {}).get("outlook") or {}
    prospects = outlook.get("prospects", ())
    accuracy = column(prospects, "accuracy")
    if len(set(accuracy)) < 2:
        return []
    measure = result.measure
    spend = list(map(decimal_money, column(prospects, "spend")))
    band = (column(prospects, "low"), column(prospects, "high"))
    line = ChartLine(f"{measure}, 90 % interval", spend, accuracy, band)
    enough = outlook.get("enough")
    marks = () if enough is None else ((decimal_money(enough), "enough"),)
    title = "What more money would buy"
    return [Chart(title, "spent in all", measure, (line,), marks, per_cent=True)]
