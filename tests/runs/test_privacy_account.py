import re

import pytest

from bara import Award, Bids, Delivery, Evaluation, Offer, Purse
from bara.records import AwardedRound
from bara.reports.html import run_report
from bara.reports.result import Result
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.runs.privacy_account import DELTA, PrivacyAccount


def rounds(count, epsilon=0.5, void=()):
    bids, privacy = Bids.of({"ann": 1, "bob": 2}), {"ann": epsilon, "bob": 0.1}
    for number in range(1, count + 1):
        award = Award(("ann", "bob"), (1, 1))
        purse = Purse(10**9, 1000, round=number)
        awarded = AwardedRound(purse, Offer.recruit(2), bids, bids.prices, award, privacy=privacy)
        done = [client for client in award.clients if client not in void]
        delivery = Delivery(Evaluation(0.5), dict.fromkeys(done), dict.fromkeys(void, "gone"))
        yield awarded.settle(delivery)


def privacy_spent(records):
    account = PrivacyAccount()
    for record in records:
        account.tell(record)
    return account.spent()


def test_one_round_costs_its_epsilon():
    assert privacy_spent(rounds(1))["ann"]["epsilon"] == pytest.approx(0.5, rel=1e-3)


def test_an_update_that_is_remembered_costs_nothing_more():
    """It is sent once, however many models are made of it:
    what is spent follows from the deliveries alone.
    """
    small = [
        "federation.engine=simulator",
        "data.train_samples=300",
        "clients.count=6",
        "mechanism.name=fl-market",
    ]
    plain = [
        *small,
        "allocator.name=even",
        "budget.max_rounds=6",
        "budget.total=6",
        "clients.epsilon=uniform(1, 5)",
    ]
    results = [
        play_run(Config.load(None, [*plain, f"training.memory={memory}"]))
        for memory in ("off", "extrapolated")
    ]
    assert any(entry.get("remembered") for entry in results[1].history)
    assert results[0].privacy == results[1].privacy
    assert results[0].payments == results[1].payments


def test_many_rounds_cost_less_than_their_sum_at_a_small_delta():
    """Advanced composition for k rounds of eps:
    eps sqrt(2 k log(1 / delta)) + k eps (e^eps - 1) bounds it.
    """
    spent = privacy_spent(rounds(100, epsilon=0.1))["ann"]
    bound = 0.1 * (2 * 100 * 11.52) ** 0.5 + 100 * 0.1 * 0.10517
    assert spent["epsilon_sum"] == pytest.approx(10)
    assert 1 < spent["epsilon"] < bound < 10
    assert spent["delta"] == DELTA


def test_who_did_not_deliver_spent_nothing():
    assert list(privacy_spent(rounds(3, void=("ann",)))) == ["bob"]


def test_large_epsilons_are_summed_without_trouble():
    spent = privacy_spent(rounds(200, epsilon=100.0))["ann"]
    assert spent["epsilon"] == pytest.approx(20_000, rel=1e-3)


def test_different_budgets_compose():
    mixed = [*rounds(5, epsilon=0.5), *rounds(5, epsilon=0.2)]
    spent = privacy_spent(mixed)["ann"]
    assert spent["epsilon_sum"] == pytest.approx(3.5)
    assert 0.5 < spent["epsilon"] <= 3.5


def test_the_report_shows_privacy_beside_payments():
    spent = {"ann": {"rounds": 3, "epsilon_sum": 1.5, "epsilon": 1.25, "delta": 1e-5}}
    history = [{"round": r, "n": 1, "cost": 1.0, "accuracy": 0.5, "loss": 1.0} for r in range(3)]
    result = Result(
        "even", "fl-market", "digits", 0, 2, 10.0, 3.0, 3, "", 0.5, 0.5, 0.5, {"ann": 3.0}, history
    )
    without, page = (run_report(r, "", "") for r in (result, _replace(result, privacy=spent)))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells[:5] == ["ann", "3.00", "3", "1.50", "1.25"]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", without) == ["ann", "3.00"]


def _replace(result, **changes):
    from dataclasses import replace  # noqa: PLC0415

    return replace(result, **changes)
