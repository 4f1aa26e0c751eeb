"""How good a model is on some samples."""

from dataclasses import dataclass
from typing import final

from torch.nn.functional import cross_entropy

from bara.federations.simulator._batches import CHUNK, Indices, Samples
from bara.federations.simulator._networks import Network


@final
@dataclass(frozen=True)
class Tally:
    """Right answers and summed loss over some samples; tallies of chunks add up in the chunks' order."""

    right: int = 0
    loss: float = 0.0
    samples: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(self.right + other.right, self.loss + other.loss, self.samples + other.samples)


def tally(network: Network, samples: Samples, indices: Indices) -> Tally:
    """Count in chunks of a fixed size: the sum is the same whoever computes which part."""
    total = Tally()
    with network.context():
        for x, y in samples.batches(indices, CHUNK):
            scores = network.scores(x)
            right = int((scores.argmax(1) == y).sum())
            total += Tally(right, float(cross_entropy(scores, y, reduction="sum")), len(y))
    return total
