"""What durability costs: a ledger's commit beside a bare SQLite commit on the same disk, bytes and memory a round.

python benchmarks/bench_ledger.py [ROUNDS]      100,000 rounds: python benchmarks/bench_ledger.py 100000
"""

import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bara import Market, Purse, RoundRecord
from bara.allocators import Even
from bara.federations.bidding import Bidders
from bara.federations.distributions import Distribution
from bara.federations.synthetic import LearningCurve, SyntheticFederation
from bara.ledger import Books, Store
from bara.mechanisms import bid_price_first

CLIENTS = 20


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


def commits(path, bare, rounds):
    """Seconds of each commit of a run, each beside a bare one in turn, and the memory in use early and at the end."""
    store = Store.in_file(path)
    purse = Purse.of(rounds * 5, rounds)
    books = Books.open(store, "bench", {}, purse)
    federation = SyntheticFederation(
        Bidders(CLIENTS, Distribution.parse("uniform(0.5, 1.5)"), 0), LearningCurve(), 0, 0.1
    )
    market = Market(Even(), bid_price_first(), federation, purse, books.before_round)
    taken, bare_taken, memory = [], [], []
    for step in market.rounds():
        taken.append(timed(books.observe, step))
        bare_taken.append(timed(bare_commit, bare))
        if isinstance(step, RoundRecord) and step.round in (rounds // 10, rounds):
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    store.close()
    return statistics.median(taken[-2000:]), statistics.median(bare_taken[-2000:]), memory


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory(dir=".") as home:
        with closing(bare_database(Path(home) / "bare.db")) as other:
            commit, bare, (early, late) = commits(Path(home) / "ledger.db", other, rounds)
        size = (Path(home) / "ledger.db").stat().st_size / rounds
    print(f"bare SQLite commit   {1e3 * bare:7.2f} ms (median, in turn with the ledger's)")
    print(f"ledger commit        {1e3 * commit:7.2f} ms (median, two a round): {commit / bare:.2f} times the bare one")
    print(f"file                 {size:7.0f} bytes a round ({CLIENTS} clients, bids and menus kept)")
    print(f"peak memory          {early:7.1f} MB after {rounds // 10:,} rounds, {late:.1f} MB after {rounds:,}")


if __name__ == "__main__":
    main()
