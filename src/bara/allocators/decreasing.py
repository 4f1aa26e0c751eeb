"""Monotonically decreasing allocation (MDA)."""

from dataclasses import dataclass
from fractions import Fraction

from bara.allocators.shares import carried_over, scheduled
from bara.records import Offer, Purse, RoundRecord


@dataclass(frozen=True)
class Decreasing:
    """Round t may cost 2 B_total (T_max - t) / T_max^2 (Yang et al. 2023, Baselines).

    As written the shares sum to (T_max - 1) / T_max of the budget, and the last round gets nothing.

    Args:
        carry_over: Share what is left in proportion to T_max - t among the rounds that are left.
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        if self.carry_over:
            return carried_over(purse, lambda t: purse.max_rounds - t)
        return scheduled(purse, lambda t: purse.max_rounds - t, Fraction(2, purse.max_rounds**2))

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""
