"""What a person sees in the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bara.experiments.comparison import Failure, label
from bara.experiments.forecasts import Outlook
from bara.experiments.frontier import Frontier
from bara.experiments.paper.analysis import ExhibitResult
from bara.experiments.results import Result
from bara.experiments.statistics import estimate
from bara.experiments.suites import Standings
from bara.reports._rows import comparison_rows, frontier_rows, show_estimate
from bara.reports.paper import table_rows, tabled, told
from bara.reports.tables import plain

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


KEPT = {"final": "final", "average": "kept: the average of the last models", "best": "kept: the best on validation"}
"""What is said of the model that is taken home."""


def run_summary(result: Result, places: dict[str, str]) -> RenderableType:
    """A finished run: what was reached, what it cost, who was paid, and where to read on."""
    accuracies = [entry["accuracy"] for entry in result.history]
    clients = [float(entry["n"]) for entry in result.history[1:]]
    facts = Table.grid(padding=(0, 2))
    kept = f"[bold]{per_cent(result.accuracy_kept)}[/] {KEPT[result.kept]}"
    others = {"final": result.accuracy_final, "best": result.accuracy_best}
    beside = [f"{per_cent(value)} {name}" for name, value in others.items() if name != result.kept]
    facts.add_row("accuracy", ", ".join([kept, *beside]))
    facts.add_row("", Text(spark_line(accuracies), style="green"))
    facts.add_row("clients a round", Text(spark_line(clients), style="cyan"))
    facts.add_row("spent", f"{result.spent:,.2f} of {result.budget:,.2f} in {result.rounds} rounds ({result.ended})")
    top = list(result.payments.items())[:5]
    paid = ", ".join(f"{plain(client)} {amount:,.2f}" for client, amount in top) or "nobody"
    facts.add_row("paid most", f"{paid} ({len(result.payments)} clients paid)")
    if result.lying is not None:
        facts.add_row("lying earned", lying_text(result))
    for name, place in places.items():
        facts.add_row(name, Text(place))
    title = f"{result.dataset}, {result.clients} clients, {plain(result.allocator)} on {plain(result.mechanism)}"
    return Panel(facts, title=title, title_align="left", expand=False)


def lying_text(result: Result) -> str:
    """What strategic bidding earned, against asking the truth."""
    earned = result.lying or {}
    return f"{earned['gain']:+,.2f} (profit {earned['profit']:,.2f}, truthful {earned['truthful_profit']:,.2f})"


def comparison_table(results: Sequence[Result], failures: Sequence[Failure]) -> RenderableType:
    """Allocators side by side; differences are paired by seed, against the first."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    (first, *others), *rows = comparison_rows(results)
    legend = _numbered(rows)
    table.add_column(first, overflow="fold")
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(plain, row))
    seeds = len({result.seed for result in results})
    note = Text(f"Accuracy in per cent, mean ± half of the 95 % interval over {seeds} paired seeds.", style="dim")
    if "p" in others:
        note.append(" p: how often chance alone makes such a difference, corrected for how many are compared (Holm).")
    if "lying" in others:
        note.append(" Lying: what the strategic clients earned beyond asking their cost.")
    return Group(table, *legend, note, *_lost(failures))


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
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    legend = _numbered(rows)
    table.add_column(head[0], overflow="fold")
    for column in head[1:]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*map(plain, row))
    note = Text(
        "Accuracy of the kept model in per cent for each part of the budget, mean ± half of the 95 % interval. Needed: "
        f"which part reaches what {frontier.baseline} reaches with {100 * frontier.full:g} % of it.",
        style="dim",
    )
    return Group(table, *legend, note, *_lost(failures))


def _lost(failures: Sequence[Failure]) -> list[Text]:
    return [Text(f"{label(one)}: {one.error}", style="red") for one in failures]


def exhibit_table(shown: ExhibitResult) -> RenderableType:
    """A figure or table of the paper: its rows where they are few, what is claimed and what was measured."""
    parts: list[RenderableType] = [Text(f"{shown.exhibit.name}: {shown.exhibit.title}", style="bold")]
    if tabled(shown):
        table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
        head, *rows = table_rows(shown)
        for place, column in enumerate(head):
            table.add_column(column, justify="right" if place > 1 else "left", no_wrap=place > 1)
        for row in rows:
            table.add_row(*map(plain, row))
        parts.append(table)
    parts += [Text.assemble((f"{name}: ", "bold"), text) for name, text in told(shown).items()]
    return Group(*parts, Text())


def suite_table(standings: Standings, failures: Sequence[Failure]) -> RenderableType:
    """Settings down, allocators across, the best of each setting bold; below, where each allocator stands."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    table.add_column("setting", no_wrap=True)
    for allocator in standings.allocators:
        table.add_column(plain(allocator), justify="right")
    for setting in standings.settings:
        finals = [estimate(list(standings.final(setting.name, one).values())) for one in standings.allocators]
        best = max(final.mean for final in finals)
        shown = [f"[bold]{show_estimate(final)}[/]" if final.mean == best else show_estimate(final) for final in finals]
        table.add_row(plain(setting.name), *shown)
    table.add_section()
    all_of_them = [standings.of(allocator) for allocator in standings.allocators]
    table.add_row("mean", *(f"{100 * one.final:.1f}" for one in all_of_them))
    table.add_row("mean, last 10 rounds", *(f"{100 * one.last10:.1f}" for one in all_of_them))
    table.add_row(f"less {standings.baseline}", *(show_estimate(one.gain, signed=True) for one in all_of_them))
    table.add_row("of its error, per cent", *(f"{100 * (one.error_removed or 0):+.1f}" for one in all_of_them))
    table.add_row("less the best rival", *(show_estimate(one.over_rivals, signed=True) for one in all_of_them))
    note = Text(
        "Accuracy of the kept model in per cent, mean ± half of the 95 % interval over paired seeds. The part of the "
        "error is over settings that are not IID; the best rival is another allocator, chosen in each setting in "
        "hindsight.",
        style="dim",
    )
    return Group(table, note, *_lost(failures))


def outlook_table(found: Sequence[Outlook], past: int, draws: int) -> RenderableType:
    """What each allocator would make of each budget."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    table.add_column("budget", justify="right")
    table.add_column("allocator", no_wrap=True)
    for column in ("final accuracy", "90 % interval", "rounds", "spent"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        low, mean, high = one.accuracy
        between = f"{100 * low:.1f} to {100 * high:.1f}"
        spent, rounds = one.spent[1], one.rounds[1]
        row = (f"{one.budget:,.0f}", plain(one.allocator), per_cent(mean), between, f"{rounds:.0f}", f"{spent:,.0f}")
        table.add_row(*row)
    source = f"learned from {past} past runs" if past else "nothing known of the task: give past runs with --past"
    return Group(table, Text(f"Over {draws} imagined learning curves, {source}.", style="dim"))
