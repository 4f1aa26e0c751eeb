"""Stored rounds, read a page at a time, and the lossless conversion of records to and from JSON."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import sqlalchemy as sa

from bara.ledger import _schema as schema
from bara.ledger._events import PAGE
from bara.ledger.retention import DROPPED_BIDS, DROPPED_COSTS
from bara.ledger.store import fetch
from bara.mechanisms.client_cap import UNKNOWN
from bara.records import (
    Award,
    AwardedRound,
    Belief,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    IntArray,
    LeftOut,
    MoneyOutlook,
    Offer,
    Plan,
    Prospect,
    Purse,
    RoundRecord,
    Shapley,
)

Json = dict[str, Any]

REFUSALS = ("declined", "voided")
"""The kinds of events by which an operator takes an award back."""

ANSWERS = ("approved", *REFUSALS)
"""The kinds of events by which an operator answers a waiting award."""


@dataclass(frozen=True)
class StoredRound:
    """The stored rows of one round.

    Attributes:
        promised: The body of the award's event; None for round 0.
        settled: The body of the settlement's event; None while the round is unsettled.
        promises: (client, amount) of each winner, best first.
        settlements: (client, paid, reason) of each winner.
        redactable: The bids and the menu, by name, unless they were dropped.
        refused: Why an operator took the award back; None for other rounds. In a refused round
            nobody trains and nobody is paid.
        at: When the round was settled, in ISO 8601; None while it is unsettled.
    """

    promised: Json | None
    settled: Json | None
    promises: Sequence[tuple[str, int]]
    settlements: Sequence[tuple[str, int, str | None]]
    redactable: Mapping[str, Any]
    refused: str | None = None
    at: str | None = None


def opened_json(awarded: AwardedRound) -> Json:
    """Convert a round's opened bids to JSON, those that did not take part apart."""
    tree = _bids_json(awarded.bids)
    if awarded.left_out is not None:
        reasons = dict(awarded.left_out.reasons)
        tree["left_out"] = {**_bids_json(awarded.left_out.bids), "reasons": reasons}
    return tree


def _bids_json(bids: Bids) -> Json:
    """Convert bids to JSON, in columns."""
    columns = {name: values.tolist() for name, values in bids.columns.items()}
    return {"clients": list(bids.clients), "prices": bids.prices.tolist(), "columns": columns}


def award_json(awarded: AwardedRound) -> Json:
    """Convert an awarded round to JSON, without bids, menu and amounts: those have own tables."""
    belief = None
    if awarded.belief is not None:
        belief = _sparse(asdict(awarded.belief))
    return {
        "purse": [awarded.purse.total, awarded.purse.max_rounds, awarded.purse.spent],
        "offer": _sparse(vars(awarded.offer)),
        "weights": awarded.award.weights,
        "fell_short": awarded.award.fell_short,
        "belief": belief,
        "privacy": awarded.privacy,
    }


def settlement_json(record: RoundRecord) -> Json:
    """Convert the outcome of a round to JSON, without its amounts."""
    delivery = record.delivery
    evidence = {client: _sparse(vars(one)) for client, one in delivery.delivered.items()}
    rare = {
        "ages": {str(age): n for age, n in delivery.ages.items()},
        "forgotten": delivery.forgotten,
        "blameless": delivery.blameless,
        "contributions": dict(delivery.contributions),
        "shapley": None if delivery.shapley is None else asdict(delivery.shapley),
    }
    tree = {
        "evaluation": _sparse(vars(record.evaluation)),
        "evidence": evidence,
        # Canonical JSON sorts keys, so the clients' order in the delivery needs lists of its own.
        "delivered": list(evidence),
        "void": list(delivery.void),
    }
    tree |= {key: value for key, value in rare.items() if value}
    return tree


