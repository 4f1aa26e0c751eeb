"""The two messages of a sealed bid: the server's request before a round and the client's answer."""

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

_REQUEST = "bara-round"
_ANSWER = "bara-bid"
_COLUMN = "column-"

Price = float | str | Decimal


@final
@dataclass(frozen=True)
class Bid:
    """A client's bid for taking part in a round.

    Attributes:
        price: What the client asks, in units of the budget.
        columns: Further numbers that the mechanism wants, such as `samples` or `epsilon`.
    """

    price: Price
    columns: Mapping[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Opened:
    """A bid as the server reads it.

    Attributes:
        price: What the client asks, in micro-units; None if it sits this round out.
        columns: The further numbers in the bid, by name.
        partition: The client's partition number and the number of partitions, if its node has one.
        name: What the node calls itself, if that is a usable name.
    """

    price: int | None
    columns: Mapping[str, float]
    partition: tuple[int, int] | None
    name: str | None = None


def request(node: int, round: int, seconds: float) -> Message:
    """Return the message that asks a node for its bid.

    Args:
        node: The node's id.
        round: The round to bid for.
        seconds: How long the request stays valid.
    """
    record = RecordDict({_REQUEST: ConfigRecord({"round": round})})
    return Message(record, node, MESSAGE_TYPE, group_id=str(round), ttl=seconds)


def asked_round(message: Message) -> int:
    """Return the round that a request asks a bid for."""
    entries: Mapping[str, Any] = message.content.config_records[_REQUEST]
    return int(entries["round"])


def answer(bid: Bid | Price | None, node: UserConfig) -> RecordDict:
    """Return the content of the answer to a request.

    Args:
        bid: The client's bid, or its price alone; None to sit the round out.
        node: The node's configuration, which may hold its partition and its name.
    """
    entries: dict[str, Any] = {}
    if bid is not None:
        if not isinstance(bid, Bid):
            bid = Bid(bid)
        entries["price"] = money(bid.price, what="the price of this client's bid")
        for name, value in bid.columns.items():
            entries[f"{_COLUMN}{name}"] = float(value)
    for key in ("partition-id", "num-partitions", "name"):
        if key in node:
            entries[key] = node[key]
    return RecordDict({_ANSWER: ConfigRecord(entries)})


def read(content: RecordDict, most: int, unit: int = 1) -> Opened:
    """Open a node's answer, trusting nothing in it before it is checked.

    Args:
        content: What the node sent.
        most: The highest price, in micro-units, at which sums of prices do not overflow.
        unit: The amount, in micro-units, of which prices must be whole multiples.

    Raises:
        InvalidBidError: when the answer holds no valid bid.
    """
    entries = content.config_records.get(_ANSWER)
    if entries is None:
        raise InvalidBidError(
            f"its answer must hold a bid (see answer_bids), got {sorted(content)}"
        )
    return Opened(
        _price(entries.get("price"), most, unit),
        _columns(entries),
        _partition(entries),
        name_in(entries.get("name")),
    )


def name_in(words: object) -> str | None:
    """Return the words as a name that fits into tables and files; None if nothing usable is left.

    >>> name_in("silo north@host"), name_in("../"), name_in(3)
    ('silo-north-host', None, None)
    """
    if not isinstance(words, str):
        return None
    name = re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-._")
    return name[:40] or None


def _price(price: Any, most: int, unit: int) -> int | None:
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, int) or not 0 < price <= most:
        raise InvalidBidError(
            f"its price must be a whole number from 1 to {most} micro-units "
            f"({most // MICRO} units), got {price!r}"
        )
    if price % unit:
        raise InvalidBidError(
            f"its price must be a whole multiple of {show_money(unit)}, got {show_money(price)}"
        )
    return price


def _columns(entries: Mapping[str, Any]) -> dict[str, float]:
    columns = {}
    for key, value in entries.items():
        if key.startswith(_COLUMN):
            name = key.removeprefix(_COLUMN)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not isfinite(value) or value <= 0:
                raise InvalidBidError(f"its {name} must be finite and positive, got {value!r}")
            columns[name] = float(value)
    return columns


def _partition(entries: Mapping[str, Any]) -> tuple[int, int] | None:
    number = entries.get("partition-id")
    count = entries.get("num-partitions")
    if number is None or count is None:
        return None
    whole = type(number) is int and type(count) is int
    if not whole or not 0 <= number < count:
        raise InvalidBidError(
            "its partition-id must be a whole number from 0 to below num-partitions, got "
            f"{number!r} of {count!r}"
        )
    return number, count
