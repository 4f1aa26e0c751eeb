"""Books in a file, and a small run written into them."""

import pytest

from bara import Market, Purse
from bara.allocators import Even
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.ledger import Books, Store, Terms
from bara.mechanisms import bid_price_first
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

PURSE = Purse.of(30, 6)


@pytest.fixture
def open_books(tmp_path):
    """New books in a file of their own."""
    stores = []

    def make(name="run", terms=None):
        stores.append(Store.in_file(tmp_path / f"{name}.db", patience=0.3))
        return Books.open(stores[-1], name, {"seed": 0}, PURSE, terms or Terms())

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def play_into():
    """Plays a small federation, with failures, into books; returns the steps."""

    def play(books, steps=None, allocator=None, memories=None):
        bidders = Bidders(6, Distribution.parse("uniform(0.5, 1.5)"), 0)
        federation = SyntheticFederation(bidders, LearningCurve(), 0, failure_rate=0.3)
        market = Market(
            allocator or Even(carry_over=True),
            bid_price_first(),
            federation,
            PURSE,
            books.before_round,
        )
        seen = []
        for step in market.rounds():
            books.record(step, memories or {})
            seen.append(step)
            if len(seen) == steps:
                return seen
        books.close(market.ended)
        return seen

    return play
