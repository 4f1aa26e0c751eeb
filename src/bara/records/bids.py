"""One round's sealed bids, in columns, checked at the door."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from operator import lt
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bara.errors import BaraError, InvalidBidError
from bara.records.money import MAX_MONEY, money, show_money
from bara.text import UNSTORABLE

TIE = "tie"
"""The column that says who goes first of clients that are equally good: the lower number; else the order of names."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Bids:
    """One round's sealed bids, a column each, in the order of the clients' names.

    The order is part of the record: where two clients are equally good, the one whose name sorts
    first is preferred, whatever order the bids arrived in, unless a column `tie` says otherwise.

    Attributes:
        clients: Who bids, each once, sorted.
        prices: What each asks, in micro-units.
        columns: Further columns, one finite positive number per client: `samples` (data size, known
            to the server), `epsilon` (the privacy budget of an FL-Market bid), ...
        unit: The smallest amount that can be paid, of which prices are whole multiples and payments
            must be.
    """

    clients: tuple[str, ...]
    prices: IntArray
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    unit: int = 1

    def __post_init__(self) -> None:
        """Check every bid, then put the record into the order of the clients' names."""
        clients = tuple(self.clients)
        check_names(clients, InvalidBidError)
        prices = np.asarray(self.prices)
        if prices.shape != (len(clients),):
            raise InvalidBidError(
                f"bids must have one price per client, got {prices.size} for {len(clients)}"
            )
        if prices.size and prices.dtype.kind not in "iu":
            raise InvalidBidError(
                "prices must be whole micro-units; use Bids.of for prices in units of the budget"
            )
        _check_prices(clients, prices, self.unit)
        columns = {
            name: checked_column(name, values, clients) for name, values in self.columns.items()
        }
        if not all(map(lt, clients, clients[1:])):
            order = sorted(range(len(clients)), key=clients.__getitem__)
            clients = tuple(clients[i] for i in order)
            prices = prices[order]
            columns = {name: values[order] for name, values in columns.items()}
            _check_named_once(clients)
        object.__setattr__(self, "clients", clients)
        object.__setattr__(self, "prices", _read_only(prices.astype(np.int64)))
        object.__setattr__(
            self, "columns", MappingProxyType({k: _read_only(v) for k, v in columns.items()})
        )

    @classmethod
    def of(
        cls, prices: Mapping[str, float | str | Decimal], **columns: Mapping[str, float]
    ) -> Self:
        """Bids from prices in units of the budget, by client.

        >>> Bids.of({"ann": "0.75", "bob": 1.2}, samples={"ann": 300, "bob": 600}).prices.tolist()
        [750000, 1200000]
        """
        for client, price in prices.items():
            if not 0 < _as_float(price) < float("inf"):
                raise _bad_price(client, price)
        micros = [
            money(price, what=f"the price of client {client!r}") for client, price in prices.items()
        ]
        for client, price, micro in zip(prices, prices.values(), micros, strict=True):
            if micro == 0:
                raise _bad_price(client, price)
        missing = [(c, name) for name, column in columns.items() for c in prices if c not in column]
        if missing:
            raise InvalidBidError(
                f"client {missing[0][0]!r} has no {missing[0][1]!r}; every client must have one"
            )
        values = {
            name: np.array([column[c] for c in prices], float) for name, column in columns.items()
        }
        return cls(tuple(prices), np.array(micros, np.int64), values)

    def __len__(self) -> int:
        """How many clients bid."""
        return len(self.clients)

    def column(self, name: str) -> FloatArray:
        """The column of that name, or an error that says which there are."""
        try:
            return self.columns[name]
        except KeyError:
            known = ", ".join(sorted(self.columns)) or "none"
            raise InvalidBidError(f"bids have no column {name!r}; they have: {known}") from None

    @property
    def preference(self) -> IntArray | None:
        """Positions in the order in which ties are settled; None for the order that the record has."""
        return np.argsort(self.columns[TIE], kind="stable") if TIE in self.columns else None

    def ranked(self, scores: FloatArray) -> IntArray:
        """Positions by score, the lowest first; equals in the order in which ties are settled."""
        preferred = np.arange(len(self)) if self.preference is None else self.preference
        return preferred[np.argsort(scores[preferred], kind="stable")]

    def price_of(self, client: str) -> int:
        """What that client asks."""
        return int(self.prices[self.clients.index(client)])

    def replace_price(self, client: str, price: int) -> "Bids":
        """The same bids, but for one client's price; what-if questions are asked this way."""
        prices, place = self.prices.copy(), self.clients.index(client)
        prices[place] = price
        if not 0 < int(prices[place]) <= _dearest(len(prices)):
            _check_prices(self.clients, prices, self.unit)
        changed = object.__new__(Bids)  # all but the price was checked when these bids were made
        vars(changed).update(vars(self), prices=_read_only(prices))
        return changed

    def without(self, clients: Iterable[str]) -> "Bids":
        """The bids of all other clients."""
        gone = set(clients)
        if not gone:
            return self
        keep = [i for i, client in enumerate(self.clients) if client not in gone]
        if len(keep) == len(self.clients):
            return self
        columns = {name: values[keep] for name, values in self.columns.items()}
        return Bids(tuple(self.clients[i] for i in keep), self.prices[keep], columns, self.unit)

    def in_units_of(self, unit: int) -> "Bids":
        """The same bids, refused unless every price is a whole number of these units."""
        if unit == self.unit:
            return self
        _check_prices(self.clients, self.prices, unit)
        return replace(self, unit=unit)


