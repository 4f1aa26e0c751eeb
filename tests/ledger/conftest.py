"""Books in a file, and a small run written into them."""

import pytest

from bara import Purse, Session
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
        session = Session(allocator or Even(carry_over=True), bid_price_first(), federation)
        if memories is not None:  # stands for what a part says that it has learned
            record = books.record
            books.record = lambda step, _learned=(), _saved=None: record(step, memories)
        seen = []
        for step in session.rounds(books):
            seen.append(step)
            if len(seen) == steps:
                break
        return seen

    return play
