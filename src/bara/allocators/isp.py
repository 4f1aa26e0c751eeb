"""ISP: an adaptive number of clients with probing rounds of full participation (arXiv 2508.13803).

What is known of ISP: every few rounds everybody takes part; from that round it takes the smallest k
whose held-out loss still beats an average of past losses, and it smooths k with momentum. A server
that aggregates a probe's updates in many ways could try every k at once; ours sees one loss per
round, so it looks for the smallest k in the rounds between probes. A probe recruits N - 1, the most
that an auction without a reserve price has a loser for.
"""

from collections import deque
from statistics import fmean
from typing import Annotated

from bara.allocators._arms import check_clients
from bara.options import Within, check_arguments
from bara.records import Evaluation, Offer, Purse, RoundRecord, Shortfall


class Isp:
    """The fewest clients that bring the loss below its recent average, and N - 1 every few rounds.

    Args:
        clients: N, the largest number of clients there may be.
        every: The number of rounds from one probe to the next.
        momentum: The part of k that stays from one round to the next.
        shortfall: When k cannot be paid: `stop` or `shrink`.
    """

    def __init__(
        self,
        clients: int,
        every: Annotated[int, Within(at_least=1)] = 10,
        momentum: Annotated[float, Within(at_least=0, below=1)] = 0.5,
        shortfall: Shortfall = "stop",
    ) -> None:
        check_clients("isp", clients)
        check_arguments("allocator 'isp'", Isp, every=every, momentum=momentum, shortfall=shortfall)
        self._most = max(clients - 1, 1)
        self._every = every
        self._momentum = momentum
        self._shortfall = shortfall
        self._size = float(self._most)
        self._losses: deque[float] = deque(maxlen=every)

    def ask(self, purse: Purse) -> Offer:
        """Recruit N - 1 clients in a probe, k between probes."""
        if self._probes(purse.round):
            return Offer.recruit(self._most, shortfall="shrink")
        return Offer.recruit(max(round(self._size), 1), shortfall=self._shortfall)

    def tell(self, record: RoundRecord) -> None:
        """Try fewer clients after a loss below the average, more after one above it."""
        loss = _loss(record.evaluation)
        if record.n and not self._probes(record.round) and self._losses:
            target = self._size * (0.75 if loss < fmean(self._losses) else 1.5)
            smoothed = self._momentum * self._size + (1 - self._momentum) * target
            self._size = min(max(smoothed, 1.0), float(self._most))
        self._losses.append(loss)

    def _probes(self, round_: int) -> bool:
        return round_ % self._every == 1 % self._every


def _loss(evaluation: Evaluation) -> float:
    return -evaluation.accuracy if evaluation.loss is None else evaluation.loss
