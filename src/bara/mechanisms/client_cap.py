"""Known clients, and caps on what one client is paid, around any mechanism."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import final

import numpy as np

from bara.protocols import Mechanism, Remembers, requirements_of
from bara.records import MAX_MONEY, Bids, Entry, IntArray, Menu, Register, RoundRecord

CAPPED = "it asks more than is left of its cap"
"""Why the cap leaves a client out of a round."""

UNKNOWN = "it is not in the register"
"""Why a client is left out that the run does not know."""

DEAR = "it asks more than the fee in the register"
"""Why a client is left out that asks more than was agreed with it."""


Known = Callable[[int], tuple[Register | None, Mapping[str, int]]]
"""A function that returns, as of a round, the known clients (None for a run that knows everybody),
and by how much each client's payments were corrected."""


@final
class ClientCap:
    """A mechanism with a personal reserve price: a client is paid at most the rest of its cap.

    A client that asks more than that, or that a register does not hold, is left out of the round; a
    winner is paid its payment or the rest of its cap, whichever is less. The rest is known before
    the bids are opened, so asking its cost stays the best a client can do. Costs on the menu are
    those of the mechanism, an upper bound.

    Args:
        inner: The mechanism that decides who is recruited and what they are paid.
        cap: The most that one client is paid over the run, in micro-units; None for no cap but
            those in the register.
        register: The known clients; None to know everybody.
    """

    def __init__(
        self, inner: Mechanism, cap: int | None = None, register: Register | None = None
    ) -> None:
        self.inner = inner
        self._cap = MAX_MONEY if cap is None else cap
        self._known: Known = lambda _round: (register, {})
        self._paid: Counter[str] = Counter()
        self._round = 1
        self.requirements = requirements_of(inner)
        if isinstance(inner, Remembers):
            self.memory, self.restore = inner.memory, inner.restore

    @property
    def claims(self) -> frozenset[str]:
        """The properties that the inner mechanism claims."""
        return self.inner.claims

    def follow(self, known: Known) -> None:
        """Follow what changes during the run: its register, and corrections of payments."""
        self._known = known

    def strangers(self, bids: Bids) -> dict[str, str]:
        """Return the clients that the register does not hold, each with the reason."""
        register, _ = self._known(self._round)
        if register is None:
            return {}
        return {client: UNKNOWN for client in bids.clients if client not in register}

    def menu(self, bids: Bids) -> Menu:
        """Return the inner mechanism's menu of known clients that ask no more than their rest."""
        register, corrected = self._known(self._round)
        room = self._room(bids, register, corrected)
        left_out: dict[str, str] = {}
        for client, asked, most in zip(bids.clients, bids.prices, room, strict=True):
            entry = Entry() if register is None else register.get(client)
            if entry is None:
                left_out[client] = UNKNOWN
            elif entry.fee is not None and asked > entry.fee:
                left_out[client] = DEAR
            elif asked > most:
                left_out[client] = CAPPED
        menu = self.inner.menu(bids.without(left_out))
        staying = self._room(menu.bids, register, corrected)  # the mechanism may leave out more
        most = staying[menu.order]
        most -= most % bids.unit

        def pay(n: int, cap: int) -> IntArray:
            return np.minimum(menu.pay(n, cap), most[:n])

        return replace(menu, pay=pay, left_out={**menu.left_out, **left_out})

    def _room(
        self, bids: Bids, register: Register | None, corrected: Mapping[str, int]
    ) -> IntArray:
        """Return the most that each client is paid in this round, in the order of the bids."""
        found = []
        for client in bids.clients:
            entry = (register or {}).get(client, Entry())
            caps = [self._cap]
            if entry.limit is not None:
                caps.append(entry.limit)
            most = min(caps) - self._paid[client] - corrected.get(client, 0)
            if entry.fee is not None:
                most = min(most, entry.fee)
            found.append(most)
        return np.array(found, np.int64)

    def tell(self, record: RoundRecord) -> None:
        """Add up what each client was paid."""
        self._paid.update(record.payments)
        self._round = record.round + 1
        self.inner.tell(record)
