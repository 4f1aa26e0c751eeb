"""A federation whose clients have chosen their names with care.

It can take its time, and wait for a sign.
"""

import time
from pathlib import Path

import numpy as np

from bara.records import Bids, Delivery, Evaluation, Evidence

NAMES = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "exe.gpj\u202ecod.trap",
    "x" * 10_000,
    "=HYPERLINK(0)",
    "\u200f\u2066mark",
    "'\"&amp;\\",
    "plain",
]


class Hostile:
    """Eight clients; in every third round the best of them fails, and says why in markup.

    Options: `delay`, the seconds that a round takes, and `gate`, the beginning of the names of
        files: where it is given, round 4 does not end without `GATE-4`, nor round 20 without
        `GATE-20`.
    """

    def __init__(self, config):
        self.delay = config.federation.options.get("delay", 0)
        self.gate = config.federation.options.get("gate")

    def evaluate(self):
        return Evaluation(0.1, 2.0)

    def bids(self, round):
        prices = np.random.default_rng(round).uniform(0.5, 1.5, len(NAMES)).round(3)
        return Bids.of(dict(zip(NAMES, prices.tolist(), strict=True)))

    def train(self, round, award):
        time.sleep(self.delay)
        gated = self.gate is not None and round in (4, 20)
        while gated and not Path(f"{self.gate}-{round}").exists():
            time.sleep(0.05)
        accuracy = 0.9 - 0.8 / (1 + round / 10)
        void = {client: "<b>gone</b>" for client in award.clients[:1] if round % 3 == 0}
        delivered = {client: Evidence() for client in award.clients if client not in void}
        return Delivery(Evaluation(accuracy, 2 - accuracy), delivered, void)
