"""Tables for the terminal: a ledger's statements and payouts, an audit, and datasets."""

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bara.records import show_money
from bara.reports.fitted import Fitted, plain
from bara.reports.result import FEW
from bara.text import counted, listing, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bara.datasets import Availability, Report
    from bara.ledger.bank import Reconciliation
    from bara.ledger.decisions import Decision
    from bara.ledger.payouts import Batch
    from bara.ledger.statements import ClientTotal, Line, Statement
    from bara.mechanisms.audit import AuditFinding, Regret
    from bara.records import Register
    from bara.studies.run_audit import RunFinding


def statement_tables(account: "Statement", measure: str = "accuracy") -> RenderableType:
    """Return a run's statement: a table by client, one by round, and the totals.

    Args:
        account: The statement.
        measure: The name of what the model is measured by.
    """
    return Group(
        Text(f"run {spelled(account.run)}", style="bold"),
        Fitted(_clients(account)),
        Fitted(_rounds(account, measure)),
        _concentration(account),
        _totals(account),
    )


def own_table(
    total: "ClientTotal", own: "Sequence[Line]", currency: str | None = None
) -> RenderableType:
    """Return the table of one client's rounds, below a line with its totals.

    Args:
        total: The client's totals.
        own: The client's rounds.
        currency: The currency of the run, if it has one.
    """
    table = _table("round", *_money("asked", "promised", "earned", currency=currency), "why not")
    for line in own:
        table.add_row(
            str(line.round),
            _amount(line.asked, currency),
            _amount(line.promised, currency),
            _amount(line.paid, currency) or "not settled",
            plain(line.remark),
        )
    won = f"{counted(total.won, 'round')} won, {total.void} void"
    words = f"{spelled(total.client)}: {won}, earned {show_money(total.paid, currency)}"
    if total.privacy is not None:
        words += f", privacy spent {_epsilon(total.privacy)}"
    return Group(Text(words, style="bold"), Fitted(table))


def _clients(account: "Statement") -> Table:
    private = any(one.privacy is not None for one in account.clients)
    amounts = _money("asked", "asked last", "promised", "earned", currency=account.currency)
    heads = ["won", "void", *amounts]
    if private:
        heads.append("privacy")
    table = _table("client", *heads)
    for one in account.clients:
        cells = [plain(one.client), str(one.won), str(one.void)]
        for micros in (one.asked, one.asked_last, one.promised, one.paid):
            cells.append(_amount(micros, account.currency))
        if private:
            cells.append(_epsilon(one.privacy))
        table.add_row(*cells)
    return table


def _rounds(account: "Statement", measure: str) -> Table:
    money = _money("promised", "earned", currency=account.currency)
    table = _table("round", "delivered", "void", *money, measure)
    for one in account.rounds:
        table.add_row(
            str(one.round),
            str(one.n),
            str(one.void),
            _amount(one.promised, account.currency),
            _amount(one.paid, account.currency) or "not settled",
            "" if one.accuracy is None else f"{100 * one.accuracy:.1f} %",
        )
    return table


def _concentration(account: "Statement") -> Text:
    """Say how much of the money went to how few, who earned nothing, and how old the memory is."""
    never = account.never_paid
    earned = len(account.clients) - len(never)
    if not earned:
        return Text("nobody has earned anything yet")
    few = min(earned, FEW)
    share = 100 * account.share_of_most_paid(few)
    words = f"{counted(earned, 'client')} earned money; "
    words += f"the {few} that earned most got {share:.0f} %"
    if never:
        words += f"; nothing was earned by {listing([spelled(one.client) for one in never])}"
    if account.oldest is not None:
        words += f"; the oldest update in the model is {counted(account.oldest, 'round')} old"
    return Text(words)


