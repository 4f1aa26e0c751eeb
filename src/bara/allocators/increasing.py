"""Monotonically increasing allocation (MIA)."""

from dataclasses import dataclass
from fractions import Fraction

from bara.allocators.shares import carried_over, scheduled
from bara.records import Offer, Purse, RoundRecord


@dataclass(frozen=True)
class Increasing:
    """Round t may cost 2 B_total t / T_max^2 (Yang et al. 2023, Baselines).

    As written the shares sum to (T_max + 1) / T_max of the budget; the purse clamps the last.

    Args:
        carry_over: Share what is left in proportion to t among the rounds that are left.
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        if self.carry_over:
            return carried_over(purse, _weight)
        return scheduled(purse, _weight, Fraction(2, purse.max_rounds**2))

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""


def _weight(t: int) -> int:
    return t
