"""The summaries and tables that a person sees in the terminal."""

from collections.abc import Callable, Iterator, Sequence
from typing import final

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bara.allocators.prospects import PARTS
from bara.records import MoneyOutlook, decimal_money, tell_money
from bara.reports.comparison import Comparison, Failure, label
from bara.reports.comparison_table import (
    Best,
    comparison_note,
    comparison_rows,
    frontier_note,
    frontier_rows,
    suite_note,
    suite_rows,
    words,
)
from bara.reports.contributions import show_points
from bara.reports.fitted import Fitted, plain
from bara.reports.frames import column
from bara.reports.frontier import Frontier
from bara.reports.result import FEW, Result
from bara.reports.standings import Standings
from bara.text import counted, listing

_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 50


def spark_line(values: Sequence[float], width: int = _WIDEST) -> str:
    """Draw a curve in one line of text, thinned to the width.

    Args:
        values: The heights of the curve.
        width: The most characters that the line may have.

    >>> spark_line([0, 1, 2, 3])
    '▁▃▆█'
    """
    if not values:
        return ""
    step = max(len(values) / width, 1)
    shown = [values[int(i * step)] for i in range(int(len(values) / step) - 1)]
    shown.append(values[-1])
    low = min(values)
    high = max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0
    return "".join(_BARS[round((value - low) * scale)] for value in shown)


@final
class Spark:
    """A curve in one line of text, thinned to the room that there is.

    Args:
        values: The heights of the curve.
        style: The colour.
    """

    def __init__(self, values: Sequence[float], style: str) -> None:
        self._values = values
        self._style = style

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw the curve."""
        yield Text(spark_line(self._values, min(_WIDEST, options.max_width)), style=self._style)

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        """Return the least and the most room that it takes."""
        return Measurement(1, max(min(len(self._values), _WIDEST, options.max_width), 1))


def per_cent(value: float) -> str:
    """Show an accuracy in per cent."""
    return f"{100 * value:.1f} %"


KEPT = {
    "final": "final",
    "average": "kept: the average of the last models",
    "best": "kept: the best on validation",
}
"""The words for each way to choose the kept model."""


def run_summary(result: Result, places: dict[str, str]) -> RenderableType:
    """Return a panel on a finished run: accuracy, costs, payments, and where to read on.

    Args:
        result: The run.
        places: Files and folders to point to, by what they are.
    """

    def tell(amount: float) -> str:
        return tell_money(amount, result.currency)

    accuracies = column(result.history, "accuracy")
    clients = column(result.history[1:], "n")
    facts = Table.grid(padding=(0, 2))
    reached = [f"[bold]{per_cent(result.accuracy_kept)}[/] {KEPT[result.kept]}"]
    if result.kept != "final":
        reached.append(f"{per_cent(result.accuracy_final)} final")
    if result.kept != "best":
        reached.append(f"{per_cent(result.accuracy_best)} best")
    facts.add_row(result.measure, ", ".join(reached))
    facts.add_row("", Spark(accuracies, "green"))
    facts.add_row("clients / round", Spark(clients, "cyan"))
    spent = f"{tell(result.spent)} of {tell(result.budget)}"
    rounds = counted(result.rounds, "round")
    facts.add_row("spent", f"{spent} in {rounds} ({plain(result.ended)})")
    facts.add_row("left", f"{tell(result.budget - result.spent)} stays in the purse")
    most = list(result.payments.items())[:FEW]
    paid = ", ".join(f"{plain(client)} {tell(amount)}" for client, amount in most) or "nobody"
    share = 100 * result.share_of_most_paid(len(most))
    facts.add_row(
        "paid most",
        f"{paid} ({share:.0f} % of the money; {counted(len(result.payments), 'client')} paid)",
    )
    if result.never_paid:
        facts.add_row("[bold]never paid[/]", _never_paid(result.never_paid, tell))
    if "oldest" in result.history[-1]:
        last = result.history[-1]
        updates = counted(last["remembered"], "update")
        facts.add_row(
            "memory",
            f"{updates} of earlier rounds, the oldest {counted(last['oldest'], 'round')} old",
        )
    if result.contributions:
        contributed = [f"points of {result.measure}, nine rounds in ten:"]
        for client, one in list(result.contributions.items())[:6]:
            points = show_points(one)
            contributed.append(f"{plain(client)} {points}")
        facts.add_row("contributed", "\n".join(contributed))
    if result.lying is not None:
        facts.add_row("lying earned", lying_text(result))
    for name, place in places.items():
        facts.add_row(name, Text(place))
    allocation = f"{plain(result.allocator)} on {plain(result.mechanism)}"
    title = f"{result.dataset}, {counted(result.clients, 'client')}, {allocation}"
    return Panel(facts, title=title, title_align="left", expand=False)


def _never_paid(asked: dict[str, float], tell: Callable[[float], str]) -> str:
    """Return who was never paid, the cheapest first, and what they asked last."""
    told = [f"{plain(client)} (asked {tell(price)})" for client, price in asked.items()]
    return f"{listing(told)}: the model has not heard {counted(len(asked), 'client')}"


def lying_text(result: Result) -> str:
    """Show what strategic clients earned by lying, beside their profit and the truthful one."""
    earned = result.lying or {}
    gain = tell_money(earned["gain"], result.currency)
    profit = tell_money(earned["profit"], result.currency)
    truthful = tell_money(earned["truthful_profit"], result.currency)
    sign = "" if gain.startswith("-") else "+"
    return f"{sign}{gain} (profit {profit}, truthful {truthful})"


def comparison_table(
    results: Sequence[Result], failures: Sequence[Failure], against: str = ""
) -> RenderableType:
    """Return the table of allocators side by side; differences are paired by seed.

    Args:
        results: The runs that ended.
        failures: The runs that failed.
        against: What each line is measured against, as for `baselines`.
    """
    head, *rows = comparison_rows(results, against)
    table = Fitted(rich_table(head, rows, words(head)))
    told = comparison_note(results, head, rows, against)
    return Group(table, Text(told, style="dim"), *_lost(failures))


def rich_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, wrap: bool = False
) -> Table:
    """Return a table of texts, which are folded, and then of numbers, which are not cut.

    Args:
        head: The names of the columns.
        rows: The rows without the head.
        texts: The number of columns at the left that hold texts.
        wrap: True to let numbers take several lines.
    """
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for place, name in enumerate(head):
        if place < texts:
            longest = 0
            for row in rows:
                longest = max([longest, *map(len, row[place].split())])
            least = max(len(name), min(longest, 12))
            table.add_column(plain(name), overflow="fold", min_width=least)
        else:
            table.add_column(plain(name), justify="right", no_wrap=not wrap)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(text: str) -> str:
    return f"[bold]{plain(text)}[/]" if isinstance(text, Best) else plain(text)


def table_of(comparison: Comparison) -> RenderableType:
    """Return a comparison's main table: the frontier, the suite, or allocators side by side."""
    if comparison.frontier is not None:
        return frontier_table(comparison.frontier, comparison.failures)
    if comparison.standings is not None:
        return suite_table(comparison.standings, comparison.failures)
    return comparison_table(comparison.results, comparison.failures, comparison.against)


