"""The bank: a batch as SEPA credit transfers, and what a bank's statement says was transferred.

A payment is *settled* once its round is, *batched* once a batch holds it, and *transferred* once a
statement of the bank has been read that shows it, by its end-to-end reference and its amount.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from bara.errors import ConfigError, InvalidMoneyError, MissingExtraError
from bara.files import read_whole
from bara.ledger._events import Draft
from bara.ledger._signed import signed
from bara.ledger._verification import require_whole
from bara.ledger.books import Books
from bara.ledger.operators import require_place, writing
from bara.ledger.payouts import Batch, Payees, check_payees, csv_rows, reference_of, transfers
from bara.records import money, show_money

_PAIN = "pain.001.001.09"
"""The ISO 20022 message of credit transfers that is written."""

_CENT = 10_000
"""The micro-units of a cent, in which SEPA transfers are made."""


@dataclass(frozen=True)
class Entry:
    """A transfer in a bank's statement.

    Attributes:
        reference: The end-to-end reference; "" if it has none.
        amount: The amount in micro-units.
        day: The day it was booked, in ISO 8601; "" if unknown.
        came_back: Whether the money came in: a transfer of ours that was returned, say.
        currency: The currency of the amount; "" if the statement names none.
    """

    reference: str
    amount: int
    day: str = ""
    came_back: bool = False
    currency: str = ""


@dataclass(frozen=True)
class Reconciliation:
    """A bank's statement beside the batches; each transfer as `transfers` tells it.

    Attributes:
        found: Payments of batches that this statement shows for the first time.
        missing: Payments of batches that no statement has shown yet.
        unknown: Entries of the statement that are no payment of a batch, each with the reason.
    """

    found: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[dict[str, Any]] = field(default_factory=list)


def credit_transfers(books: Books, batch: Batch, payees: Payees, name: str, iban: str) -> str:
    """Return a batch as SEPA credit transfers (pain.001), checked against the ISO schema.

    Each transfer carries the reference that the batch's CSV has, too.

    Args:
        books: The run's books.
        batch: The batch; one that is not made yet is checked in the same way.
        payees: The payees, with the columns `name` and `iban`.
        name: The name of the account that pays.
        iban: The IBAN of the account that pays.
    """
    try:
        from sepaxml import SepaTransfer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("SEPA needs sepaxml: pip install 'bara-fl[bank]'") from error
    if books.purse.currency != "EUR":
        raise ConfigError(
            f"SEPA transfers are in EUR, but the amounts of run {books.name!r} are in "
            f"{books.purse.currency or 'no currency'} (budget.currency); use the CSV"
        )
    check_payees(batch, payees)
    # Each is booked by itself: of transfers booked in one sum a statement may show no references.
    whose = "who pays"
    paying: dict[str, Any] = {"name": _letters(name, whose), "currency": "EUR", "batch": False}
    message = SepaTransfer({**paying, **_account(iban, whose)}, schema=_PAIN)
    today = datetime.now(UTC).date()
    about = _letters(f"{books.name}, batch {batch.number}", f"run {books.name!r}")
    for place, (client, amount, _) in enumerate(batch.payments, 1):
        payee = payees[client]
        whose = f"the payee {client!r}"
        for column in ("name", "iban"):
            if not payee.get(column, "").strip():
                raise ConfigError(f"{whose} has no {column!r}, which a SEPA transfer needs")
        reference = reference_of(books, batch.number, place)
        message.add_payment(
            {
                "name": _letters(payee["name"], whose),
                "amount": amount // _CENT,
                "execution_date": today,
                "description": about,
                "endtoend_id": reference,
                **_account(payee["iban"], whose),
            }
        )
    exported: bytes = message.export(validate=True, pretty_print=True)
    text = exported.decode().expandtabs(2)
    # The same each time, so that a bank can refuse to take the batch in twice.
    return text.replace(message.msg_id, reference_of(books, batch.number))


def _letters(text: str, whose: str) -> str:
    """Return a text in the letters that every bank of the area takes, as EPC217-08 maps others."""
    from text_unidecode import unidecode  # noqa: PLC0415 - comes with sepaxml

    plain = " ".join(unidecode(text).split()).replace("&", "+").replace("_", "-")
    found = re.sub(r"[^A-Za-z0-9/?:().,'+ -]", ".", plain)
    if not re.search("[A-Za-z0-9]", found):
        raise ConfigError(f"the name of {whose} has no letter that a SEPA transfer takes: {text!r}")
    return found


def _account(iban: str, whose: str) -> dict[str, str]:
    """Return an account's IBAN, and its BIC if it is known; refuse an IBAN that is none."""
    try:
        from schwifty import IBAN  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("SEPA needs schwifty: pip install 'bara-fl[bank]'") from error
    try:
        account = IBAN(iban)
    except ValueError as error:
        raise ConfigError(f"the IBAN of {whose} is {iban!r}, which is none: {error}") from None
    if not account.in_sepa_zone:
        raise ConfigError(
            f"the IBAN of {whose} is of an account outside the SEPA area ({account.country_code}): "
            f"{iban!r}; pay it by the CSV"
        )
    found = {"IBAN": account.compact}
    if account.bic is not None:
        found["BIC"] = account.bic.compact
    return found


# --- what the bank says --------------------------------------------------------------------------


def read_statement(path: Path) -> list[Entry]:
    """Read a bank's statement: camt.053, or a CSV with the columns `reference` and `amount`."""
    try:
        text = read_whole(path, plain=False)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the bank's statement {str(path)!r}: {why}") from None
    if text.lstrip("\ufeff \n\r\t").startswith("<"):
        return list(_camt(text, path))
    return list(_csv(path))