def _totals(account: "Statement") -> Text:
    def told(micros: int) -> str:
        return show_money(micros, account.currency)

    words = f"budget {told(account.budget)}"
    if account.topped_up:
        opened = told(account.opened_with)
        words += f" (opened with {opened}, topped up by {told(account.topped_up)})"
    words += f", spent {told(account.spent)}, left {told(account.left)}"
    if account.outstanding:
        words += f", of which {told(account.outstanding)} is promised and not settled"
    return Text(f"{words}; {_standing(account)}")


def batches_table(
    made: "Sequence[Batch]",
    due: "Batch | None",
    owing: "Mapping[str, int]",
    currency: str | None,
    address: str,
    *,
    ended: bool,
) -> RenderableType:
    """Return the table of all batches, if any, and lines about what is due and who owes.

    Args:
        made: The batches that were made.
        due: The payments that are in no batch yet, if any.
        owing: What clients owe after corrections, by client.
        currency: The currency of the run, if it has one.
        address: The words that name the run in a command.
        ended: Whether the run has ended, so that clients earn nothing later.
    """
    words = "nothing is due: every payment is in a batch"
    if due is not None:
        amount = show_money(due.total, currency)
        words = f"{amount} to {counted(len(due.payments), 'client')} is due, in no batch yet"
        words += f"; make one with: bara ledger {spelled(address)} payouts --new"
    for client, owed in owing.items():
        words += f"\n{spelled(client)} owes {show_money(owed, currency)}"
        if ended:
            words += "; the run has ended, so ask for it back"
        else:
            words += ", which is kept back from what it earns later"
    if not made:
        return Group(Text(words))
    table = _table("batch", "made", "rounds", "clients", *_money("amount", currency=currency))
    for one in made:
        table.add_row(
            str(one.number),
            one.at[:16].replace("T", " "),
            f"{one.first} to {one.last}" if one.pays_rounds else "",
            str(len(one.payments)),
            _amount(one.total, currency),
        )
    return Group(Fitted(table), Text(words))


def decisions_table(found: "Sequence[Decision]", currency: str | None) -> RenderableType:
    """Return the table of operators' commands: when, what, who and why.

    Args:
        found: The commands.
        currency: The currency of the run, if it has one.
    """
    table = _texts("when", "what", "about", "amount", "who", "why")
    for one in found:
        who = one.by
        if one.login:
            who += f" (login {one.login})"
        when = one.at[:16].replace("T", " ")
        amount = _amount(one.amount, currency)
        table.add_row(
            when, one.what, plain(one.about), amount, plain(who or "not stored"), plain(one.reason)
        )
    return Fitted(table)


def register_table(known: "Register", currency: str | None) -> RenderableType:
    """Return the table of known clients, with their limits and fees.

    Args:
        known: The register.
        currency: The currency of the run, if it has one.
    """
    table = _table("client", *_money("limit over the run", "fee a round", currency=currency))
    for client, entry in sorted(known.items()):
        table.add_row(plain(client), _amount(entry.limit, currency), _amount(entry.fee, currency))
    return Fitted(table)


def reconciliation_table(report: "Reconciliation", currency: str | None) -> RenderableType:
    """Return the table of a reconciliation: what was found, is missing and is unknown.

    Args:
        report: The reconciliation.
        currency: The currency of the run, if it has one.
    """
    table = _texts("", "reference", "client", "amount", "booked", "why")
    for name, rows in vars(report).items():
        for row in rows:
            table.add_row(
                name,
                plain(row["reference"]),
                plain(row.get("client", "")),
                _amount(row["amount"], currency),
                plain(row.get("transferred") or row.get("day", "")),
                plain(row.get("why", "")),
            )
    found = counted(len(report.found), "payment")
    words = (
        f"{found} found and stored as transferred, {len(report.missing)} in a batch and not found, "
        f"{len(report.unknown)} in the statement and unknown"
    )
    return Group(Fitted(table), Text(words)) if table.rows else Text(words)


