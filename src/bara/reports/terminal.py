"""What a person sees in the terminal: runs, comparisons, forecasts, audits, datasets, and a ledger's account."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bara.datasets import Availability, Report
from bara.experiments.comparison import Failure
from bara.experiments.forecasts import Outlook
from bara.experiments.paper.analysis import ExhibitResult
from bara.experiments.results import Result
from bara.experiments.standings import Standings
from bara.experiments.statistics import estimate
from bara.ledger.statements import ClientTotal, Line, RoundTotal, Statement
from bara.mechanisms.audit import Finding
from bara.records import show_money
from bara.reports._rows import comparison_rows, show_estimate
from bara.reports.paper import table_rows, told

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


def run_summary(result: Result, places: dict[str, str]) -> RenderableType:
    """A finished run: what was reached, what it cost, who was paid, and where to read on."""
    accuracies = [entry["accuracy"] for entry in result.history]
    clients = [float(entry["n"]) for entry in result.history[1:]]
    facts = Table.grid(padding=(0, 2))
    facts.add_row(
        "accuracy", f"[bold]{per_cent(result.accuracy_final)}[/] final, {per_cent(result.accuracy_best)} best"
    )
    facts.add_row("", Text(spark_line(accuracies), style="green"))
    facts.add_row("clients a round", Text(spark_line(clients), style="cyan"))
    facts.add_row("spent", f"{result.spent:,.2f} of {result.budget:,.2f} in {result.rounds} rounds ({result.ended})")
    top = list(result.payments.items())[:5]
    paid = ", ".join(f"{_plain(client)} {amount:,.2f}" for client, amount in top) or "nobody"
    facts.add_row("paid most", f"{paid} ({len(result.payments)} clients paid)")
    if result.lying is not None:
        facts.add_row("lying earned", lying_text(result))
    for name, place in places.items():
        facts.add_row(name, Text(place))
    title = f"{result.dataset}, {result.clients} clients, {_plain(result.allocator)} on {_plain(result.mechanism)}"
    return Panel(facts, title=title, title_align="left", expand=False)


def lying_text(result: Result) -> str:
    """What strategic bidding earned, against asking the truth."""
    earned = result.lying or {}
    return f"{earned['gain']:+,.2f} (profit {earned['profit']:,.2f}, truthful {earned['truthful_profit']:,.2f})"


def comparison_table(results: Sequence[Result], failures: Sequence[Failure]) -> RenderableType:
    """Allocators side by side; differences are paired by seed, against the first."""
    table = _table()
    (first, *others), *rows = comparison_rows(results)
    table.add_column(first, overflow="fold")
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_plain, row))
    lost = [Text(f"{f.allocator}, seed {f.seed}: {f.error}", style="red") for f in failures]
    seeds = len({result.seed for result in results})
    note = Text(f"Accuracy in per cent, mean ± half of the 95 % interval over {seeds} paired seeds.", style="dim")
    if len(rows) > 1:
        note.append(" p: how often chance alone makes such a difference, corrected for how many are compared (Holm).")
    if "lying" in others:
        note.append(" Lying: what the strategic clients earned beyond asking their cost.")
    return Group(table, note, *lost)


def exhibit_table(shown: ExhibitResult) -> RenderableType:
    """A figure or table of the paper: its rows where they are few, what is claimed and what was measured."""
    parts: list[RenderableType] = [Text(f"{shown.exhibit.name}: {shown.exhibit.title}", style="bold")]
    if shown.rows and "final" in shown.rows[0]:
        table = _table()
        head, *rows = table_rows(shown)
        for place, column in enumerate(head):
            table.add_column(column, justify="right" if place > 1 else "left", no_wrap=place > 1)
        for row in rows:
            table.add_row(*map(_plain, row))
        parts.append(table)
    parts += [Text.assemble((f"{name}: ", "bold"), text) for name, text in told(shown).items()]
    return Group(*parts, Text())


def suite_table(standings: Standings, failures: Sequence[Failure]) -> RenderableType:
    """Settings down, allocators across, the best of each setting bold; below, where each allocator stands."""
    table = _table()
    table.add_column("setting", no_wrap=True)
    for allocator in standings.allocators:
        table.add_column(_plain(allocator), justify="right")
    for setting in standings.settings:
        finals = [estimate(list(standings.final(setting.name, one).values())) for one in standings.allocators]
        best = max(final.mean for final in finals)
        shown = [f"[bold]{show_estimate(final)}[/]" if final.mean == best else show_estimate(final) for final in finals]
        table.add_row(_plain(setting.name), *shown)
    table.add_section()
    all_of_them = [standings.of(allocator) for allocator in standings.allocators]
    table.add_row("mean", *(f"{100 * one.final:.1f}" for one in all_of_them))
    table.add_row("mean, last 10 rounds", *(f"{100 * one.last10:.1f}" for one in all_of_them))
    table.add_row(f"less {standings.baseline}", *(show_estimate(one.gain, signed=True) for one in all_of_them))
    table.add_row("of its error, per cent", *(f"{100 * (one.error_removed or 0):+.1f}" for one in all_of_them))
    table.add_row("less the best rival", *(show_estimate(one.over_rivals, signed=True) for one in all_of_them))
    note = Text(
        "Final accuracy in per cent, mean ± half of the 95 % interval over paired seeds. The part of the error is over "
        "settings that are not IID; the best rival is another allocator, chosen in each setting in hindsight.",
        style="dim",
    )
    lost = [Text(f"{f.setting}, {f.allocator}, seed {f.seed}: {f.error}", style="red") for f in failures]
    return Group(table, note, *lost)


def outlook_table(found: Sequence[Outlook], past: int, draws: int) -> RenderableType:
    """What each allocator would make of each budget."""
    table = _table()
    table.add_column("budget", justify="right")
    table.add_column("allocator", no_wrap=True)
    for column in ("final accuracy", "90 % interval", "rounds", "spent"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        low, mean, high = one.accuracy
        between = f"{100 * low:.1f} to {100 * high:.1f}"
        spent, rounds = one.spent[1], one.rounds[1]
        row = (f"{one.budget:,.0f}", _plain(one.allocator), per_cent(mean), between, f"{rounds:.0f}", f"{spent:,.0f}")
        table.add_row(*row)
    source = f"learned from {past} past runs" if past else "nothing known of the task: give past runs with --past"
    return Group(table, Text(f"Over {draws} imagined learning curves, {source}.", style="dim"))


def audit_table(mechanism: str, findings: Sequence[Finding]) -> RenderableType:
    """What an audit found, property by property."""
    table = Table(box=SIMPLE_HEAD, title=f"audit of {_plain(mechanism)}", title_justify="left", header_style="bold")
    table.add_column("property")
    table.add_column("claimed")
    table.add_column("found")
    for finding in findings:
        claimed = "yes" if finding.claimed else "no"
        if finding.counter_example is None:
            found = Text(f"holds in {finding.trials:,} trials", style="green")
        else:
            found = Text(f"counter-example: {finding.counter_example}", style="red" if finding.claimed else "yellow")
        table.add_row(finding.name, claimed, found)
    return table


def datasets_table(found: Sequence[Availability]) -> RenderableType:
    """Which datasets are here, and how to get the others."""
    table = _table(collapse_padding=False)
    for column in ("dataset", "status", "where, or how to get it"):
        table.add_column(column, overflow="fold")
    for one in found:
        colour = "yellow" if one.status == "missing" else "green"
        table.add_row(_plain(one.name), f"[{colour}]{one.status}[/]", _plain(str(one.path or one.command or "")))
    return table


def verification(report: Report) -> RenderableType:
    """What checking a dataset found."""
    lines = [Text(f"{report.name}: {report.format} at {report.path or 'scikit-learn'}", style="bold")]
    lines += [Text(problem, style="red") for problem in report.problems]
    if report.ok:
        counts = f"{sum(report.train_counts):,} training and {sum(report.test_counts):,} test samples"
        lines.append(Text(f"as published ({report.version or 'no published checksum'}): {counts}", style="green"))
    return Group(*lines)


def statement_tables(account: Statement) -> RenderableType:
    """By client, by round, and the totals."""
    private = any(c.privacy is not None for c in account.clients)
    clients = _account_table("client", "won", "void", "asked", "promised", "paid", *["privacy"] * private)
    for c in account.clients:
        amounts = (_amount(c.asked), _amount(c.promised), _amount(c.paid))
        clients.add_row(Text(c.client), str(c.won), str(c.void), *amounts, *[_epsilon(c.privacy)] * private)
    return Group(Text(f"run {account.run}", style="bold"), clients, _rounds(account.rounds), _totals(account))


def own_table(total: ClientTotal, own: Sequence[Line]) -> RenderableType:
    """One client's own account."""
    table = _account_table("round", "asked", "promised", "paid", "why not")
    for line in own:
        paid = "not settled" if line.paid is None else show_money(line.paid)
        table.add_row(str(line.round), _amount(line.asked), _amount(line.promised), paid, Text(line.reason or ""))
    words = f"{total.client}: {total.won} rounds won, {total.void} void, paid {show_money(total.paid)}"
    if total.privacy is not None:
        words += f", privacy spent {_epsilon(total.privacy)}"
    return Group(Text(words, style="bold"), table)


