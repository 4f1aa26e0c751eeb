"""The audit of whole runs: it finds what pays, and nothing where nothing does."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bara import Menu
from bara.allocators import ALLOCATORS
from bara.cli import app
from bara.mechanisms import MECHANISMS
from bara.mechanisms.posted_price import PostedPrice
from bara.studies.run_audit import CLIENTS, TRICKS, audit_runs


def found(make_mechanism, allocator="even", runs=1, **options):
    def make_allocator(clients, seed):
        return ALLOCATORS.build(allocator, options, clients=clients, seed=seed)

    return {one.trick: one for one in audit_runs(make_mechanism, make_allocator, runs)}


class PayAsBid:
    """Pays everybody what it asks, so that asking more is all gain."""

    claims = frozenset({"individually-rational"})

    def menu(self, bids):
        order = np.arange(len(bids))
        return Menu(bids, order, bids.prices.cumsum(), lambda n, _cap: bids.prices[:n])

    def tell(self, record):
        pass


def test_every_trick_is_tried_by_every_client():
    findings = found(PayAsBid, "fixed", runs=2, n=CLIENTS)
    assert set(findings) == {trick.name for trick in TRICKS}
    assert {one.tried for one in findings.values()} == {2 * CLIENTS}


def test_what_asking_more_earns_is_found():
    findings = found(PayAsBid, "fixed", n=2)
    assert findings["asks 1.3 times its cost"].most > 0
    assert findings["asks 0.7 times its cost"].mean < 0


def test_where_a_price_is_posted_nothing_gains_but_a_second_name():
    """Everybody is recruited every round; whoever fails, stays away or asks too much earns less."""
    findings = found(lambda: PostedPrice(price=2), "fixed", n=CLIENTS)
    for name, one in findings.items():
        if name != "bids as two clients":
            assert one.most <= 1e-9, name


@pytest.mark.parametrize(
    ("name", "options"),
    [("turns", {"quality": "samples"}), ("fl-market", {}), ("tariff", {"per_sample": 3})],
)
def test_mechanisms_that_require_columns_are_audited_with_them(name, options):
    findings = found(lambda: MECHANISMS.build(name, options), "fixed", n=2)
    assert set(findings) == {trick.name for trick in TRICKS}
    assert findings["asks 0.7 times its cost"].mean <= 0


def test_in_a_currency_everybody_asks_whole_cents():
    class InCents(PayAsBid):
        def menu(self, bids):
            assert not (bids.prices % 10_000).any()
            assert bids.unit == 10_000
            return super().menu(bids)

    def make_allocator(clients, seed):
        return ALLOCATORS.build("fixed", {"n": 2}, clients=clients, seed=seed)

    findings = list(audit_runs(InCents, make_allocator, 1, currency="EUR"))
    assert len(findings) == len(TRICKS)


@pytest.mark.path
def test_price_first_is_worth_asking_ones_cost_and_waiting_pays_under_turns():
    first = found(lambda: MECHANISMS.build("bid-price-first"), carry_over=True)
    turns = found(lambda: MECHANISMS.build("turns"), carry_over=True)
    twice = "asks 2 times its cost"
    assert first[twice].mean < 0 < turns[twice].mean


@pytest.mark.path
def test_with_standing_prices_no_trick_gains_a_hundredth_but_a_second_name():
    findings = found(lambda: MECHANISMS.build("standing", {"reserve": 1.6}), carry_over=True)
    for name, one in findings.items():
        if name != "bids as two clients":
            assert one.most <= 0.01, name
            assert one.mean <= 0, name


@pytest.mark.path
def test_it_is_the_same_again():
    make = lambda: MECHANISMS.build("turns")  # noqa: E731
    assert found(make) == found(make)


@pytest.mark.path
def test_the_command_prints_a_table_or_json():
    words = ["audit", "bid-price-first", "--trials", "5", "--runs", "1", "--allocator", "fixed:n=2"]
    shown = CliRunner().invoke(app, words).output
    assert "asks 2 times its cost" in shown
    tree = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert len(tree["runs"]) == len(TRICKS)
    assert set(tree["runs"][0]) == {"trick", "tried", "mean", "most", "cost"}