def _csv(path: Path) -> Iterator[Entry]:
    """Yield each row. Where any amount is negative, those left the account, and others came in."""
    rows = []
    for row in csv_rows(path, "transfer", "reference"):
        if "amount" not in row:
            raise ConfigError(f"the bank's statement in {str(path)!r} must have a column `amount`")
        reference = row["reference"].strip()
        day = _day(row.get("date", "").strip(), reference)
        currency = row.get("currency", "").strip()
        rows.append((reference, _amount(row["amount"], reference), day, currency))
    signed = any(amount < 0 for _, amount, _, _ in rows)
    for reference, amount, day, currency in rows:
        yield Entry(reference, abs(amount), day, signed and amount > 0, currency)


def _camt(text: str, path: Path) -> Iterator[Entry]:
    """Yield each booked transaction of a camt.053 statement, whatever its version is."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ConfigError(f"{str(path)!r} declares entities, which no camt.053 does")
    try:
        tree = ET.fromstring(text)  # noqa: S314 - no entities
    except ET.ParseError as error:
        raise ConfigError(f"{str(path)!r} is not XML: {error}") from None
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]  # each version has a namespace of its own
    if tree.find("BkToCstmrStmt") is None:
        raise ConfigError(f"{str(path)!r} is not a camt.053: it has no BkToCstmrStmt")
    for entry in tree.iterfind("BkToCstmrStmt/Stmt/Ntry"):
        state = entry.findtext("Sts/Cd") or entry.findtext("Sts") or ""
        if state.strip() not in {"", "BOOK"}:  # pending, say: no money has left yet
            continue
        day = (entry.findtext("BookgDt/Dt") or entry.findtext("BookgDt/DtTm") or "").strip()[:10]
        for part in entry.findall("NtryDtls/TxDtls") or [entry]:
            reference = (part.findtext("Refs/EndToEndId") or "").strip()
            way = part.findtext("CdtDbtInd") or entry.findtext("CdtDbtInd")
            told = [part.find("AmtDtls/TxAmt/Amt"), part.find("Amt"), entry.find("Amt")]
            shown = next((one for one in told if one is not None), ET.Element("Amt"))
            amount = _amount(shown.text or "", reference)
            currency = shown.get("Ccy", "")
            yield Entry(reference, amount, _day(day, reference), way == "CRDT", currency)


def _amount(text: str, reference: str) -> int:
    try:
        return money(text.strip(), what="the amount")
    except InvalidMoneyError as error:
        raise ConfigError(f"in the bank's statement, {reference!r}: {error}") from None


def _day(text: str, reference: str) -> str:
    """Return a day as it is written in ISO 8601, or ""; refuse any other text."""
    if not text:
        return ""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(
            f"in the bank's statement, {reference!r}: the date must be like 2026-03-02, got "
            f"{text!r}"
        ) from None


def reconcile(books: Books, statement: Path, *, by: str | None = None) -> Reconciliation:
    """Compare a bank's statement with the batches, and store what it shows as transferred.

    Reading the same statement again finds nothing new and stores nothing.

    Args:
        books: The run's books.
        statement: The bank's file.
        by: The person who reads it in.
    """
    person = signed(books, by)
    entries = read_statement(statement)
    digest = hashlib.sha256(statement.read_bytes()).hexdigest()
    require_place(books)
    require_whole(books, needs_key=True)
    with writing(books) as connection:
        report = _compared(transfers(books), entries, books)
        if report.found:
            shown = [[one["batch"], one["client"], one["transferred"]] for one in report.found]
            body = {"transfers": shown, "statement": digest, **person}
            books.chain.append(connection, Draft("transferred", None, body))
    return report


_NO_DAY = "day unknown"
"""The day of a transfer in a statement that names none."""


def _compared(paid: list[dict[str, Any]], entries: list[Entry], books: Books) -> Reconciliation:
    expected = {one["reference"]: one for one in paid}
    report = Reconciliation()
    seen = set[str]()
    for entry in entries:
        one = expected.get(entry.reference)
        if one is not None and one["returned"] and entry.came_back:
            continue  # it is among what is due again
        why = _why_unknown(entry, one, seen, books)
        if why is not None:
            report.unknown.append({**vars(entry), "why": why})
            continue
        seen.add(entry.reference)
        if one is not None and not one["transferred"]:
            report.found.append({**one, "transferred": entry.day or _NO_DAY})
    for one in paid:
        if not one["transferred"] and not one["returned"] and one["reference"] not in seen:
            report.missing.append(one)
    return report


def _why_unknown(
    entry: Entry, one: dict[str, Any] | None, seen: set[str], books: Books
) -> str | None:
    """Return why an entry of the statement is no transfer of a batch; None if it is one."""
    if one is None:
        return "no batch has this reference"
    if entry.came_back:
        return (
            f"it came back; `bara ledger {books.address} returned {one['batch']} --client "
            f"{shlex.quote(one['client'])} --reason TEXT` puts it among what is due"
        )
    ours = books.purse.currency
    foreign = ours is not None and entry.currency not in {"", ours}
    if foreign or entry.amount != one["amount"]:
        pays = f"batch {one['batch']} pays {books.purse.show(one['amount'])}"
        return f"it is in {entry.currency}; {pays}" if foreign else pays
    if entry.reference in seen:
        return "it is in this statement twice"
    before = one["transferred"]
    if before not in ("", _NO_DAY, entry.day) and entry.day:
        return f"an earlier statement has shown it on {before}"
    return None


def report_json(report: Reconciliation) -> dict[str, list[dict[str, Any]]]:
    """Convert a reconciliation to JSON, amounts as exact texts."""
    tree = {}
    for name, rows in vars(report).items():
        tree[name] = [{**row, "amount": show_money(row["amount"])} for row in rows]
    return tree
