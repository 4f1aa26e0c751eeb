"""Tables for people that no run is needed for: a ledger's account, an audit, datasets."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bara.datasets import Availability, Report
from bara.ledger.payouts import Batch
from bara.ledger.statements import ClientTotal, Line, Statement
from bara.mechanisms.audit import Finding, Regret
from bara.records import show_money
from bara.reports.fitted import Fitted, plain
from bara.text import counted, spelled


def statement_tables(account: Statement, measure: str = "accuracy") -> RenderableType:
    """By client, by round, and the totals."""
    private = any(c.privacy is not None for c in account.clients)
    money = _money("asked", "promised", "paid", currency=account.currency)
    clients = _table("client", "won", "void", *money, *["privacy"] * private)
    for c in account.clients:
        amounts = (_amount(micros, account.currency) for micros in (c.asked, c.promised, c.paid))
        clients.add_row(
            plain(c.client), str(c.won), str(c.void), *amounts, *[_epsilon(c.privacy)] * private
        )
    return Group(
        Text(f"run {spelled(account.run)}", style="bold"),
        Fitted(clients),
        Fitted(_rounds(account, measure)),
        _totals(account),
    )


def own_table(
    total: ClientTotal, own: Sequence[Line], currency: str | None = None
) -> RenderableType:
    """One client's own account."""
    table = _table("round", *_money("asked", "promised", "paid", currency=currency), "why not")
    for line in own:
        paid = _amount(line.paid, currency) or "not settled"
        amounts = _amount(line.asked, currency), _amount(line.promised, currency), paid
        table.add_row(str(line.round), *amounts, plain(line.reason or ""))
    won = f"{counted(total.won, 'round')} won, {total.void} void"
    words = f"{spelled(total.client)}: {won}, paid {show_money(total.paid, currency)}"
    if total.privacy is not None:
        words += f", privacy spent {_epsilon(total.privacy)}"
    return Group(Text(words, style="bold"), Fitted(table))


def _rounds(account: Statement, measure: str) -> Table:
    table = _table(
        "round",
        "delivered",
        "void",
        *_money("promised", "paid", currency=account.currency),
        measure,
    )
    for r in account.rounds:
        accuracy = "" if r.accuracy is None else f"{100 * r.accuracy:.1f} %"
        paid = _amount(r.paid, account.currency) or "not settled"
        table.add_row(
            str(r.round),
            str(r.n),
            str(r.void),
            _amount(r.promised, account.currency),
            paid,
            accuracy,
        )
    return table


def _totals(account: Statement) -> Text:
    def told(micros: int) -> str:
        return show_money(micros, account.currency)

    words = f"budget {told(account.budget)}"
    if account.topped_up:
        words += (
            f" (opened with {told(account.opened_with)}, topped up by {told(account.topped_up)})"
        )
    words += f", spent {told(account.spent)}, left {told(account.left)}"
    if account.outstanding:
        words += f", of which {told(account.outstanding)} is promised and not settled"
    return Text(f"{words}; {_standing(account)}")


def batches_table(
    made: Sequence[Batch], due: Batch | None, currency: str | None, address: str
) -> RenderableType:
    """The batches that were made, if any, and what is in none yet."""
    table = _table("batch", "made", "rounds", "clients", *_money("amount", currency=currency))
    for one in made:
        rounds, made_at = f"{one.first} to {one.last}", one.at[:16].replace("T", " ")
        table.add_row(
            str(one.number), made_at, rounds, str(len(one.payments)), _amount(one.total, currency)
        )
    words = "nothing is due: every payment is in a batch"
    if due is not None:
        words = f"{show_money(due.total, currency)} to {counted(len(due.payments), 'client')} is due, in no batch yet"
        words += f"; make one with: bara ledger {spelled(address)} payouts --new"
    return Group(*([Fitted(table)] if made else []), Text(words))


def _standing(account: Statement) -> str:
    if account.ended:
        return f"ended: {spelled(account.ended)}"
    if account.waiting is not None:
        return f"round {account.waiting} waits for approval"
    return "paused" if account.paused else "not ended"


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    table.add_column(first, no_wrap=True)
    for name in others:
        text = name == "why not"
        table.add_column(name, justify="left" if text else "right", no_wrap=not text)
    return table


def _money(*names: str, currency: str | None) -> list[str]:
    """Heads of columns of amounts, which say the currency once."""
    return [f"{name}, {currency}" if currency else name for name in names]


def _epsilon(privacy: float | None) -> str:
    return "" if privacy is None else f"{privacy:.4g}"


def _amount(micros: int | None, currency: str | None) -> str:
    """An amount below a head that says the currency."""
    return "" if micros is None else show_money(micros, currency).removesuffix(f" {currency}")


def audit_table(
    mechanism: str, findings: Sequence[Finding], lying: Regret | None = None
) -> RenderableType:
    """What an audit found, property by property, and what lying is worth where it is worth something."""
    table = Table(
        box=SIMPLE_HEAD,
        title=f"audit of {plain(mechanism)}",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("property")
    table.add_column("claimed")
    table.add_column("found")
    for finding in findings:
        claimed = "yes" if finding.claimed else "no"
        if finding.counter_example is None:
            found = Text(f"holds in {counted(finding.trials, 'trial')}", style="green")
        else:
            found = Text(
                f"counter-example: {finding.counter_example}",
                style="red" if finding.claimed else "yellow",
            )
        table.add_row(finding.name, claimed, found)
    if lying is None:
        return table
    worth = f"{lying.mean:.2f} % of a cost on average, {lying.most:.0f} % at most"
    return Group(
        table,
        Text(f"Regret, what the best lie gains in {lying.rounds} rounds of 20 clients: {worth}."),
    )


def datasets_table(found: Sequence[Availability]) -> RenderableType:
    """Which datasets are here, and how to get the others."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("dataset", "status", "where, or how to get it"):
        table.add_column(column, overflow="fold")
    for one in found:
        colour = "yellow" if one.status == "missing" else "green"
        table.add_row(
            plain(one.name), f"[{colour}]{one.status}[/]", plain(str(one.path or one.command or ""))
        )
    return table


def verification(report: Report) -> RenderableType:
    """What checking a dataset found."""
    lines = [
        Text(f"{report.name}: {report.format} at {report.path or 'scikit-learn'}", style="bold")
    ]
    lines += [Text(problem, style="red") for problem in report.problems]
    if report.ok:
        counts = (
            f"{sum(report.train_counts):,} training and {sum(report.test_counts):,} test samples"
        )
        lines.append(
            Text(
                f"as published ({report.version or 'no published checksum'}): {counts}",
                style="green",
            )
        )
    return Group(*lines)
