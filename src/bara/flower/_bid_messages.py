"""The two messages of a sealed bid: the server's request before a round and the client's answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Any, SupportsFloat, final

from flwr.app import ConfigRecord, Message, RecordDict, UserConfig

from bara.errors import InvalidBidError, InvalidMoneyError
from bara.records import money

ACTION = "bid"
MESSAGE_TYPE = f"query.{ACTION}"

_REQUEST = "bara-round"
_ANSWER = "bara-bid"
_COLUMN = "column-"

Price = float | str | Decimal


@final
@dataclass(frozen=True)
class Bid:
    """A client's bid for taking part in a round, checked when it is made.

    Attributes:
        price: What the client asks, in units of the budget.
        columns: Further numbers that the mechanism wants, such as `samples` or `epsilon`.

    Raises:
        InvalidBidError: If the price is not a positive amount, or a column not a positive number.
    """

    price: Price
    columns: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what the server would leave out, on the client's own machine."""
        checked_price(self.price, "the price of this client's bid")
        for name, value in self.columns.items():
            number = isinstance(value, SupportsFloat) and not isinstance(value, bool)
            if not number or not isfinite(value) or not value > 0:
                raise InvalidBidError(
                    f"column {name!r} of this client's bid must be a finite positive number, got "
                    f"{value!r}"
                )


def checked_price(price: Price, what: str) -> int:
    """Return a price in micro-units; refuse one that is not a positive amount.

    Args:
        price: The price, in units of the budget.
        what: How to name the price in an error.
    """
    try:
        micros = money(price, what=what)
    except InvalidMoneyError as error:
        raise InvalidBidError(str(error)) from None
    if micros <= 0:
        raise InvalidBidError(f"{what} must be at least 0.000001, got {price}")
    return micros


@final
@dataclass(frozen=True)
class Opened:
    """A bid as the server reads it.

    Attributes:
        price: What the client asks, in micro-units; None if it sits this round out.
        columns: The further numbers in the bid, by name.
        partition: The client's partition number and the number of partitions, if its node has one.
        name: What the node calls itself, if that is a usable name.
        fault: Why its price or its columns cannot be read; empty if they can.
    """

    price: int | None
    columns: Mapping[str, float]
    partition: tuple[int, int] | None
    name: str | None = None
    fault: str = ""


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
        entries["price"] = money(bid.price)
        for name, value in bid.columns.items():
            entries[f"{_COLUMN}{name}"] = float(value)
    for key in ("partition-id", "num-partitions", "name"):
        if key in node:
            entries[key] = node[key]
    return RecordDict({_ANSWER: ConfigRecord(entries)})


def read(content: RecordDict) -> Opened:
    """Open a node's answer, trusting nothing in it; `Bids.opened` checks what its numbers are.

    Args:
        content: What the node sent.

    Raises:
        InvalidBidError: when the answer holds no bid.
    """
    entries = content.config_records.get(_ANSWER)
    if entries is None:
        raise InvalidBidError(
            f"its answer must hold a bid (see answer_bids), got {sorted(content)}"
        )
    partition = _partition(entries)
    name = name_in(entries.get("name"))
    try:
        return Opened(_price(entries.get("price")), _columns(entries), partition, name)
    except InvalidBidError as error:
        return Opened(None, {}, partition, name, str(error))


def name_in(words: object) -> str | None:
    """Return the words as a name that fits into tables and files; None if nothing usable is left.

    >>> name_in("silo north@host"), name_in("../"), name_in(3)
    ('silo-north-host', None, None)
    """
    if not isinstance(words, str):
        return None
    name = re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-._")
    return name[:40] or None


def _price(price: Any) -> int | None:
    if price is not None and type(price) is not int:
        raise InvalidBidError(f"its price must be a whole number of micro-units, got {price!r}")
    return price


def _columns(entries: Mapping[str, Any]) -> dict[str, float]:
    columns = {}
    for key, value in entries.items():
        if key.startswith(_COLUMN):
            name = key.removeprefix(_COLUMN)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidBidError(f"its {name} must be a number, got {value!r}")
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
