"""Random allocation (RA)."""

from dataclasses import dataclass

from bara.allocators._arms import check_clients
from bara.randomness import stream
from bara.records import Offer, Purse, RoundRecord, Shortfall


@dataclass(frozen=True)
class RandomN:
    """Recruits a number drawn evenly from 1 .. N - 1 and ends when it cannot be paid (Yang et al. 2023, Baselines).

    Args:
        clients: N, how many there may be.
        seed: Where the draws come from; a round's draw depends on nothing but (seed, round).
        shortfall: As the paper: `stop`.
    """

    clients: int
    seed: int = 0
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a federation too small to choose from."""
        check_clients("random", self.clients)

    def ask(self, purse: Purse) -> Offer:
        """This round's draw."""
        rng = stream(self.seed, "random n", purse.round)
        return Offer.recruit(int(rng.integers(1, max(self.clients, 2))), shortfall=self.shortfall)

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""
