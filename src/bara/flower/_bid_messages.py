"""How a bid is asked for and answered: the two messages that client and server exchange before a round."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Any, final

from flwr.app import ConfigRecord, Message, RecordDict, UserConfig

from bara.errors import InvalidBidError
from bara.records import MICRO, money, show_money

ACTION = "bid"
MESSAGE_TYPE = f"query.{ACTION}"

_ASKED, _ANSWERED, _COLUMN = "bara-round", "bara-bid", "column-"

Price = float | str | Decimal


@final
@dataclass(frozen=True)
class Bid:
    """What a client asks for taking part in a round.

    Attributes:
        price: In units of the budget.
        columns: What the mechanism wants beside it: `samples`, `epsilon`.
    """

    price: Price
    columns: Mapping[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Opened:
    """A bid as the server reads it.

    Attributes:
        price: In micro-units; None from a client that sits this round out.
        columns: What came beside it.
        partition: Which part of how many the client holds, where its node says so.
        name: What its node calls itself, where that is a name.
    """

    price: int | None
    columns: Mapping[str, float]
    partition: tuple[int, int] | None
    name: str | None = None


def request(node: int, round: int, seconds: float) -> Message:
    """Ask a node for its bid."""
    record = RecordDict({_ASKED: ConfigRecord({"round": round})})
    return Message(record, node, MESSAGE_TYPE, group_id=str(round), ttl=seconds)


def asked_round(message: Message) -> int:
    """Which round a request is about."""
    return int(message.content.config_records[_ASKED]["round"])  # type: ignore[arg-type]


def answer(bid: Bid | Price | None, node: UserConfig) -> RecordDict:
    """The answer to a request; None to sit the round out."""
    words: dict[str, Any] = {}
    if bid is not None:
        bid = bid if isinstance(bid, Bid) else Bid(bid)
        words["price"] = money(bid.price, what="the price of this client's bid")
        words |= {f"{_COLUMN}{name}": float(value) for name, value in bid.columns.items()}
    words |= {key: node[key] for key in ("partition-id", "num-partitions", "name") if key in node}
    return RecordDict({_ANSWERED: ConfigRecord(words)})


def read(content: RecordDict, most: int, unit: int = 1) -> Opened:
    """Open an answer; nothing in it is believed before it is checked.

    Args:
        content: What the node sent.
        most: The highest price, in micro-units, with which sums still fit.
        unit: What prices must be whole multiples of.

    Raises:
        InvalidBidError: when it is no bid.
    """
    words = content.config_records.get(_ANSWERED)
    if words is None:
        raise InvalidBidError(
            f"its answer must hold a bid (see answer_bids), got {sorted(content)}"
        )
    return Opened(
        _price(words.get("price"), most, unit),
        _columns(words),
        _partition(words),
        name_in(words.get("name")),
    )


def name_in(words: object) -> str | None:
    """A name that fits into tables and files, if that is one; of another's the rest is left out.

    >>> name_in("silo north@host"), name_in("../"), name_in(3)
    ('silo-north-host', None, None)
    """
    name = re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-._") if isinstance(words, str) else ""
    return name[:40] or None


def _price(price: Any, most: int, unit: int) -> int | None:
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, int) or not 0 < price <= most:
        raise InvalidBidError(
            f"its price must be a whole number from 1 to {most} micro-units ({most // MICRO} units), got {price!r}"
        )
    if price % unit:
        raise InvalidBidError(
            f"its price must be a whole multiple of {show_money(unit)}, got {show_money(price)}"
        )
    return price


def _columns(words: Mapping[str, Any]) -> dict[str, float]:
    found = {
        key.removeprefix(_COLUMN): value for key, value in words.items() if key.startswith(_COLUMN)
    }
    for name, value in found.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (isfinite(value) and value > 0)
        ):
            raise InvalidBidError(f"its {name} must be finite and positive, got {value!r}")
    return {name: float(value) for name, value in found.items()}


def _partition(words: Mapping[str, Any]) -> tuple[int, int] | None:
    part, parts = words.get("partition-id"), words.get("num-partitions")
    if part is None or parts is None:
        return None
    if not (type(part) is type(parts) is int and 0 <= part < parts):
        raise InvalidBidError(
            f"its partition-id must be a whole number from 0 to below num-partitions, got {part!r} of {parts!r}"
        )
    return part, parts