def _numbered(rows: list[list[str]]) -> list[Text]:
    """Replace long names by numbers and return their legend, which is empty if names are short.

    Names are long if more than the allocators was varied; they would leave no room for numbers.
    """
    names = [row[0] for row in rows]
    if not any(", " in name for name in names):
        return []
    for number, row in enumerate(rows, start=1):
        row[0] = str(number)
    return [Text(f" {number}  {plain(name)}") for number, name in enumerate(names, start=1)]


def frontier_table(frontier: Frontier, failures: Sequence[Failure]) -> RenderableType:
    """Return allocators down, shares of the budget across, and the share that each needs."""
    head, *rows = frontier_rows(frontier)
    legend = _numbered(rows)
    note = Text(frontier_note(frontier), style="dim")
    return Group(rich_table(head, rows, 1, wrap=True), *legend, note, *_lost(failures))


def _lost(failures: Sequence[Failure]) -> list[Text]:
    """Return a line for each run that failed."""
    return [Text(f"{label(one)}: {one.error}", style="red") for one in failures]


def suite_table(standings: Standings, failures: Sequence[Failure]) -> RenderableType:
    """Return settings down, allocators across, best bold; below, each allocator's standing."""
    head, *rows = suite_rows(standings)
    table = rich_table(head, rows, 1, wrap=True)
    table.rows[len(standings.settings) - 1].end_section = True
    return Group(table, Text(suite_note(standings), style="dim"), *_lost(failures))


def outlook_table(rows: Sequence[Sequence[str]], told: str) -> RenderableType:
    """Return the table of forecasts, how many are paid, what binds, and what was learned from.

    Args:
        rows: The rows of a forecast, head included; the last two columns, how many clients are paid
            and what binds, are told below the table, which has no room for them.
        told: What the forecasts were learned from, in a line.
    """
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    head, *lines = rows
    for name in head[:-2]:
        if name == "allocator":
            table.add_column(name, justify="left", overflow="fold")
        else:
            table.add_column(name, justify="right", overflow="ellipsis")
    for row in lines:
        table.add_row(*map(plain, row[:-2]))
    return Group(
        Fitted(table),
        Text(f"Clients paid: {_by_forecast(lines, -2)}."),
        Text(f"What binds: {_by_forecast(lines, -1)}."),
        Text(told, style="dim"),
    )


def _by_forecast(rows: Sequence[Sequence[str]], place: int) -> str:
    """Say what one column holds, and of which forecasts if that differs."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        budget, allocator = row[:2]
        found.setdefault(row[place], {}).setdefault(allocator, []).append(budget)
    if len(found) < 2:
        return next(iter(found), "")
    told = []
    for value, allocators in found.items():
        whose = [f"{name} with {', '.join(budgets)}" for name, budgets in allocators.items()]
        told.append(f"{value} ({'; '.join(whose)})")
    return ", ".join(told)


HALF = PARTS.index(0.5)
ALL = PARTS.index(1.0)
TWICE = PARTS.index(2.0)


def outlook_line(outlook: MoneyOutlook, currency: str | None = None) -> str:
    """Say what half, all and twice the money left would buy; "" where nothing is known."""
    if not outlook.prospects:
        return ""
    points = [outlook.prospects[place] for place in (HALF, ALL, TWICE)]
    line = ", ".join(f"{_about(one.spend, currency)}: {per_cent(one.accuracy)}" for one in points)
    if outlook.enough is not None:
        line += f"; enough: about {_about(outlook.enough, currency)}"
    return line


def goal_line(outlook: MoneyOutlook) -> str:
    """Say how likely a target is reached; "" without a target."""
    if outlook.sure is None or outlook.chance is None:
        return ""
    if outlook.out_of_reach:
        return "looks out of reach"
    sure = f"{100 * outlook.sure:.0f} %"
    chance = f"{100 * outlook.chance:.0f} %"
    return f"{sure} sure that it is reached; {chance} that it can be"


def _about(micros: int, currency: str | None) -> str:
    return tell_money(decimal_money(micros), currency, about=True)
