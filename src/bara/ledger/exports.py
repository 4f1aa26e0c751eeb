"""A ledger's account in CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bara.ledger.books import Books
from bara.ledger.statements import ClientTotal, Line, RoundTotal, Statement, lines
from bara.records import decimal_money, show_money

_MONEY = frozenset({"asked", "promised", "paid", "returned", "opened_with", "topped_up", "spent", "outstanding"})


def as_json(record: ClientTotal | RoundTotal | Line) -> dict[str, Any]:
    """A line with amounts as decimal numbers."""
    return {key: _decimal(key, value) for key, value in asdict(record).items()}


def statement_json(account: Statement) -> dict[str, Any]:
    """The whole account."""
    top = {key: _decimal(key, value) for key, value in vars(account).items() if not isinstance(value, list)}
    top |= {"budget": decimal_money(account.budget), "left": decimal_money(account.left)}
    return {**top, "clients": [*map(as_json, account.clients)], "rounds": [*map(as_json, account.rounds)]}


def table_csv(records: Iterable[ClientTotal | RoundTotal | Line]) -> str:
    """Lines with amounts as exact decimals; nothing where nothing is known."""
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for record in records:
        row = {k: show_money(v) if k in _MONEY and v is not None else v for k, v in asdict(record).items()}
        if writer is None:
            writer = csv.DictWriter(text, row, lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def payouts_csv(books: Books, rows: Iterable[tuple[str, str, int]]) -> str:
    """What is to be transferred to whom, with the run as reference."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["client", "amount", "rounds", "reference"])
    writer.writerows([*row, books.name] for row in rows)
    return text.getvalue()


def export_tree(books: Books) -> dict[str, Any]:
    """Every event and every promise with what became of it; bids and menus stay sealed."""
    with books.store.read() as connection:
        events = [{**vars(event), "body": json.loads(event.body)} for event in books.chain.events(connection)]
    return {"run": books.name, "events": events, "lines": [as_json(line) for line in lines(books)]}


def _decimal(key: str, value: Any) -> Any:
    return decimal_money(value) if key in _MONEY and value is not None else value
