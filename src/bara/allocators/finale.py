"""Even allocation with a finale: the last rounds get several shares each."""

import math
from dataclasses import dataclass

from bara.errors import ConfigError
from bara.records import Offer, Purse, RoundRecord


@dataclass(frozen=True)
class Finale:
    """Shares what is left evenly among the rounds left, except that each of the last counts several times.

    Only the last rounds' selection noise is still in the final model, so that is where many clients help most.

    Args:
        rounds: How many rounds the finale has; None for a part of the deadline.
        shares: How many shares each of them gets.
        part: Which part of the deadline, where `rounds` is None.
    """

    rounds: int | None = None
    shares: int = 4
    part: float = 0.05

    def __post_init__(self) -> None:
        """Refuse a finale that is none."""
        if self.shares < 1 or (self.rounds is not None and self.rounds < 0):
            raise ConfigError(
                f"allocator 'finale' has rounds = {self.rounds} and shares = {self.shares}; required are rounds of at "
                "least 0 and shares of at least 1"
            )
        if not 0 <= self.part <= 1:
            raise ConfigError(f"allocator 'finale' has part = {self.part}; required is a part from 0 to 1")

    def ask(self, purse: Purse) -> Offer:
        """This round's shares of what is left."""
        if not purse.rounds_left:
            return Offer.stop()
        length = max(math.floor(self.part * purse.max_rounds + 1e-9), 1) if self.rounds is None else self.rounds
        final = min(purse.rounds_left, length)
        shares_left = purse.rounds_left - final + final * self.shares
        mine = self.shares if purse.rounds_left <= length else 1
        return Offer.spend(purse.left * mine // shares_left)

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""
