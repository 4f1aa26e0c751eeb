"""Even allocation (EA): the same budget every round."""

from dataclasses import dataclass
from fractions import Fraction

from bara.allocators.shares import carried_over, scheduled
from bara.records import Offer, Purse, RoundRecord


@dataclass(frozen=True)
class Even:
    """Every round may cost B_total / T_max (Yang et al. 2023, Baselines).

    Args:
        carry_over: Share what is left among the rounds that are left instead, so that nothing stays unspent.

    >>> Even().ask(Purse.of(1500, 200)).cap(8)
    7500000
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        if self.carry_over:
            return carried_over(purse, _weight)
        return scheduled(purse, _weight, Fraction(1, purse.max_rounds))

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""


def _weight(_round: int) -> int:
    return 1
