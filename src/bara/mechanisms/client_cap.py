"""A cap on what one client is paid over a whole run, around any mechanism."""

from collections import Counter
from dataclasses import replace
from typing import final

import numpy as np

from bara.protocols import Mechanism, Remembers, requirements_of
from bara.records import Bids, IntArray, Menu, RoundRecord

CAPPED = "it asks more than is left of its cap"
"""Why the cap leaves a client out of a round."""


@final
class ClientCap:
    """A mechanism with a personal reserve price: a client is paid at most the rest of its cap.

    A client that asks more than that is left out of the round; a winner is paid its payment or the
    rest of its cap, whichever is less. The rest is known before the bids are opened, so asking its
    cost stays the best a client can do. Costs on the menu are those of the mechanism, an upper
    bound.

    Args:
        inner: The mechanism that decides who is recruited and what they are paid.
        cap: The most that one client is paid over the run, in micro-units.
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
        """The properties that the inner mechanism claims."""
        return self.inner.claims

    def menu(self, bids: Bids) -> Menu:
        """Return the inner mechanism's menu of the clients that ask no more than their rest."""
        too_dear = bids.prices > self._left(bids)
        beyond = [bids.clients[i] for i in np.flatnonzero(too_dear)]
        menu = self.inner.menu(bids.without(beyond))
        room = self._left(menu.bids)[menu.order]  # the mechanism may have left out more
        room -= room % bids.unit

        def pay(n: int, cap: int) -> IntArray:
            return np.minimum(menu.pay(n, cap), room[:n])

        left_out = {**menu.left_out, **dict.fromkeys(beyond, CAPPED)}
        return replace(menu, pay=pay, left_out=left_out)

    def _left(self, bids: Bids) -> IntArray:
        """Return the rest of each client's cap, in the order of the bids."""
        return np.array([self._cap - self._paid[client] for client in bids.clients], np.int64)

    def tell(self, record: RoundRecord) -> None:
        """Add up what each client was paid."""
        self._paid.update(record.payments)
        self.inner.tell(record)