def read_award(round_number: int, stored: StoredRound, currency: str | None = None) -> AwardedRound:
    """Rebuild an awarded round from its rows; one that an operator refused has no winners."""
    body = stored.promised or {}
    total, max_rounds, spent = body["purse"]
    purse = Purse(total, max_rounds, spent, round_number, currency)
    if stored.refused:
        award = Award(fell_short=body["fell_short"])
        privacy = None
    else:
        promised = dict(stored.promises)
        weights = _tuple(body["weights"])
        award = Award(tuple(promised), tuple(promised.values()), weights, body["fell_short"])
        privacy = body["privacy"]
    return AwardedRound(
        purse,
        Offer(**body["offer"]),
        _read_bids(stored.redactable.get("bids"), purse.unit),
        _read_costs(stored.redactable.get("menu")),
        award,
        _read_belief(body["belief"]),
        privacy,
        _read_left_out(stored.redactable.get("bids"), purse.unit),
    )


def read_record(round_number: int, stored: StoredRound, purse: Purse) -> RoundRecord:
    """Rebuild a settled round from its rows and the purse that the run was opened with."""
    body = stored.settled or {}
    evaluation = Evaluation(**body["evaluation"])
    if stored.promised is None:
        return RoundRecord.initial(purse, evaluation)
    reasons = {client: reason or "" for client, _, reason in stored.settlements}
    delivered = {client: Evidence(**body["evidence"][client]) for client in body["delivered"]}
    void = {client: reasons[client] for client in body["void"]}
    shapley = body.get("shapley")
    delivery = Delivery(
        evaluation,
        delivered,
        void,
        ages={int(age): n for age, n in body.get("ages", {}).items()},
        forgotten=tuple(body.get("forgotten", ())),
        blameless=tuple(body.get("blameless", ())),
        contributions=body.get("contributions", {}),
        shapley=None if shapley is None else Shapley(**shapley),
    )
    return read_award(round_number, stored, purse.currency).settle(delivery)


def asked_prices(bids: Json | None) -> dict[str, int] | None:
    """Return what each client asked in micro-units, from bids as JSON; None if bids are dropped.

    Those who were left out are among them, but for strangers, who are not in the register.
    """
    if bids is None:
        return None
    asked = dict(zip(bids["clients"], bids["prices"], strict=True))
    if "left_out" in bids:
        others = bids["left_out"]
        prices = dict(zip(others["clients"], others["prices"], strict=True))
        known = (client for client in prices if others["reasons"][client] != UNKNOWN)
        asked.update((client, prices[client]) for client in known)
    return asked


def _refusal(bodies: Mapping[str, Json]) -> str | None:
    """Return why an operator took a round's award back, if so, from its events' bodies by kind."""
    for kind in REFUSALS:
        if kind in bodies:
            words = f"{kind} by the operator"
            if "reason" in bodies[kind]:
                words += f": {bodies[kind]['reason']}"
            return words
    return None


def _read_belief(tree: Json | None) -> Belief | None:
    if tree is None:
        return None
    fields = {key: _tuple(value) for key, value in tree.items()}
    if fields.get("plan") is not None:
        fields["plan"] = Plan(**fields["plan"])
    if fields.get("outlook") is not None:
        fields["outlook"] = _read_outlook(fields["outlook"])
    return Belief(**fields)


def _read_outlook(tree: Json) -> MoneyOutlook:
    prospects = tuple(Prospect(**one) for one in tree["prospects"])
    return MoneyOutlook(**{**tree, "prospects": prospects})


def _read_bids(tree: Json | None, unit: int) -> Bids:
    if tree is None:
        return DROPPED_BIDS
    columns = {name: np.array(values, np.float64) for name, values in tree["columns"].items()}
    return Bids(tuple(tree["clients"]), np.array(tree["prices"], np.int64), columns, unit)


def _read_left_out(tree: Json | None, unit: int) -> LeftOut | None:
    if tree is None or "left_out" not in tree:
        return None
    return LeftOut(_read_bids(tree["left_out"], unit), tree["left_out"]["reasons"])


