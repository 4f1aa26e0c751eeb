"""A run's rounds as they are stored, some at a time; records as JSON can say them, and back again without loss."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

import numpy as np
import sqlalchemy as sa

from bara.ledger import _schema as schema
from bara.ledger._events import PAGE
from bara.ledger.retention import DROPPED_BIDS, DROPPED_COSTS
from bara.records import (
    Award,
    AwardedRound,
    Belief,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    IntArray,
    MoneyOutlook,
    Offer,
    Plan,
    Prospect,
    Purse,
    RoundRecord,
)

Json = dict[str, Any]

REFUSALS = ("declined", "voided")
"""The events by which an operator takes an award back."""

ANSWERS = ("approved", *REFUSALS)
"""What an operator may have said of an award."""


@dataclass(frozen=True)
class StoredRound:
    """One round's rows, as they were read.

    Attributes:
        promised: The award's event body, or None for round 0.
        settled: The settlement's event body, or None while it is not settled.
        promises: (client, amount), best first.
        settlements: (client, paid, reason).
        redactable: What may be dropped (bids, menu) and is still there, by name.
        refused: Why an operator would not have it, where one would not: nobody trains and nobody is
            paid.
        at: When it was settled, in ISO 8601; None while it is not.
    """

    promised: Json | None
    settled: Json | None
    promises: Sequence[tuple[str, int]]
    settlements: Sequence[tuple[str, int, str | None]]
    redactable: Mapping[str, Any]
    refused: str | None = None
    at: str | None = None


def bids_json(bids: Bids) -> Json:
    """Bids in columns."""
    columns = {name: values.tolist() for name, values in bids.columns.items()}
    return {"clients": list(bids.clients), "prices": bids.prices.tolist(), "columns": columns}


def award_json(awarded: AwardedRound) -> Json:
    """An awarded round without its bids, its menu and its amounts, which have places of their own."""
    return {
        "purse": [awarded.purse.total, awarded.purse.max_rounds, awarded.purse.spent],
        "offer": _sparse(vars(awarded.offer)),
        "weights": awarded.award.weights,
        "fell_short": awarded.award.fell_short,
        "belief": None if awarded.belief is None else _sparse(asdict(awarded.belief)),
        "privacy": awarded.privacy,
    }


def settlement_json(record: RoundRecord) -> Json:
    """What came of a round, without its amounts."""
    evidence = {client: _sparse(vars(e)) for client, e in record.delivery.delivered.items()}
    # A delivery keeps the order in which clients were named; a record that is read back must keep
    # it too.
    order = {"delivered": list(evidence), "void": list(record.delivery.void)}
    ages = {str(age): n for age, n in record.delivery.ages.items()}
    delivery = record.delivery
    rare = {
        "ages": ages,
        "forgotten": delivery.forgotten,
        "blameless": delivery.blameless,
        "contributions": dict(delivery.contributions),
    }
    told = {key: value for key, value in rare.items() if value}
    return {"evaluation": _sparse(vars(record.evaluation)), "evidence": evidence, **order, **told}


def read_award(round_number: int, stored: StoredRound, currency: str | None = None) -> AwardedRound:
    """The promise as it was made; bids and menu are there unless they were dropped. Refused, it recruits nobody."""
    body = stored.promised or {}
    total, max_rounds, spent = body["purse"]
    purse = Purse(total, max_rounds, spent, round_number, currency)
    return AwardedRound(
        purse,
        Offer(**body["offer"]),
        _read_bids(stored.redactable.get("bids"), purse.unit),
        _read_costs(stored.redactable.get("menu")),
        Award(fell_short=body["fell_short"]) if stored.refused else _award(body, stored.promises),
        _read_belief(body["belief"]),
        None if stored.refused else body["privacy"],
    )


def read_record(round_number: int, stored: StoredRound, purse: Purse) -> RoundRecord:
    """The settled round; `purse` is the opening one, for round 0."""
    body = stored.settled or {}
    evaluation = Evaluation(**body["evaluation"])
    if stored.promised is None:
        return RoundRecord.initial(purse, evaluation)
    reasons = {client: reason or "" for client, _, reason in stored.settlements}
    delivered = {client: Evidence(**body["evidence"][client]) for client in body["delivered"]}
    void = {client: reasons[client] for client in body["void"]}
    ages = {int(age): count for age, count in body.get("ages", {}).items()}
    forgotten, blameless = (tuple(body.get(key, ())) for key in ("forgotten", "blameless"))
    delivery = Delivery(
        evaluation, delivered, void, ages, forgotten, blameless, body.get("contributions", {})
    )
    return read_award(round_number, stored, purse.currency).settle(delivery)


def asked_prices(bids: Json | None) -> dict[str, int] | None:
    """What each client asked, in micro-units, of bids in columns; None where they are dropped."""
    return None if bids is None else dict(zip(bids["clients"], bids["prices"], strict=True))


def _refusal(kind: str, body: Json) -> str:
    """Why the winners of an award that an operator took back are void."""
    return ": ".join(
        [f"{kind} by the operator", *([str(body["reason"])] if "reason" in body else [])]
    )


def _award(body: Json, promises: Sequence[tuple[str, int]]) -> Award:
    clients, payments = zip(*promises, strict=True) if promises else ((), ())
    return Award(clients, payments, _tuple(body["weights"]), body["fell_short"])


def _read_belief(tree: Json | None) -> Belief | None:
    if tree is None:
        return None
    plan, outlook = tree.get("plan"), tree.get("outlook")
    known = {key: _tuple(value) for key, value in tree.items()}
    return Belief(
        **{
            **known,
            "plan": None if plan is None else Plan(**plan),
            "outlook": None if outlook is None else _read_outlook(outlook),
        }
    )


def _read_outlook(tree: Json) -> MoneyOutlook:
    return MoneyOutlook(
        **{**tree, "prospects": tuple(Prospect(**one) for one in tree["prospects"])}
    )


def _read_bids(tree: Json | None, unit: int) -> Bids:
    if tree is None:
        return DROPPED_BIDS
    columns = {name: np.array(values, np.float64) for name, values in tree["columns"].items()}
    return Bids(tuple(tree["clients"]), np.array(tree["prices"], np.int64), columns, unit)


def _read_costs(costs: list[int] | None) -> IntArray:
    return DROPPED_COSTS if costs is None else np.array(costs, np.int64)


def _sparse(tree: Json) -> Json:
    """Without what is not set: it reads back as the default."""
    return {key: value for key, value in tree.items() if value is not None}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def stored_rounds(connection: sa.Connection, run: int) -> Iterator[tuple[int, StoredRound]]:
    """Every round that was promised or settled, in order."""
    for first in count(0, PAGE):
        page = stored_page(connection, run, first, first + PAGE - 1)
        yield from page
        if len(page) < PAGE:
            return


def stored_page(
    connection: sa.Connection, run: int, first: int, last: int
) -> list[tuple[int, StoredRound]]:
    """Rounds first .. last."""
    events = by_round(connection, schema.events, run, first, last, "number")
    promises = by_round(connection, schema.promises, run, first, last, "rank")
    settlements = by_round(connection, schema.settlements, run, first, last, "client")
    redactable = by_round(connection, schema.redactable, run, first, last, "part")
    found = []
    for number, happened in sorted(events.items()):
        bodies = {event.kind: json.loads(event.body) for event in happened}
        stored = StoredRound(
            bodies.get("awarded"),
            bodies.get("settled"),
            [(row.client, row.amount) for row in promises.get(number, ())],
            [(row.client, row.paid, row.reason) for row in settlements.get(number, ())],
            {row.part: json.loads(row.content) for row in redactable.get(number, ())},
            next((_refusal(kind, bodies[kind]) for kind in REFUSALS if kind in bodies), None),
            next((event.at for event in happened if event.kind == "settled"), None),
        )
        found.append((number, stored))
    return found


def by_round(
    connection: sa.Connection, table: sa.Table, run: int, first: int, last: int, *order: str
) -> Mapping[int, Sequence[Any]]:
    """A table's rows of rounds first .. last, by round."""
    found: dict[int, list[Any]] = defaultdict(list)
    query = sa.select(table).where(table.c.run == run, table.c.round.between(first, last))
    for row in connection.execute(
        query.order_by(table.c.round, *(table.c[name] for name in order))
    ):
        found[row.round].append(row)
    return found


