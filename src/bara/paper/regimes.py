"""For which federations is the paper right? Its market on learning curves of many kinds, without a model.

A regime says how early the curve converges, how much it matters whom a round selects, and how much
money there is; the rest is the paper's own setting. Accuracy comes from `bara.simulator.synthetic`,
whose notation this is.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from bara.surrogates import gap_left


@dataclass(frozen=True)
class Regime:
    """One kind of federation.

    Attributes:
        s: The curve's scale in full rounds: small for one that converges early.
        swing: By about how many points accuracy swings from round to round with the 7 clients that
            an even share of the paper's money buys.
        money: Times the paper's budget.
    """

    s: float
    swing: float
    money: float

    @property
    def name(self) -> str:
        """As runs are labelled."""
        return f"s={self.s:g} swing={self.swing:g} money={self.money:g}"

    @property
    def learned(self) -> float:
        """Which part of all there is to learn is learned by round 50 if all clients take part."""
        return float(1 - gap_left(50, self.s, _P))

    def tree(self) -> dict[str, Any]:
        """The experiment, with the paper's budget."""
        curve = {"s": self.s, "p": _P, "delta": 0.15 * self.swing, "v_1": 1e-3 * self.swing**2}
        return {
            "budget": {"total": 1500, "max_rounds": 200},
            "clients": {"count": 20, "bids": "uniform(0.5, 1.5)"},
            "federation": {"engine": "synthetic", **curve},
        }


_P = 0.8

REGIMES = {
    one.name: one
    for one in (Regime(*axes) for axes in product((40.0, 12.0, 2.0), (1, 2, 5), (0.5, 1, 2)))
}
"""All combinations of late, middling and early curves, small, middling and large swings, and half, all and twice the
paper's money, by name."""
