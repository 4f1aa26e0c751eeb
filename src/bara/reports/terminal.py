"""What a person sees in the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bara.records import tell_money
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
from bara.reports.frontier import Frontier
from bara.reports.result import Result
from bara.reports.standings import Standings
from bara.text import counted

_BARS = "▁▂▃▄▅▆▇█"


def spark_line(values: Sequence[float], width: int = 50) -> str:
    """A curve in one line of text, thinned to the width.

    >>> spark_line([0, 1, 2, 3])
    '▁▃▆█'
    """
    if not values:
        return ""
    step = max(len(values) / width, 1)
    shown = [*(values[int(i * step)] for i in range(int(len(values) / step) - 1)), values[-1]]
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0
    return "".join(_BARS[round((value - low) * scale)] for value in shown)


def per_cent(value: float) -> str:
    """An accuracy as people read it."""
    return f"{100 * value:.1f} %"


KEPT = {
    "final": "final",
    "average": "kept: the average of the last models",
    "best": "kept: the best on validation",
}
"""What is said of the model that is taken home."""


def run_summary(result: Result, places: dict[str, str]) -> RenderableType:
    """A finished run: what was reached, what it cost, who was paid, and where to read on."""
    accuracies = [entry["accuracy"] for entry in result.history]
    clients = [float(entry["n"]) for entry in result.history[1:]]
    facts = Table.grid(padding=(0, 2))
    kept = f"[bold]{per_cent(result.accuracy_kept)}[/] {KEPT[result.kept]}"
    others = {"final": result.accuracy_final, "best": result.accuracy_best}
    beside = [f"{per_cent(value)} {name}" for name, value in others.items() if name != result.kept]
    facts.add_row(result.measure, ", ".join([kept, *beside]))
    facts.add_row("", Text(spark_line(accuracies), style="green"))
    facts.add_row("clients / round", Text(spark_line(clients), style="cyan"))
    spent, budget = (tell_money(value, result.currency) for value in (result.spent, result.budget))
    facts.add_row(
        "spent", f"{spent} of {budget} in {counted(result.rounds, 'round')} ({plain(result.ended)})"
    )
    facts.add_row(
        "left", f"{tell_money(result.budget - result.spent, result.currency)} stays in the purse"
    )
    top = list(result.payments.items())[:5]
    paid = (
        ", ".join(
            f"{plain(client)} {tell_money(amount, result.currency)}" for client, amount in top
        )
        or "nobody"
    )
    facts.add_row("paid most", f"{paid} ({counted(len(result.payments), 'client')} paid)")
    if result.contributions:
        worth = [
            f"{plain(client)} {show_points(one)}"
            for client, one in list(result.contributions.items())[:6]
        ]
        facts.add_row(
            "contributed", "\n".join([f"points of {result.measure}, nine rounds in ten:", *worth])
        )
    if result.lying is not None:
        facts.add_row("lying earned", lying_text(result))
    for name, place in places.items():
        facts.add_row(name, Text(place))
    title = f"{result.dataset}, {counted(result.clients, 'client')}, {plain(result.allocator)} on {plain(result.mechanism)}"
    return Panel(facts, title=title, title_align="left", expand=False)


def lying_text(result: Result) -> str:
    """What strategic bidding earned, against asking the truth."""
    earned = result.lying or {}
    gain, profit, truthful = (
        tell_money(earned[key], result.currency) for key in ("gain", "profit", "truthful_profit")
    )
    return f"{'' if gain.startswith('-') else '+'}{gain} (profit {profit}, truthful {truthful})"


def comparison_table(results: Sequence[Result], failures: Sequence[Failure]) -> RenderableType:
    """Allocators side by side; differences are paired by seed."""
    head, *rows = comparison_rows(results)
    table = Fitted(rich_table(head, rows, words(head)))
    return Group(table, Text(comparison_note(results, head, rows), style="dim"), *_lost(failures))


def rich_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, wrap: bool = False
) -> Table:
    """A table whose first columns are texts, which are folded, and whose others are numbers, which are not cut."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for place, column in enumerate(head):
        if place < texts:
            longest = max((len(word) for row in rows for word in row[place].split()), default=0)
            table.add_column(
                plain(column), overflow="fold", min_width=max(len(column), min(longest, 12))
            )
        else:
            table.add_column(plain(column), justify="right", no_wrap=not wrap)
    for row in rows:
        table.add_row(
            *(f"[bold]{plain(cell)}[/]" if isinstance(cell, Best) else plain(cell) for cell in row)
        )
    return table


def table_of(comparison: Comparison) -> RenderableType:
    """The table that says the most of a comparison."""
    if comparison.frontier is not None:
        return frontier_table(comparison.frontier, comparison.failures)
    if comparison.standings is not None:
        return suite_table(comparison.standings, comparison.failures)
    return comparison_table(comparison.results, comparison.failures)


def _numbered(rows: list[list[str]]) -> list[Text]:
    """Where more than allocators are varied, put numbers for the names, which would leave no room, and list them."""
    names = [row[0] for row in rows]
    if not any(", " in name for name in names):
        return []
    for number, row in enumerate(rows, start=1):
        row[0] = str(number)
    return [Text(f" {number}  {plain(name)}") for number, name in enumerate(names, start=1)]


def frontier_table(frontier: Frontier, failures: Sequence[Failure]) -> RenderableType:
    """Allocators down, parts of the budget across, and what the baseline's accuracy costs each."""
    head, *rows = frontier_rows(frontier)
    legend = _numbered(rows)
    note = Text(frontier_note(frontier), style="dim")
    return Group(rich_table(head, rows, 1, wrap=True), *legend, note, *_lost(failures))


def _lost(failures: Sequence[Failure]) -> list[Text]:
    return [Text(f"{label(one)}: {one.error}", style="red") for one in failures]


def suite_table(standings: Standings, failures: Sequence[Failure]) -> RenderableType:
    """Settings down, allocators across, the best of each setting bold; below, where each allocator stands."""
    head, *rows = suite_rows(standings)
    table = rich_table(head, rows, 1, wrap=True)
    table.rows[len(standings.settings) - 1].end_section = True
    return Group(table, Text(suite_note(standings), style="dim"), *_lost(failures))


def outlook_table(rows: Sequence[Sequence[str]], told: str) -> RenderableType:
    """What each allocator would make of each budget, a head first, and in a line what that was learned from."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    head, *lines = rows
    for column in head[:-1]:
        name = column == "allocator"
        table.add_column(
            column, justify="left" if name else "right", overflow="fold" if name else "ellipsis"
        )
    for row in lines:
        table.add_row(*map(plain, row[:-1]))
    return Group(Fitted(table), Text(f"What binds: {_binds(lines)}."), Text(told, style="dim"))


def _binds(rows: Sequence[Sequence[str]]) -> str:
    """What keeps forecasts from being better, and, where that differs, which; it has no room in the table."""
    found: dict[str, dict[str, list[str]]] = {}
    for budget, allocator, *_, binds in rows:
        found.setdefault(binds, {}).setdefault(allocator, []).append(budget)
    whose = {
        binds: "; ".join(
            f"{allocator} with {', '.join(budgets)}" for allocator, budgets in those.items()
        )
        for binds, those in found.items()
    }
    return (
        ", ".join(f"{binds} ({who})" for binds, who in whose.items())
        if len(whose) > 1
        else next(iter(whose), "")
    )
