"""How the time of two rounds grows with the number of clients, with books and without.

Beside it: the time to sort as many bids by price.

python benchmarks/bench_clients.py [MOST]

Processor time. The rival, Python's own sort of (price, name), is the least that any auction among
names must do.
"""

import sys
import tempfile
import time
from pathlib import Path

from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.ledger import verify
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

REPEATS = 3


def seconds(action):
    """The least of a few: what the action takes when others leave it alone."""
    taken = []
    for _ in range(REPEATS):
        begun = time.process_time()
        action()
        taken.append(time.process_time() - begun)
    return min(taken)


def sorting(clients):
    bids = Bidders(clients, Distribution.parse("uniform(0.5, 1.5)"), 0).bids(1)
    pairs = list(zip(bids.prices.tolist(), bids.clients, strict=True))
    return lambda: (sorted(pairs), sorted(pairs))


def config_of(clients):
    amounts = (f"clients.count={clients}", f"budget.total={clients}", "budget.max_rounds=2")
    return Config.load(None, ["federation.engine=synthetic", "clients.failure_rate=0.1", *amounts])


def with_books(config):
    with (
        tempfile.TemporaryDirectory(dir=".") as home,
        RunFolder.new(Path(home) / "run", config) as folder,
    ):
        play_run(config, folder=folder)


def main(most):
    with_books(config_of(100))  # what is imported and compiled once
    before = {}
    for clients in [1000 * 10**power for power in range(9) if 1000 * 10**power <= most]:
        config, rival = config_of(clients), seconds(sorting(clients))
        print(f"{clients} clients, two rounds; two sorts of as many bids: {1e3 * rival:.2f} ms")
        with (
            tempfile.TemporaryDirectory(dir=".") as home,
            RunFolder.new(Path(home) / "run", config) as folder,
        ):
            play_run(config, folder=folder)
            books = folder.open_books()
            actions = {
                "market alone": lambda config=config: play_run(config),
                "with books": lambda config=config: with_books(config),
                "verify": lambda books=books: verify(books),
            }
            for name, action in actions.items():
                taken = seconds(action)
                growth = (
                    f", {taken / before[name]:.1f} times as long for ten times as many"
                    if name in before
                    else ""
                )
                print(
                    f"  {name:13} {1e3 * taken:8.1f} ms: {taken / rival:5.1f} times the "
                    f"sorts{growth}"
                )
                before[name] = taken


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
