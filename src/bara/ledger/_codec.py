"""Records as JSON, and back again without loss."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
    Offer,
    Plan,
    Purse,
    RoundRecord,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class StoredRound:
    """One round's rows, as they were read.

    Attributes:
        promised: The award's event body, or None for round 0.
        settled: The settlement's event body, or None while it is not settled.
        promises: (client, amount), best first.
        settlements: (client, paid, reason).
        redactable: What may be dropped (bids, menu) and is still there, by name.
        declined: An operator would not have it: nobody trains and nobody is paid.
    """

    promised: Json | None
    settled: Json | None
    promises: Sequence[tuple[str, int]]
    settlements: Sequence[tuple[str, int, str | None]]
    redactable: Mapping[str, Any]
    declined: bool = False


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
    # A delivery keeps the order in which clients were named; a record that is read back must keep it too.
    order = {"delivered": list(evidence), "void": list(record.delivery.void)}
    return {"evaluation": _sparse(vars(record.evaluation)), "evidence": evidence, **order}


def read_award(round_number: int, stored: StoredRound) -> AwardedRound:
    """The promise as it was made; bids and menu are there unless they were dropped. Declined, it recruits nobody."""
    body = stored.promised or {}
    total, max_rounds, spent = body["purse"]
    return AwardedRound(
        Purse(total, max_rounds, spent, round_number),
        Offer(**{**body["offer"], "table": _tuple(body["offer"].get("table"))}),
        _read_bids(stored.redactable.get("bids")),
        _read_costs(stored.redactable.get("menu")),
        Award(fell_short=body["fell_short"]) if stored.declined else _award(body, stored.promises),
        _read_belief(body["belief"]),
        None if stored.declined else body["privacy"],
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
    return read_award(round_number, stored).settle(Delivery(evaluation, delivered, void))


def asked_prices(bids: Json | None) -> dict[str, int] | None:
    """What each client asked, in micro-units, of bids in columns; None where they are dropped."""
    return None if bids is None else dict(zip(bids["clients"], bids["prices"], strict=True))


def _award(body: Json, promises: Sequence[tuple[str, int]]) -> Award:
    clients, payments = zip(*promises, strict=True) if promises else ((), ())
    return Award(clients, payments, _tuple(body["weights"]), body["fell_short"])


def _read_belief(tree: Json | None) -> Belief | None:
    if tree is None:
        return None
    plan = tree.get("plan")
    known = {key: _tuple(value) for key, value in tree.items()}
    return Belief(**{**known, "plan": None if plan is None else Plan(**plan)})


def _read_bids(tree: Json | None) -> Bids:
    if tree is None:
        return DROPPED_BIDS
    columns = {name: np.array(values, np.float64) for name, values in tree["columns"].items()}
    return Bids(tuple(tree["clients"]), np.array(tree["prices"], np.int64), columns)


def _read_costs(costs: list[int] | None) -> IntArray:
    return DROPPED_COSTS if costs is None else np.array(costs, np.int64)


def _sparse(tree: Json) -> Json:
    """Without what is not set: it reads back as the default."""
    return {key: value for key, value in tree.items() if value is not None}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
