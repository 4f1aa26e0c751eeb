import pytest
from refusals import refused

from bara import Award, Offer, Purse
from bara.errors import InvalidOfferError, InvalidRecordError, OverspentError
from bara.records import MAX_MONEY


def test_every_kind_of_offer_is_a_cap_for_every_n():
    assert Offer.recruit(2).vector(4).tolist() == [MAX_MONEY, MAX_MONEY, 0, 0]
    assert Offer.spend(7).vector(3).tolist() == [7, 7, 7]
    assert Offer.caps([3, 5]).vector(3).tolist() == [3, 5, 0]
    assert Offer.skip().vector(2).tolist() == [0, 0]
    assert Offer.stop().stopped
    assert (Offer.caps([3, 5]).cap(2), Offer.caps([3, 5]).cap(3), Offer.spend(7).cap(0)) == (
        5,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: Offer.recruit(-1), ("clients", "-1")),
        (lambda: Offer.spend(-1), ("caps", "-0.000001")),
        (lambda: Offer.caps([1, -2]), ("caps", "-0.000002")),
        (
            lambda: Offer.recruit(1, shortfall="beg"),
            ("shortfall", "'shrink'", "'stop'", "'beg'"),
        ),
        (lambda: Offer.recruit(2.5), ("limit", "2.5")),
        (lambda: Offer.spend(float("nan")), ("budget", "nan")),
        (lambda: Offer.caps([1.9]), ("cap", "1.9")),
    ],
)
def test_an_offer_that_is_no_cap_is_refused(make, facts):
    with refused(InvalidOfferError, *facts):
        make()


def test_a_purse_counts_money_and_rounds():
    purse = Purse.of("10.5", 3)
    later = purse.after(500_000).after(0)
    assert (purse.left, purse.rounds_left) == (10_500_000, 3)
    assert (later.left, later.round, later.rounds_left) == (10_000_000, 3, 1)
    assert later.after(0).rounds_left == 0


def test_a_purse_never_goes_below_zero():
    with refused(OverspentError, "spent", "budget of 10.00", "10.000001"):
        Purse.of(10, 3).after(10_000_001)


@pytest.mark.parametrize(
    ("total", "rounds", "facts"),
    [
        (0, 5, ("budget.total", "0.00")),
        (-1, 5, ("budget.total", "-1.00")),
        (5, 0, ("budget.max_rounds", "1 to 2147483647")),
        (5, 2**63, ("budget.max_rounds", "1 to 2147483647", 2**63)),
    ],
)
def test_an_empty_purse_or_deadline_is_refused(total, rounds, facts):
    with refused(InvalidRecordError, *facts):
        Purse.of(total, rounds)


def test_an_award_that_contradicts_itself_is_refused():
    with refused(InvalidRecordError, "payment", "1 for 2"):
        Award(("ann", "bob"), (1,))
    with refused(InvalidRecordError, "'ann'", "0.00"):
        Award(("ann",), (0,))
    with refused(InvalidRecordError, "payment", "'ann'", "True"):
        Award(("ann",), (True,))
    with refused(InvalidRecordError, "name", "7"):
        Award((7,), (1,))
    with refused(InvalidRecordError, "weight", "2 for 1"):
        Award(("ann",), (1,), weights=(0.5, 0.5))


def test_an_offer_beyond_all_money_is_no_limit():
    assert Offer.spend(2**64).cap(1) == MAX_MONEY
    assert Offer.caps([2**64]).cap(1) == MAX_MONEY


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: Purse.of(30, 2.5), ("max_rounds", "2.5")),
        (lambda: Purse(2**64, 1), ("total", 2**64)),
        (lambda: Purse(1.5, 1), ("total", "1.5")),
    ],
)
def test_a_purse_holds_whole_numbers_that_fit(make, facts):
    with refused(InvalidRecordError, *facts):
        make()