def check_names(clients: Sequence[object], error: type[BaraError]) -> None:
    """Refuse names that no ledger can hold."""
    for client in clients:
        if not isinstance(client, str) or UNSTORABLE.search(client):
            raise error(
                f"a client's name must be text without NUL or lone surrogates, got {client!r}"
            )


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _bad_price(client: str, price: object) -> InvalidBidError:
    return InvalidBidError(
        f"client {client!r} asks {price}; a price must be finite and at least 0.000001"
    )


def _dearest(clients: int) -> int:
    return MAX_MONEY >> max(clients, 1).bit_length()


def _check_prices(clients: Sequence[str], prices: NDArray[Any], unit: int = 1) -> None:
    if (prices <= 0).any():
        worst = int(np.argmax(prices <= 0))
        raise _bad_price(clients[worst], show_money(int(prices[worst])))
    if unit > 1 and (off := prices % unit != 0).any():
        worst = int(np.argmax(off))
        raise InvalidBidError(
            f"the price of client {clients[worst]!r} must be a whole multiple of {show_money(unit)}, the currency's "
            f"smallest amount, got {show_money(int(prices[worst]))}"
        )
    most = _dearest(len(clients))
    if (prices > most).any():
        worst = int(np.argmax(prices > most))
        raise InvalidBidError(
            f"client {clients[worst]!r} asks {show_money(int(prices[worst]))}; with {len(clients)} clients, a price "
            f"must be at most {show_money(most)} (price times clients must fit in 63 bits)"
        )


def _check_named_once(clients: Sequence[str]) -> None:
    for before, client in pairwise(clients):
        if before == client:
            raise InvalidBidError(f"client {client!r} bids twice; a client may bid once per round")


def checked_column(name: str, values: ArrayLike, clients: Sequence[str]) -> FloatArray:
    """One finite positive number per client, or an error that names the client."""
    column = np.array(values, np.float64)
    if column.shape != (len(clients),):
        raise InvalidBidError(
            f"column {name!r} must have one value per client, got {column.size} for {len(clients)}"
        )
    if len(column) and not (
        column[column.argmin()] > 0 and column[column.argmax()] < np.inf
    ):  # also where one is NaN
        worst = int(np.argmin(np.isfinite(column) & (column > 0)))
        raise InvalidBidError(
            f"client {clients[worst]!r} has {name} = {column[worst]}; it must be finite and positive"
        )
    return column
