"""The sealed bids of one round, held in columns and checked when the record is made."""

import contextlib
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
from bara.text import UNSTORABLE, storable

TIE = "tie"
"""The column that ranks equally good clients, the lowest number first; without it, names decide."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Bids:
    """The sealed bids of one round in columns, sorted by the clients' names.

    Sorting makes the record independent of the order in which the bids arrived, also where clients
    tie: of two equally good clients, the one whose name sorts first is preferred, unless a column
    `tie` says otherwise.

    Attributes:
        clients: The names of the bidding clients, sorted, each once.
        prices: The price that each client asks, in micro-units.
        columns: Further columns by name, one finite positive number per client: `samples` (data
            size, known to the server), `epsilon` (the privacy budget of an FL-Market bid), ...
        unit: The smallest amount that can be paid, in micro-units; prices and payments are whole
            multiples of this amount.
        left_out: Why the bids of further clients are not among these, by client: they cannot be
            read or paid.
    """

    clients: tuple[str, ...]
    prices: IntArray
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    unit: int = 1
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every bid, then sort the record by the clients' names."""
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
        columns: dict[str, FloatArray] = {}
        for name, values in self.columns.items():
            columns[name] = checked_column(name, values, clients)
        strictly_ascending = all(map(lt, clients, clients[1:]))
        if not strictly_ascending:
            order = sorted(range(len(clients)), key=clients.__getitem__)
            clients = tuple(clients[i] for i in order)
            prices = prices[order]
            columns = {name: values[order] for name, values in columns.items()}
            _check_named_once(clients)
        object.__setattr__(self, "clients", clients)
        object.__setattr__(self, "prices", _read_only(prices.astype(np.int64)))
        frozen_columns = {name: _read_only(values) for name, values in columns.items()}
        object.__setattr__(self, "columns", MappingProxyType(frozen_columns))
        reasons = {client: storable(reason) for client, reason in self.left_out.items()}
        object.__setattr__(self, "left_out", MappingProxyType(reasons))

    @classmethod
    def of(
        cls, prices: Mapping[str, float | str | Decimal], /, **columns: Mapping[str, float]
    ) -> Self:
        """Make bids from prices in units of the budget and, if wanted, further columns.

        Args:
            prices: The price that each client asks, in units of the budget.
            **columns: Further columns by name, each with a number for every client.

        >>> Bids.of({"ann": "0.75", "bob": 1.2}, samples={"ann": 300, "bob": 600}).prices.tolist()
        [750000, 1200000]
        """
        for client, price in prices.items():
            if not 0 < _as_float(price) < float("inf"):
                raise _bad_price(client, price)
        micros: dict[str, int] = {}
        for client, price in prices.items():
            micros[client] = money(price, what=f"the price of client {client!r}")
        for client, micro in micros.items():
            if micro == 0:
                raise _bad_price(client, prices[client])
        for name, column in columns.items():
            for client in prices:
                if client not in column:
                    raise InvalidBidError(
                        f"client {client!r} has no {name!r}; every client must have one"
                    )
        arrays: dict[str, FloatArray] = {}
        for name, column in columns.items():
            arrays[name] = np.array([column[client] for client in prices], float)
        return cls(tuple(prices), np.array(list(micros.values()), np.int64), arrays)

    @classmethod
    def opened(
        cls, prices: Mapping[str, float | str | Decimal], /, **columns: Mapping[str, float]
    ) -> Self:
        """Make bids of whatever clients sent: a bad bid is left out, and `left_out` says why.

        Args:
            prices: What each client sent as its price, in units of the budget.
            **columns: What clients sent as further columns, by name.

        >>> bids = Bids.opened({"ann": "0.75", "bob": "80,50"})
        >>> bids.clients, list(bids.left_out)
        (('ann',), ['bob'])
        """
        check_names(list(prices), InvalidBidError)
        with contextlib.suppress(BaraError, ValueError, TypeError):
            return cls.of(prices, **columns)  # all at once, which is fast
        sound: dict[str, float | str | Decimal] = {}
        reasons: dict[str, str] = {}
        for client, price in prices.items():
            try:
                bid = cls.of({client: price}, **columns)
                _check_prices(bid.clients, bid.prices, among=len(prices))
            except (BaraError, ValueError, TypeError) as error:
                reasons[client] = str(error)
            else:
                sound[client] = price
        return replace(cls.of(sound, **columns), left_out=reasons)

    def __len__(self) -> int:
        """Return the number of bidding clients."""
        return len(self.clients)

    def column(self, name: str) -> FloatArray:
        """Return the column of that name, or raise an error that lists the columns there are."""
        try:
            return self.columns[name]
        except KeyError:
            known = ", ".join(sorted(self.columns)) or "none"
            raise InvalidBidError(f"bids have no column {name!r}; they have: {known}") from None

    @property
    def preference(self) -> IntArray | None:
        """The clients' positions in the order that settles ties; None where names settle them."""
        if TIE not in self.columns:
            return None
        return np.argsort(self.columns[TIE], kind="stable")

    def ranked(self, scores: FloatArray) -> IntArray:
        """Return the clients' positions by score, the lowest first; `preference` settles ties."""
        preferred = self.preference
        if preferred is None:
            return np.argsort(scores, kind="stable")
        return preferred[np.argsort(scores[preferred], kind="stable")]

    def price_of(self, client: str) -> int:
        """Return the price that a client asks, in micro-units."""
        return int(self.prices[self.clients.index(client)])

    def replace_price(self, client: str, price: int) -> "Bids":
        """Return the same bids with one price changed, to ask what would happen then."""
        prices = self.prices.copy()
        place = self.clients.index(client)
        prices[place] = price
        if not 0 < int(prices[place]) <= _highest_price(len(self.clients)):
            _check_prices(self.clients, prices, self.unit)
        prices.flags.writeable = False
        # Everything but the price was checked when these bids were made.
        changed = object.__new__(Bids)
        changed.__dict__.update(self.__dict__, prices=prices)
        return changed

    def without(self, clients: Iterable[str]) -> "Bids":
        """Return the bids of all clients except these; names that do not bid are ignored."""
        gone = set(clients)
        if not gone:
            return self
        staying = [i for i, client in enumerate(self.clients) if client not in gone]
        if len(staying) == len(self.clients):
            return self
        names = tuple(self.clients[i] for i in staying)
        columns = {name: values[staying] for name, values in self.columns.items()}
        return Bids(names, self.prices[staying], columns, self.unit, self.left_out)

    def joined(self, others: "Bids") -> "Bids":
        """Return these bids together with those of other clients, which have the same columns."""
        columns = {}
        for name, values in self.columns.items():
            columns[name] = np.append(values, others.columns[name])
        prices = np.append(self.prices, others.prices)
        reasons = {**self.left_out, **others.left_out}
        return Bids((*self.clients, *others.clients), prices, columns, self.unit, reasons)

    def in_units_of(self, unit: int) -> "Bids":
        """Return the same bids in another unit; those that are no multiple of it are left out."""
        if unit == self.unit:
            return self
        reasons = dict(self.left_out)
        odd = [self.clients[i] for i in np.flatnonzero(self.prices % unit)]
        for client in odd:
            reasons[client] = str(_off_unit(client, self.price_of(client), unit))
        return replace(self.without(odd), unit=unit, left_out=reasons)


