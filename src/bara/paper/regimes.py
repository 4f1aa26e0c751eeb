"""The regimes of the map: the paper's market on learning curves of many kinds, without a model.

They tell for which federations the paper is right. A regime says how early the curve converges, how
much it matters which clients a round selects, and how much money there is; the rest is the paper's
own setting. Accuracy comes from `bara.simulator.synthetic`, whose notation is used here.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from bara.runs.engines import SYNTHETIC
from bara.surrogates import gap_left


@dataclass(frozen=True)
class Regime:
    """A kind of federation: a curve, a swing and a budget.

    Attributes:
        s: The curve's scale in full rounds, small for a curve that converges early.
        swing: The points by which accuracy swings from round to round, roughly, with the 7 clients
            that an even share of the paper's money buys.
        money: The budget as a multiple of the paper's.
    """

    s: float
    swing: float
    money: float

    @property
    def name(self) -> str:
        """The label of the regime's runs."""
        return f"s={self.s:g} swing={self.swing:g} money={self.money:g}"

    @property
    def learned(self) -> float:
        """The fraction of all there is to learn that is learned by round 50 if all take part."""
        return float(1 - gap_left(50, self.s, _P))

    def tree(self) -> dict[str, Any]:
        """Return the experiment as a tree of keys, with the paper's budget."""
        curve = {"s": self.s, "p": _P, "delta": 0.15 * self.swing, "v_1": 1e-3 * self.swing**2}
        return {
            "budget": {"total": 1500, "max_rounds": 200},
            "clients": {"count": 20, "bids": "uniform(0.5, 1.5)"},
            "federation": {"engine": SYNTHETIC, **curve},
            "mechanism": {"name": "bid-price-first"},
        }


_P = 0.8

_SCALES = (40.0, 12.0, 2.0)
_SWINGS = (1, 2, 5)
_MONEY = (0.5, 1, 2)

_REGIMES = [Regime(*axes) for axes in product(_SCALES, _SWINGS, _MONEY)]

REGIMES = {one.name: one for one in _REGIMES}
"""All regimes by name.

They combine late, middling and early curves, small, middling and large swings, and half, all and
twice the paper's money.
"""
