from functools import partial

import numpy as np
import pytest
from refusals import refused

from bara import (
    Award,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    Offer,
    Purse,
    RoundRecord,
)
from bara.errors import InvalidRecordError, OverspentError
from bara.mechanisms import bid_price_first


@pytest.fixture
def awarded():
    menu = bid_price_first().menu(Bids.of({"ann": 1, "bob": 2, "cat": 3}))
    return AwardedRound.of(Purse.of(100, 10), Offer.recruit(2), menu)


def test_only_those_who_delivered_are_paid_and_the_rest_stays_in_the_purse(awarded):
    record = awarded.settle(Delivery(Evaluation(0.5), {"ann": Evidence()}, {"bob": "timed out"}))
    assert record.payments == {"ann": 3_000_000}
    assert (record.n, record.paid, record.purse_after.left, record.purse_after.round) == (
        1,
        3_000_000,
        97_000_000,
        2,
    )


@pytest.mark.parametrize(
    ("delivered", "void", "facts"),
    [
        ({"ann"}, set(), ("'bob'", "recruited")),
        ({"ann", "bob", "cat"}, set(), ("'cat'", "not recruited")),
        ({"ann", "bob"}, {"bob"}, ("'bob'", "delivered", "void")),
    ],
)
def test_a_delivery_accounts_for_exactly_the_winners(awarded, delivered, void, facts):
    with refused(InvalidRecordError, *facts):
        awarded.settle(
            Delivery(
                Evaluation(0.5), dict.fromkeys(delivered, Evidence()), dict.fromkeys(void, "why")
            )
        )


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, 84.9, float("nan")])
def test_an_accuracy_that_is_no_fraction_is_refused(accuracy):
    with refused(InvalidRecordError, "accuracy", "[0, 1]", accuracy):
        Evaluation(accuracy)
    with refused(InvalidRecordError, "test_accuracy", "[0, 1]", accuracy):
        Evaluation(0.5, test_accuracy=accuracy)


def test_a_loss_that_is_not_finite_is_refused():
    with refused(InvalidRecordError, "loss", "nan"):
        Evaluation(0.5, loss=float("nan"))


def test_reports_show_the_test_part_and_decisions_the_validation_part():
    evaluation = Evaluation(0.5, loss=1.0, test_accuracy=0.4, test_loss=2.0)
    assert (evaluation.accuracy, evaluation.reported_accuracy, evaluation.reported_loss) == (
        0.5,
        0.4,
        2.0,
    )
    assert Evaluation(0.5, loss=1.0).reported_accuracy == 0.5


def test_round_zero_costs_nothing_and_round_one_follows():
    record = RoundRecord.initial(Purse.of(10, 5), Evaluation(0.1))
    assert (record.round, record.paid, record.n) == (0, 0, 0)
    assert record.purse_after == Purse.of(10, 5)


def test_a_promise_that_the_purse_cannot_keep_is_refused_before_anyone_trains():
    menu = bid_price_first().menu(Bids.of({"ann": 1, "bob": 2}))
    with refused(OverspentError, "round 1", "7.00", "5.00"):
        AwardedRound(
            Purse.of(5, 3), Offer.skip(), menu.bids, menu.costs, Award(("ann",), (7_000_000,))
        )


def test_what_was_spent_before_stays_spent():
    assert RoundRecord.initial(Purse(20, 5, spent=15), Evaluation(0.1)).purse_after.left == 5


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64])
def test_numpys_numbers_are_kept_as_pythons_own(kind):
    evaluation, evidence = Evaluation(kind(1), kind(2)), Evidence(kind(3), kind(4), kind(5))
    kept = [*vars(evaluation).values(), *vars(evidence).values()]
    assert {type(value) for value in kept if value is not None} <= {int, float}
    assert evaluation == Evaluation(1, 2)
    assert evidence == Evidence(3, 4, 5)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), np.float32("nan"), True, "0.5", np.zeros(2), 10**400]
)
def test_what_is_no_finite_number_is_no_evidence_and_no_evaluation(value):
    for name, make in (
        ("loss", partial(Evaluation, 0.5)),
        ("samples", Evidence),
        ("loss_before", partial(Evidence, 1)),
        ("loss_after", partial(Evidence, 1, 1.0)),
    ):
        with refused(InvalidRecordError, name, value):
            make(value)
    with refused(InvalidRecordError, "accuracy", value):
        Evaluation(value)


def test_a_round_without_an_accuracy_is_refused():
    with refused(InvalidRecordError, "accuracy", "None"):
        Evaluation(None)


def test_a_reason_that_no_ledger_can_hold_is_kept_as_far_as_it_can_be():
    assert Delivery(Evaluation(0.5), void={"ann": "half \ud800 and \0"}).void == {
        "ann": "half \ufffd and \ufffd"
    }
    assert Delivery(Evaluation(0.5), void={"ann": "9" * 10**6}).void == {"ann": "9" * 300}


def test_only_who_is_void_can_be_blameless():
    evaluation = Evaluation(0.5)
    delivery = Delivery(evaluation, {}, {"ann": "not asked", "bob": "gone"}, blameless=("ann",))
    assert delivery.failed == ("bob",)
    with refused(InvalidRecordError, "'cat'", "blameless"):
        Delivery(evaluation, {}, {"ann": "gone"}, blameless=("cat",))
