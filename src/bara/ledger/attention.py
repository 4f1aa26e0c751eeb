"""What needs a person: an award that waits, a pause, a low purse, a client that fails on, a target out of reach."""

import json
from collections import deque
from dataclasses import dataclass
from typing import Any, final

from bara.ledger._reading import is_paused
from bara.ledger.books import Books
from bara.ledger.statements import unanswered
from bara.records import Purse, RoundRecord
from bara.text import counted

FAILURES = 3
"""Rounds in a row that a client fails in before somebody should look at it."""

RECENT = 10
"""Rounds from which the pace of spending is taken."""

LOW = 5
"""Rounds that the money should still last for, at that pace, unless fewer are left."""

LOOKED_AT = 60
"""Rounds that are read again to tell who keeps failing."""


@dataclass(frozen=True)
class Attention:
    """Something that a person should know of, and may have to answer.

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
    """Follows a run's settled rounds, and says what of them needs a person."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._failing: dict[str, tuple[int, int]] = {}  # since which round, and how often
        self._costs: deque[int] = deque(maxlen=RECENT)
        self._purse: Purse | None = None
        self._belief: Any = None

    def tell(self, record: RoundRecord) -> None:
        """Take in a settled round."""
        for client in record.delivery.delivered:
            self._failing.pop(client, None)
        for client in record.delivery.failed:
            since, times = self._failing.get(client, (record.round, 0))
            self._failing[client] = since, times + 1
        if record.n:
            self._costs.append(record.paid)
        self._purse, self._belief = record.purse_after, record.awarded.belief

    def needs(self) -> list[Attention]:
        """What needs a person now."""
        failing = [
            Attention(
                f"failing: {client} since round {since}",
                f"{client} has failed {times} times in a row, since round {since}; it backs off for longer each time",
            )
            for client, (since, times) in sorted(self._failing.items())
            if times >= FAILURES
        ]
        return [*self._low_purse(), *failing, *self._out_of_reach()]

    def _low_purse(self) -> list[Attention]:
        purse = self._purse
        if purse is None or not self._costs or not purse.rounds_left:
            return []
        lasts = purse.left * len(self._costs) // max(sum(self._costs), 1)
        if lasts >= min(LOW, purse.rounds_left):
            return []
        text = (
            f"{purse.show(purse.left)} is left, enough for about {counted(lasts, 'round')} as they were of late; "
            f"{counted(purse.rounds_left, 'round')} could still be played"
        )
        return [
            Attention(
                f"low purse of {purse.total}", text, f"bara ledger {self._address} topup AMOUNT"
            )
        ]

    def _out_of_reach(self) -> list[Attention]:
        outlook = getattr(self._belief, "outlook", None)
        if self._purse is None or not getattr(outlook, "out_of_reach", False):
            return []
        text = f"the target looks out of reach with the {self._purse.show(self._purse.left)} that is left"
        cure = f"bara ledger {self._address} topup AMOUNT"
        if getattr(outlook, "enough", None) is None:
            text, cure = f"{text}, and no budget would reach it by the deadline", ""
        return [Attention(f"out of reach with {self._purse.total}", text, cure)]


def attentions(books: Books) -> list[Attention]:
    """What needs a person now, from a run's books alone; nothing once it has ended."""
    if books.ended() is not None:
        return []
    watch = Watch(books.address)
    for record in books.history(max(books.last_round() - LOOKED_AT, 0)):
        watch.tell(record)
    with books.store.read() as connection:
        number, paused = unanswered(connection, books), is_paused(connection, books.chain.run)
    found = [] if number is None else [_waiting(books, number)]
    if paused:
        times = len(books.bodies("paused"))
        found.append(
            Attention(
                f"pause {times}", "the run is paused", f"bara ledger {books.address} continue"
            )
        )
    return [*found, *watch.needs()]


def _waiting(books: Books, number: int) -> Attention:
    awarded = next(one for one, _ in books.promises(number, number) if one is not None)
    why = f": {asks}" if (asks := getattr(awarded.offer, "asks", None)) else ""
    text = f"round {number} promises {books.purse.show(awarded.award.cost)} and waits for your answer{why}"
    approve = f"bara ledger {books.address} approve {number}"
    return Attention(f"approval of round {number}", text, f"{approve}, or decline {number}")


def notified(books: Books) -> set[str]:
    """What somebody was told of already, by its key."""
    return {json.loads(body)["what"] for body in books.bodies("notified")}
