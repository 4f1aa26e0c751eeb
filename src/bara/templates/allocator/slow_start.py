"""An allocator to start from: change what `ask` offers and what `tell` learns."""

from bara import Offer, Purse, RoundRecord


class SlowStart:
    """An allocator that starts with few clients and adds one whenever the model stops improving.

    Args:
        clients: The number of clients in the federation; bara passes it.
        few: The number of clients to start with.
        patience: The number of rounds without progress after which one client is added.
    """

    def __init__(self, clients: int, few: int = 3, patience: int = 5) -> None:
        self._most = max(clients - 1, 1)
        self._n = few
        self._patience = patience
        self._best_accuracy = 0.0
        self._rounds_without_progress = 0

    def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - the money and rounds left; not used here
        """Say what each number of clients may cost, before the bids are opened.

        Asked twice in a row, an allocator must give the same answer: change nothing here.
        """
        return Offer.recruit(min(self._n, self._most))

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; only this method may change the allocator."""
        self._rounds_without_progress += 1
        if record.evaluation.accuracy > self._best_accuracy:
            self._best_accuracy = record.evaluation.accuracy
            self._rounds_without_progress = 0
        elif self._rounds_without_progress == self._patience:
            self._n += 1
            self._rounds_without_progress = 0
