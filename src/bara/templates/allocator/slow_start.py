"""An allocator to begin with: change what `ask` offers and what `tell` learns."""

from bara import Offer, Purse, RoundRecord


class SlowStart:
    """Recruits few clients, and one more whenever the model has not got better for some rounds.

    Args:
        clients: How many clients there are; bara gives it.
        few: How many to begin with.
        patience: After how many rounds without progress to take one more.
    """

    def __init__(self, clients: int, few: int = 3, patience: int = 5) -> None:
        self._most = max(clients - 1, 1)
        self._n, self._patience = few, patience
        self._best, self._since = 0.0, 0

    def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - what is left, of what, for how long
        """What each number of clients may cost, said before the bids are opened; asked twice, the same answer."""
        return Offer.recruit(min(self._n, self._most))

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; the only place in which anything changes."""
        self._since += 1
        if record.evaluation.accuracy > self._best:
            self._best, self._since = record.evaluation.accuracy, 0
        elif self._since == self._patience:
            self._n, self._since = self._n + 1, 0