def _read_costs(costs: list[int] | None) -> IntArray:
    if costs is None:
        return DROPPED_COSTS
    return np.array(costs, np.int64)


def _sparse(tree: Json) -> Json:
    """Leave out values that are None; they read back as the default."""
    return {key: value for key, value in tree.items() if value is not None}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def stored_rounds(connection: sa.Connection, run: int) -> Iterator[tuple[int, StoredRound]]:
    """Yield the number and the rows of every promised or settled round, in order."""
    for first in count(0, PAGE):
        page = stored_page(connection, run, first, first + PAGE - 1)
        yield from page
        if len(page) < PAGE:
            return


def stored_page(
    connection: sa.Connection, run: int, first: int, last: int
) -> list[tuple[int, StoredRound]]:
    """Return the numbers and the rows of rounds first .. last, both included."""
    events = by_round(connection, schema.events, run, first, last, "number")
    promises = by_round(connection, schema.promises, run, first, last, "rank")
    settlements = by_round(connection, schema.settlements, run, first, last, "client")
    redactable = by_round(connection, schema.redactable, run, first, last, "part")
    found = []
    for number, happened in sorted(events.items()):
        bodies = {}
        settled_at = None
        for event in happened:
            bodies[event.kind] = json.loads(event.body)
            if event.kind == "settled":
                settled_at = event.at
        stored = StoredRound(
            bodies.get("awarded"),
            bodies.get("settled"),
            [(row.client, row.amount) for row in promises.get(number, ())],
            [(row.client, row.paid, row.reason) for row in settlements.get(number, ())],
            {row.part: json.loads(row.content) for row in redactable.get(number, ())},
            _refusal(bodies),
            settled_at,
        )
        found.append((number, stored))
    return found


def refused_rounds(run: int) -> sa.Select[tuple[int]]:
    """Select the rounds whose award an operator took back."""
    events = schema.events
    return sa.select(events.c.round).where(
        events.c.run == run, events.c.kind.in_(REFUSALS), events.c.round.is_not(None)
    )


def recruited_before(connection: sa.Connection, run: int, number: int) -> Counter[str]:
    """Return how often each client was recruited before a round; refused rounds do not count."""
    table = schema.promises
    query = (
        sa.select(table.c.client, sa.func.count())
        .where(
            table.c.run == run,
            table.c.round < number,
            table.c.round.not_in(refused_rounds(run)),
        )
        .group_by(table.c.client)
    )
    found: Counter[str] = Counter()
    for client, times in connection.execute(query):
        found[client] = times
    return found


def by_round(
    connection: sa.Connection, table: sa.Table, run: int, first: int, last: int, order: str
) -> Mapping[int, Sequence[Any]]:
    """Return a table's rows of rounds first .. last by round, each sorted by the column `order`."""
    found: dict[int, list[Any]] = defaultdict(list)
    asked = {"asked_run": run, "first": first, "last": last}
    for row in connection.execute(_rows_by_round(table, order), asked):
        found[row.round].append(row)
    return found


@lru_cache
def _rows_by_round(table: sa.Table, order: str) -> sa.Select[Any]:
    """Build a query once: building takes longer than the database needs."""
    rounds = table.c.round.between(sa.bindparam("first"), sa.bindparam("last"))
    query = sa.select(table).where(table.c.run == sa.bindparam("asked_run"), rounds)
    return query.order_by(table.c.round, table.c[order])


def last_of(
    connection: sa.Connection,
    run: int,
    *kinds: str,
    column: str = "body",
    round_number: int | None = None,
) -> str | None:
    """Return a column of the last event of these kinds; None if there is no such event.

    The event is about the round `round_number` or, for None, happened between rounds.
    """
    query = _last_event(kinds, column, between_rounds=round_number is None)
    asked = {"asked_run": run}
    if round_number is not None:
        asked["asked_round"] = round_number
    for (found,) in fetch(connection, query, **asked):
        return None if found is None else str(found)
    return None


