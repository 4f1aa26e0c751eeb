"""Shared by all tests: how hard hypothesis tries, and how to play a small federation."""

import os

import hypothesis
import pytest

from bara import Market, Purse, RoundRecord
from bara.federations.bidding import Bidders
from bara.federations.distributions import Distribution
from bara.federations.synthetic import LearningCurve, SyntheticFederation
from bara.mechanisms import bid_price_first

for _name, _examples in (("default", 100), ("thorough", 100_000)):
    hypothesis.settings.register_profile(
        _name, max_examples=_examples, deadline=None, derandomize=_name == "default", print_blob=True
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def make_federation():
    """A synthetic federation in one call."""

    def make(clients=8, seed=0, bids="uniform(0.5, 1.5)", failure_rate=0.0, **curve):
        bidders = Bidders(clients, Distribution.parse(bids), seed)
        return SyntheticFederation(bidders, LearningCurve(**curve), seed, failure_rate)

    return make


@pytest.fixture
def play(make_federation):
    """Plays an allocator on a synthetic federation; returns the settled rounds and why it ended."""

    def play(allocator, purse=None, federation=None, mechanism=None):
        market = Market(
            allocator, mechanism or bid_price_first(), federation or make_federation(), purse or Purse.of(60, 30)
        )
        records = [step for step in market.rounds() if isinstance(step, RoundRecord)]
        return records, market.ended

    return play