def last_of(
    connection: sa.Connection,
    run: int,
    *kinds: str,
    column: str = "body",
    round_number: int | None = None,
) -> str | None:
    """A column of the last event of these kinds, about a round or between rounds."""
    table = schema.events
    if round_number is None:
        # The sum keeps SQLite from walking the whole chain by its primary key: the index of these
        # few events remains.
        about = sa.and_(table.c.run + 0 == run, table.c.round.is_(None))
    else:
        about = sa.and_(table.c.run == run, table.c.round == round_number)
    query = sa.select(table.c[column]).where(about, table.c.kind.in_(kinds))
    return connection.scalar(query.order_by(table.c.number.desc()).limit(1))


_ADDED = sa.select(sa.func.sum(schema.top_ups.c.amount)).where(
    schema.top_ups.c.run == sa.bindparam("run")
)


def topped_up(connection: sa.Connection, run: int) -> int:
    """What was added to the budget since the run was opened."""
    return int(connection.scalar(_ADDED, {"run": run}) or 0)


def is_paused(connection: sa.Connection, run: int) -> bool:
    """Whether an operator has stopped the run."""
    return last_of(connection, run, "paused", "continued", column="kind") == "paused"


def waiting_round(connection: sa.Connection, run: int, approve_above: int | None) -> int | None:
    """The round, if there is one, whose award is above the limit, or whose offer asks: nobody trains it unanswered."""
    promises, closings = schema.promises, schema.closings
    last = sa.select(sa.func.max(closings.c.round)).where(closings.c.run == run).scalar_subquery()
    query = sa.select(promises.c.round, sa.func.sum(promises.c.amount)).where(
        promises.c.run == run, promises.c.round > last
    )
    found = connection.execute(query.group_by(promises.c.round)).one_or_none()
    if found is None:
        return None
    number, cost = int(found[0]), int(found[1])
    offer = json.loads(last_of(connection, run, "awarded", round_number=number) or "{}").get(
        "offer", {}
    )
    above = approve_above is not None and cost > approve_above
    return number if above or offer.get("asks") else None