@lru_cache
def _last_event(kinds: tuple[str, ...], column: str, *, between_rounds: bool) -> sa.Select[Any]:
    """Build a query once: building takes longer than the database needs."""
    table = schema.events
    run: sa.BindParameter[int] = sa.bindparam("asked_run")
    if between_rounds:
        # Adding 0 keeps SQLite from walking the whole chain by its primary key, so that it uses
        # the small index of the events between rounds.
        about = sa.and_(table.c.run + 0 == run, table.c.round.is_(None))
    else:
        about = sa.and_(table.c.run == run, table.c.round == sa.bindparam("asked_round"))
    is_kind = [table.c.kind == kind for kind in kinds]
    query = sa.select(table.c[column]).where(about, sa.or_(*is_kind))
    return query.order_by(table.c.number.desc()).limit(1)


@lru_cache
def bodies_of(kinds: tuple[str, ...]) -> sa.Select[Any]:
    """Select the bodies of a run's events of these kinds, in order."""
    table = schema.events
    is_kind = [table.c.kind == kind for kind in kinds]
    query = sa.select(table.c.body).where(table.c.run == sa.bindparam("run"), sa.or_(*is_kind))
    return query.order_by(table.c.number)


_ADDED = sa.select(sa.func.sum(schema.top_ups.c.amount)).where(
    schema.top_ups.c.run == sa.bindparam("run")
)


def topped_up(connection: sa.Connection, run: int) -> int:
    """Return how much was added to the budget since the run was opened."""
    return int(connection.scalar(_ADDED, {"run": run}) or 0)


def spent_before(connection: sa.Connection, run: int, round_number: int) -> int:
    """Return what was spent before a round: by the last balance, and by corrections since."""
    closings, corrections = schema.closings, schema.corrections
    balance = sa.select(closings.c.spent_after).where(
        closings.c.run == run, closings.c.round == round_number - 1
    )
    since = sa.select(sa.func.sum(corrections.c.amount)).where(
        corrections.c.run == run, corrections.c.counts_from == round_number
    )
    return int(connection.scalar(balance) or 0) + int(connection.scalar(since) or 0)


def is_paused(connection: sa.Connection, run: int) -> bool:
    """Return whether an operator has paused the run."""
    return last_of(connection, run, "paused", "continued", column="kind") == "paused"


def waiting_round(connection: sa.Connection, run: int, approve_above: int | None) -> int | None:
    """Return the unsettled round that nobody may train without an operator's approval, if any.

    Its award costs more than `approve_above`, or its offer asks for approval.
    """
    promises, closings = schema.promises, schema.closings
    last = sa.select(sa.func.max(closings.c.round)).where(closings.c.run == run).scalar_subquery()
    query = sa.select(promises.c.round, sa.func.sum(promises.c.amount)).where(
        promises.c.run == run, promises.c.round > last
    )
    found = connection.execute(query.group_by(promises.c.round)).one_or_none()
    if found is None:
        return None
    number = int(found[0])
    cost = int(found[1])
    body = json.loads(last_of(connection, run, "awarded", round_number=number) or "{}")
    asks = body.get("offer", {}).get("asks")
    above = approve_above is not None and cost > approve_above
    if above or asks:
        return number
    return None


def endorsement(connection: sa.Connection, run: int, round_number: int) -> str | None:
    """Return who gave the first of two approvals of a round; None if nobody did."""
    body = last_of(connection, run, "endorsed", round_number=round_number)
    if body is None:
        return None
    return str(json.loads(body)["by"])


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are one person's, spelled in two ways that look the same."""
    return _spelling(one) == _spelling(other)


def _spelling(name: str) -> str:
    """Return a name without its case, its width, its spaces and what nobody can see."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] not in "CZ")