def _rounds(rounds: Sequence[RoundTotal]) -> Table:
    table = _account_table("round", "delivered", "void", "promised", "paid", "accuracy")
    for r in rounds:
        accuracy = "" if r.accuracy is None else per_cent(r.accuracy)
        paid = "not settled" if r.paid is None else show_money(r.paid)
        table.add_row(str(r.round), str(r.n), str(r.void), _amount(r.promised), paid, accuracy)
    return table


def _totals(account: Statement) -> Text:
    words = f"budget {show_money(account.budget)}"
    if account.topped_up:
        words += f" (opened with {show_money(account.opened_with)}, topped up by {show_money(account.topped_up)})"
    words += f", spent {show_money(account.spent)}, left {show_money(account.left)}"
    if account.outstanding:
        words += f", of which {show_money(account.outstanding)} is promised and not settled"
    return Text(f"{words}; {_standing(account)}")


def _standing(account: Statement) -> str:
    if account.ended:
        return f"ended: {account.ended}"
    if account.waiting is not None:
        return f"round {account.waiting} waits for approval"
    return "paused" if account.paused else "not ended"


def _account_table(first: str, *others: str) -> Table:
    table = _table(collapse_padding=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="left" if name == "why not" else "right")
    return table


def _epsilon(privacy: float | None) -> str:
    return "" if privacy is None else f"{privacy:.4g}"


def _amount(micros: int | None) -> str:
    return "" if micros is None else show_money(micros)


def _table(*, collapse_padding: bool = True) -> Table:
    return Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=collapse_padding)


def _plain(text: str) -> str:
    """Names come from users; none of it is markup."""
    return text.replace("[", r"\[")