def _standing(account: "Statement") -> str:
    """Say whether the run has ended, waits or is paused."""
    if account.ended:
        return f"ended: {spelled(account.ended)}"
    if account.waiting is not None:
        return f"round {account.waiting} waits for approval"
    if account.paused:
        return "paused"
    return "not ended"


def _table(first: str, *others: str) -> Table:
    """Make an empty table: names in the first column, text below `why not`, numbers elsewhere."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    table.add_column(first, no_wrap=True)
    for name in others:
        if name == "why not":
            table.add_column(name)
        else:
            table.add_column(name, justify="right", no_wrap=True)
    return table


def _texts(*heads: str) -> Table:
    """Make an empty table of texts, with a column of amounts among them."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for head in heads:
        table.add_column(head, justify="right" if head == "amount" else "left")
    return table


def _money(*names: str, currency: str | None) -> list[str]:
    """Return the heads of columns of amounts, which name the currency if there is one."""
    if not currency:
        return list(names)
    return [f"{name}, {currency}" for name in names]


def _epsilon(privacy: float | None) -> str:
    return "" if privacy is None else f"{privacy:.4g}"


def _amount(micros: int | None, currency: str | None) -> str:
    """Return an amount without its currency, which the column's head names."""
    return "" if micros is None else show_money(micros, currency).removesuffix(f" {currency}")


def audit_table(
    mechanism: str, findings: "Sequence[AuditFinding]", lying: "Regret | None" = None
) -> RenderableType:
    """Return what an audit found, property by property, and what the best lie gains.

    Args:
        mechanism: The name of the mechanism.
        findings: What the audit found for each property.
        lying: What lying gains, for a mechanism that does not claim to be truthful.
    """
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
            colour = "red" if finding.broken else "yellow"
            found = Text(f"counter-example: {finding.counter_example}", style=colour)
        table.add_row(finding.name, claimed, found)
    if lying is None:
        return table
    words = f"Regret, what the best lie gains in {lying.rounds} rounds of 20 clients: "
    words += f"{lying.mean:.2f} % of a cost on average, {lying.most:.0f} % at most."
    return Group(table, Text(words))


def run_audit_table(findings: "Sequence[RunFinding]") -> RenderableType:
    """Return what each trick gains over a whole run."""
    table = Table(
        box=SIMPLE_HEAD,
        title="over whole runs, one client at a time",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("a client that")
    table.add_column("gains, mean", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("whose cost is", justify="right")
    for finding in findings:
        mean = f"{100 * finding.mean:+.1f} %"
        most = Text(f"{100 * finding.most:+.1f} %")
        if finding.most > NO_GAIN:
            most.stylize("yellow")
        table.add_row(finding.trick, mean, most, f"{finding.cost:.2f}")
    words = (
        f"{counted(findings[0].tried, 'trial')} of each. Gains are shares of what a client is paid "
        "in an honest run on average; costs are in parts of the mean cost."
    )
    return Group(table, Text(words, style="dim"))


NO_GAIN = 0.01
"""The gain below which rounding alone may be its cause."""


def datasets_table(found: "Sequence[Availability]") -> RenderableType:
    """Return the table of datasets: where each is, or how to get it."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("dataset", "status", "where, or how to get it"):
        table.add_column(column, overflow="fold")
    for one in found:
        colour = "yellow" if one.status == "missing" else "green"
        where = plain(str(one.path or one.command or ""))
        table.add_row(plain(one.name), f"[{colour}]{one.status}[/]", where)
    return table


def verification(report: "Report") -> RenderableType:
    """Return what the check of a dataset found, line by line."""
    place = report.path or "scikit-learn"
    lines = [Text(f"{report.name}: {report.format} at {place}", style="bold")]
    lines += [Text(problem, style="red") for problem in report.problems]
    if report.ok:
        version = report.version or "no published checksum"
        train = sum(report.train_counts)
        test = sum(report.test_counts)
        words = f"as published ({version}): {train:,} training and {test:,} test samples"
        lines.append(Text(words, style="green"))
    return Group(*lines)
