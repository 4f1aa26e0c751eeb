"""A cap on what one client is paid over a whole run, around any mechanism."""

from collections import Counter
from dataclasses import replace
from typing import final

import numpy as np

from bara.protocols import Mechanism, Remembers, requirements_of
from bara.records import Bids, IntArray, Menu, RoundRecord


@final
class ClientCap:
    """A personal reserve price: what is left of a client's cap is the most it is paid.

    Who asks more than that is left out of the round; who wins is paid its payment or what is left
    of its cap, whichever is less. Both are set before the bids are opened, so asking one's cost
    stays the best a client can do. Costs on the menu are those of the mechanism, an upper bound.

    Args:
        inner: Decides who is recruited and what they are paid.
        cap: The most one client is paid over the run, in micro-units.
    """

    def __init__(self, inner: Mechanism, cap: int) -> None:
        self.inner = inner
        self._cap = cap
        self._paid: Counter[str] = Counter()
        self.requirements = requirements_of(inner)
        if isinstance(inner, Remembers):
            self.memory, self.restore = inner.memory, inner.restore

    @property
    def claims(self) -> frozenset[str]:
        """The mechanism's own."""
        return self.inner.claims

    def menu(self, bids: Bids) -> Menu:
        """The mechanism's menu among those whose price is within what is left of their cap."""
        beyond = [
            client
            for client, out in zip(bids.clients, bids.prices > self._left(bids), strict=True)
            if out
        ]
        menu = self.inner.menu(bids.without(beyond))
        room = self._left(menu.bids)[menu.order]  # the mechanism may have left out more
        room -= room % bids.unit

        def pay(n: int, cap: int) -> IntArray:
            return np.minimum(menu.pay(n, cap), room[:n])

        return replace(menu, pay=pay)

    def _left(self, bids: Bids) -> IntArray:
        return np.array([self._cap - self._paid[client] for client in bids.clients], np.int64)

    def tell(self, record: RoundRecord) -> None:
        """Count what each was paid."""
        self._paid.update(record.payments)
        self.inner.tell(record)
