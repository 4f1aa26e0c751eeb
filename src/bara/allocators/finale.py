"""Even allocation, except that the last rounds (a finale) or the first (an overture) get several shares each."""

import math
from dataclasses import dataclass
from typing import Annotated

from bara.plugins import Within, check_fields
from bara.protocols import LearnsNothing
from bara.records import Offer, Purse


@dataclass(frozen=True)
class Finale(LearnsNothing):
    """Shares what is left evenly among the rounds left, except that each of the last counts several times.

    Only the last rounds' selection noise is still in the final model, so that is where many clients
    help most.

    Args:
        rounds: How many rounds the finale has; None for a part of the deadline.
        shares: How many shares each of them gets.
        part: Which part of the deadline, where `rounds` is None.
    """

    rounds: Annotated[int | None, Within(at_least=0)] = None
    shares: Annotated[int, Within(at_least=1)] = 4
    part: Annotated[float, Within(at_least=0, at_most=1)] = 0.05

    def __post_init__(self) -> None:
        """Refuse a finale that is none."""
        check_fields(f"allocator '{type(self).__name__.lower()}'", self)

    def ask(self, purse: Purse) -> Offer:
        """This round's shares of what is left."""
        if not purse.rounds_left:
            return Offer.stop()
        length = (
            max(math.floor(self.part * purse.max_rounds + 1e-9), 1)
            if self.rounds is None
            else self.rounds
        )
        first, last = self._heavy(length, purse.max_rounds)
        heavy = max(last - max(first, purse.round) + 1, 0)  # of the rounds that are left
        shares_left = purse.rounds_left - heavy + heavy * self.shares
        mine = self.shares if first <= purse.round <= last else 1
        return Offer.spend(purse.left * mine // shares_left)

    def _heavy(self, length: int, max_rounds: int) -> tuple[int, int]:
        """The first and the last of the rounds that get several shares."""
        return max_rounds - length + 1, max_rounds


class Overture(Finale):
    """The same with the first rounds: what is bought early is worked with longest, above all where it is remembered."""

    def _heavy(self, length: int, max_rounds: int) -> tuple[int, int]:  # noqa: ARG002
        return 1, length
