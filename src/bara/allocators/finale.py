"""Even allocation, except that the last rounds (a finale) or the first (an overture) get more."""

import math
from dataclasses import dataclass
from typing import Annotated

from bara.options import Within, check_fields
from bara.protocols import LearnsNothing
from bara.records import Offer, Purse


@dataclass(frozen=True)
class Finale(LearnsNothing):
    """An even split of the money left, in which each of the last rounds gets several shares.

    Only the selection noise of the last rounds is still in the final model, so many clients help
    most there.

    Args:
        rounds: The number of rounds of the finale; None for a part of the deadline.
        shares: The number of shares that each of these rounds gets.
        part: The part of the deadline that the finale takes, where `rounds` is None.
    """

    rounds: Annotated[int | None, Within(at_least=0)] = None
    shares: Annotated[int, Within(at_least=1)] = 4
    part: Annotated[float, Within(at_least=0, at_most=1)] = 0.05

    def __post_init__(self) -> None:
        """Refuse options out of their range."""
        check_fields(f"allocator '{type(self).__name__.lower()}'", self)

    def ask(self, purse: Purse) -> Offer:
        """Offer this round its shares of the money left."""
        if not purse.rounds_left:
            return Offer.stop()
        length = self.rounds
        if length is None:
            length = max(math.floor(self.part * purse.max_rounds + 1e-9), 1)
        first, last = self._heavy(length, purse.max_rounds)
        heavy = max(last - max(first, purse.round) + 1, 0)  # of the rounds left
        shares_left = purse.rounds_left - heavy + heavy * self.shares
        mine = self.shares if first <= purse.round <= last else 1
        return Offer.spend(purse.left * mine // shares_left)

    def _heavy(self, length: int, max_rounds: int) -> tuple[int, int]:
        """Return the first and the last of the rounds that get several shares."""
        return max_rounds - length + 1, max_rounds


class Overture(Finale):
    """An even split of the money left, in which each of the first rounds gets several shares.

    What is bought early is used longest, above all where updates are remembered.
    """

    def _heavy(self, length: int, max_rounds: int) -> tuple[int, int]:  # noqa: ARG002 - as in Finale
        return 1, length
