"""What durability costs: each commit of a ledger in turn with a bare SQLite commit.

The bare commit writes one small row to the same disk.

python benchmarks/bench_ledger.py [ROUNDS]
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bara import Purse, RoundRecord, Session
from bara.allocators import Even
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.ledger import Books, Store
from bara.mechanisms import bid_price_first
from bara.simulator.synthetic import LearningCurve, SyntheticFederation


def bare_database(path):
    """A SQLite file, logged ahead and fully synced, with one small table."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    return connection


def bare_commit(connection):
    """Store one small row durably."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t (b) VALUES (?)", ("x" * 100,))
    connection.execute("COMMIT")


def timed(action, *arguments):
    begun = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - begun


def steps_of(clients, books):
    bidders = Bidders(clients, Distribution.parse("uniform(0.5, 1.5)"), 0)
    federation = SyntheticFederation(bidders, LearningCurve(), 0, failure_rate=0.1)
    return Session(Even(), bid_price_first(), federation).rounds(books.purse)


def commits(home, clients, rounds):
    """Seconds of promises, of settlements and of bare commits, in turn, and the winners a round."""
    promises, settlements, bare, winners = [], [], [], []
    with (
        closing(Store.in_file(home / "ledger.db")) as store,
        closing(bare_database(home / "bare.db")) as other,
    ):
        books = Books.open(store, "bench", {}, Purse.of(clients * rounds / 4, rounds))
        for step in steps_of(clients, books):
            settled = isinstance(step, RoundRecord)
            (settlements if settled else promises).append(timed(books.record, step))
            bare.append(timed(bare_commit, other))
            if not settled:
                winners.append(step.award.n)
    return promises, settlements, bare, winners


def show(clients, rounds):
    with tempfile.TemporaryDirectory(dir=".") as home:
        promises, settlements, bare, winners = commits(Path(home), clients, rounds)
        size = (Path(home) / "ledger.db").stat().st_size / rounds
    alone = statistics.median(bare)
    print(
        f"{clients} clients, {statistics.median(winners):.0f} winners a round, {rounds} rounds "
        f"(medians)"
    )
    print(f"  bare SQLite commit {1e3 * alone:7.2f} ms")
    for name, taken in (("promise", promises), ("settlement", settlements)):
        commit = statistics.median(taken)
        beyond = 1e3 * (commit - alone)
        print(
            f"  {name:18} {1e3 * commit:7.2f} ms: {commit / alone:.2f} times a bare one, "
            f"{beyond:+.2f} ms"
        )
    print(f"  file               {size:7.0f} bytes a round (bids and menus kept)")


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    show(20, rounds)
    show(1000, max(rounds // 10, 1))
