"""Events of a run that need a person.

An award that waits, a pause, a low purse, a client that keeps failing, clients that bid and are
never recruited, or a target out of reach.
"""

import json
import shlex
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from bara.ledger._reading import endorsement, is_paused, recruited_before
from bara.ledger.books import Books
from bara.ledger.retention import is_dropped
from bara.ledger.statements import unanswered
from bara.mechanisms.client_cap import UNKNOWN
from bara.records import AwardedRound, Purse, RoundRecord
from bara.text import counted, listing

FAILURES = 3
"""How many times in a row a client must fail before somebody should look at it."""

RECENT = 10
"""How many recent rounds the pace of spending is taken from."""

LOW = 5
"""How many more rounds the money should last for at that pace, unless fewer are left."""

PASSED_OVER = 3
"""How many times clients must have been recruited, on average, before one that never was is named.

By then somebody recruited at random would have had a turn in 19 cases of 20.
"""

LOOKED_AT = 60
"""How many past rounds are read again to see who bids, and who keeps failing."""


@dataclass(frozen=True)
class Attention:
    """A state of a run that a person should know of, and may have to answer.

    Attributes:
        key: Tells it from others of the same run: one is told at least once.
        text: In words.
        answer: The command that answers it, whole and exact; None where nothing need be done.
    """

    key: str
    text: str
    answer: str | None = None


@final
class Watch:
    """A watch over a run's settled rounds, which says what needs a person.

    Args:
        address: How commands name the run: the DIR of `bara ledger DIR ...`.
        recruited: How often each client was recruited before the first round that is told.
    """

    def __init__(self, address: str, recruited: Mapping[str, int] = MappingProxyType({})) -> None:
        self._address = address
        self._failing: dict[str, tuple[int, int]] = {}  # (first round, times in a row)
        self._bidding: set[str] = set()
        self._recruited = Counter(recruited)
        self._unknown: dict[str, int] = {}  # the last round in which it bid, by its name
        self._costs: deque[int] = deque(maxlen=RECENT)
        self._purse: Purse | None = None
        self._belief: Any = None

    def tell(self, record: RoundRecord) -> None:
        """Take in a settled round."""
        for client in record.delivery.delivered:
            self._failing.pop(client, None)
        for client in record.delivery.failed:
            since, times = self._failing.get(client, (record.round, 0))
            self._failing[client] = (since, times + 1)
        if record.awarded.left_out is not None:
            for client, reason in record.awarded.left_out.reasons.items():
                if reason == UNKNOWN:
                    self._unknown[client] = record.round
                else:
                    self._bidding.add(client)
        self._recruited.update(record.awarded.award.clients)
        if not is_dropped(record.awarded.bids):
            self._bidding.update(record.awarded.bids.clients)
        if record.n:
            self._costs.append(record.paid)
        self._purse = record.purse_after
        self._belief = record.awarded.belief

    def needs(self) -> list[Attention]:
        """Return what needs a person now."""
        failing = []
        for client, (since, times) in sorted(self._failing.items()):
            if times >= FAILURES:
                text = (
                    f"{client} has failed {times} times in a row, since round {since}; "
                    "it backs off for longer each time"
                )
                failing.append(Attention(f"failing: {client} since round {since}", text))
        return [
            *self._low_purse(),
            *self._unregistered(),
            *failing,
            *self._passed_over(),
            *self._out_of_reach(),
        ]

    def _unregistered(self) -> list[Attention]:
        """Name those who bid in the last round and are not in the register."""
        found = []
        for client, last in sorted(self._unknown.items()):
            if self._purse is None or last != self._purse.round - 1:
                continue
            text = f"{client} bid and was left out: {UNKNOWN}"
            answer = f"bara ledger {self._address} register {shlex.quote(client)} --reason TEXT"
            found.append(Attention(f"not in the register: {client}", text, answer))
        return found

    def _passed_over(self) -> list[Attention]:
        """Name the clients that bid and are never recruited, once all could have had turns."""
        never = sorted(self._bidding - self._recruited.keys())
        if not never or self._recruited.total() < PASSED_OVER * len(self._bidding):
            return []
        bid = "bids and was" if len(never) == 1 else "bid and were"
        text = (
            f"{counted(len(never), 'client')} of {len(self._bidding)} {bid} never recruited "
            f"({listing(never)}): the model does not hear them"
        )
        return [Attention("clients that are never recruited", text)]

    def _low_purse(self) -> list[Attention]:
        purse = self._purse
        if purse is None or not self._costs or not purse.rounds_left:
            return []
        lasts = purse.left * len(self._costs) // max(sum(self._costs), 1)
        if lasts >= min(LOW, purse.rounds_left):
            return []
        text = (
            f"{purse.show(purse.left)} is left, "
            f"enough for about {counted(lasts, 'round')} as they were of late; "
            f"{counted(purse.rounds_left, 'round')} could still be played"
        )
        answer = f"bara ledger {self._address} topup AMOUNT --reason TEXT"
        return [Attention(f"low purse of {purse.total}", text, answer)]

    def _out_of_reach(self) -> list[Attention]:
        outlook = getattr(self._belief, "outlook", None)
        if self._purse is None or not getattr(outlook, "out_of_reach", False):
            return []
        left = self._purse.show(self._purse.left)
        text = f"the target looks out of reach with the {left} that is left"
        answer = f"bara ledger {self._address} topup AMOUNT --reason TEXT"
        if getattr(outlook, "enough", None) is None:
            text += ", and no budget would reach it by the deadline"
            answer = ""
        return [Attention(f"out of reach with {self._purse.total}", text, answer)]


def attentions(books: Books) -> list[Attention]:
    """Return what needs a person now, by a run's books; nothing for a run that has ended."""
    if books.ended() is not None:
        return []
    first = max(books.last_round() - LOOKED_AT, 0)
    with books.store.read() as connection:
        watch = Watch(books.address, recruited_before(connection, books.chain.run, first))
        for record in books.history(first):
            watch.tell(record)
        number = unanswered(connection, books)
        approver = None
        if number is not None:
            approver = endorsement(connection, books.chain.run, number)
        paused = is_paused(connection, books.chain.run)
    found = []
    awarded = None if number is None else books.promise(number)
    if awarded is not None:
        found.append(_waiting(books, awarded, approver))
    if paused:
        times = len(books.bodies("paused"))
        answer = f"bara ledger {books.address} continue"
        found.append(Attention(f"pause {times}", "the run is paused", answer))
    return [*found, *watch.needs()]


def _waiting(books: Books, awarded: AwardedRound, first: str | None) -> Attention:
    """Say that a round waits for an answer, of a second person if the first has approved it."""
    number = awarded.purse.round
    cost = books.purse.show(awarded.award.cost)
    text = f"round {number} promises {cost} and waits for your answer"
    if awarded.offer.asks:
        text += f": {awarded.offer.asks}"
    key = f"approval of round {number}"
    if first is not None:
        key = f"approval of round {number} by a second person"
        text += f"; {first} has approved, and another person must, too"
    answer = f"bara ledger {books.address} approve {number} --reason TEXT"
    answer += f", or decline {number} --reason TEXT"
    return Attention(key, text, answer)


def notified(books: Books) -> set[str]:
    """Return the keys of the attentions that somebody was notified of."""
    return {json.loads(body)["what"] for body in books.bodies("notified")}