def check_names(clients: Sequence[object], error: type[BaraError]) -> None:
    """Refuse client names that no ledger can store.

    Args:
        clients: The names to check.
        error: The class of the error to raise.
    """
    for client in clients:
        if not isinstance(client, str) or UNSTORABLE.search(client):
            raise error(
                f"a client's name must be text without NUL or lone surrogates, got {client!r}"
            )


def _as_float(value: Any) -> float:
    """Return the value as a float; NaN where Python cannot convert it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _bad_price(client: str, price: object) -> InvalidBidError:
    """Return the error for a price that is not a positive amount."""
    return InvalidBidError(
        f"client {client!r} asks {price}; a price must be finite and at least 0.000001"
    )


def _highest_price(clients: int) -> int:
    """Return the highest price with which a sum over all clients still fits in 63 bits."""
    return MAX_MONEY >> max(clients, 1).bit_length()


def _check_prices(
    clients: Sequence[str], prices: NDArray[Any], unit: int = 1, among: int | None = None
) -> None:
    """Refuse the first price that is not positive, not a multiple of the unit, or too high.

    Args:
        clients: The clients' names.
        prices: Their prices, in micro-units.
        unit: The smallest amount that can be paid, in micro-units.
        among: The number of bids whose prices may be added up; None for those of `clients`.
    """
    if (prices <= 0).any():
        first = int(np.argmax(prices <= 0))
        raise _bad_price(clients[first], show_money(int(prices[first])))
    if unit > 1:
        off_unit = prices % unit != 0
        if off_unit.any():
            first = int(np.argmax(off_unit))
            raise _off_unit(clients[first], int(prices[first]), unit)
    count = len(clients) if among is None else among
    most = _highest_price(count)
    if (prices > most).any():
        first = int(np.argmax(prices > most))
        raise InvalidBidError(
            f"client {clients[first]!r} asks {show_money(int(prices[first]))}; "
            f"with {count} clients, a price must be at most {show_money(most)} "
            "(price times clients must fit in 63 bits)"
        )


def _off_unit(client: str, price: int, unit: int) -> InvalidBidError:
    """Return the error for a price that is not a multiple of the smallest amount."""
    return InvalidBidError(
        f"the price of client {client!r} must be a whole multiple of {show_money(unit)}, the "
        f"currency's smallest amount, got {show_money(price)}"
    )


def _check_named_once(clients: Sequence[str]) -> None:
    """Refuse sorted names among which one occurs twice."""
    for before, client in pairwise(clients):
        if before == client:
            raise InvalidBidError(f"client {client!r} bids twice; a client may bid once per round")


def checked_column(name: str, values: ArrayLike, clients: Sequence[str]) -> FloatArray:
    """Return a column as floats; refuse it unless every client has a finite positive number.

    Args:
        name: The column's name, for errors.
        values: One number per client.
        clients: The clients' names, in the order of the values.
    """
    column = np.array(values, np.float64)
    if column.shape != (len(clients),):
        raise InvalidBidError(
            f"column {name!r} must have one value per client, got {column.size} for {len(clients)}"
        )
    if not len(column):
        return column
    lowest = column[column.argmin()]  # NaN if any value is NaN, and then no comparison holds
    highest = column[column.argmax()]
    if not (lowest > 0 and highest < np.inf):
        first = int(np.argmin(np.isfinite(column) & (column > 0)))
        raise InvalidBidError(
            f"client {clients[first]!r} has {name} = {column[first]}; "
            "it must be finite and positive"
        )
    return column
