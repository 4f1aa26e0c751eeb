"""FMore: a multi-dimensional procurement auction that pays winners what they ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from bara.errors import ConfigError
from bara.mechanisms._learned import sizes
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.options import Within, check_fields
from bara.protocols import LearnsNothing, Requirements
from bara.records import MICRO, Bids, FloatArray, Menu

Form = Literal["additive", "cobb-douglas", "min"]

_FORMS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "additive": lambda x, a: a @ x,
    "cobb-douglas": lambda x, a: np.exp(a @ np.log(x)),
    "min": lambda x, a: (a[:, None] * x).min(0),
}
"""The scoring functions s of the dimensions x, one row each, and their weights a."""


@dataclass(frozen=True)
class FMore(LearnsNothing):
    """A first-price auction: the highest scores S_i = worth * s(q_i) - b_i win and get their price.

    Zeng et al. 2020 (ICDCS): the score is quasi-linear in the price; s is additive (sum a_k x_k),
    Cobb-Douglas (prod x_k^a_k) or perfect complements (min a_k x_k); the K best win at first price.
    So it is *not* truthful: a winner gains by asking more, and the audit shows where. Our choices:
    each dimension x_k is divided by its largest value in the round, and `worth` turns s into units
    of the budget.

    Args:
        columns: The dimensions of quality: columns of the bids that the server knows.
        weights: a_k, one per dimension; 1 each unless given.
        form: The form of s: `additive`, `cobb-douglas` or `min`.
        worth: What s = 1 is worth, in units of the budget.

    >>> bids = Bids.of({"ann": 1, "bob": 1, "cat": 2}, samples={"ann": 100, "bob": 50, "cat": 100})
    >>> menu = FMore(worth=3).menu(bids)  # ann scores 3 - 1, cat 3 - 2, bob 1.5 - 1
    >>> [bids.clients[i] for i in menu.order], menu.cost(2)
    (['ann', 'cat', 'bob'], 3000000)
    """

    columns: Sequence[str] = ("samples",)
    weights: Sequence[float] | None = None
    form: Form = "additive"
    worth: Annotated[float, Within(above=0)] = 1.0
    claims: ClassVar[frozenset[str]] = CRITICAL_PAYMENTS - {"truthful-in-price"}

    def __post_init__(self) -> None:
        """Refuse a score that cannot be computed."""
        if isinstance(self.columns, str):
            raise ConfigError(
                f"mechanism 'fmore' has columns = {self.columns!r}; it must be a list, like "
                f"[{self.columns!r}]"
            )
        check_fields("mechanism 'fmore'", self)
        weights = [1.0] * len(self.columns) if self.weights is None else self.weights
        fits = len(weights) == len(self.columns) and all(0 < one < np.inf for one in weights)
        if not self.columns or not fits:
            raise ConfigError(
                f"mechanism 'fmore' has weights {list(weights)} for columns {list(self.columns)}; "
                "each column must have one, finite and positive"
            )

    @property
    def requirements(self) -> Requirements:
        """Bids with every dimension that is scored."""
        return Requirements(columns=tuple(self.columns))

    def menu(self, bids: Bids) -> Menu:
        """Return the menu by score, on which n clients cost what they ask."""
        order = bids.ranked(-self.scores(bids))
        prices = bids.prices[order]
        return Menu(bids, order, np.cumsum(prices), pay=lambda n, _cap: prices[:n])

    def scores(self, bids: Bids) -> FloatArray:
        """Return S_i of every bid, in micro-units."""
        if not len(bids):
            return np.zeros(0)
        dimensions = []
        for name in self.columns:
            values = sizes(bids) if name == "samples" else bids.column(name)
            dimensions.append(values / values.max())
        x = np.stack(dimensions)
        weights = np.ones(len(x)) if self.weights is None else np.asarray(self.weights, float)
        return np.asarray(self.worth * MICRO * _FORMS[self.form](x, weights) - bids.prices)
