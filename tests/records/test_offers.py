import pytest

from bara import Award, Offer, Purse
from bara.errors import InvalidOfferError, InvalidRecordError, OverspentError
from bara.records import MAX_MONEY


def test_every_kind_of_offer_is_a_cap_for_every_n():
    assert Offer.recruit(2).vector(4).tolist() == [MAX_MONEY, MAX_MONEY, 0, 0]
    assert Offer.spend(7).vector(3).tolist() == [7, 7, 7]
    assert Offer.caps([3, 5]).vector(3).tolist() == [3, 5, 0]
    assert Offer.skip().vector(2).tolist() == [0, 0]
    assert Offer.stop().stopped
    assert (Offer.caps([3, 5]).cap(2), Offer.caps([3, 5]).cap(3), Offer.spend(7).cap(0)) == (5, 0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Offer.recruit(-1), "an offer for -1 clients"),
        (lambda: Offer.spend(-1), "a cap of -0.000001"),
        (lambda: Offer.caps([1, -2]), "a cap of -0.000002"),
        (lambda: Offer.recruit(1, shortfall="beg"), "shortfall 'beg'"),
        (lambda: Offer.recruit(2.5), "limit is 2.5; required is a whole number"),
        (lambda: Offer.spend(float("nan")), "budget is nan"),
        (lambda: Offer.caps([1.9]), "a cap is 1.9"),
    ],
)
def test_an_offer_that_is_no_cap_is_refused(make, message):
    with pytest.raises(InvalidOfferError, match=message):
        make()


def test_a_purse_counts_money_and_rounds():
    purse = Purse.of("10.5", 3)
    later = purse.after(500_000).after(0)
    assert (purse.left, purse.rounds_left) == (10_500_000, 3)
    assert (later.left, later.round, later.rounds_left) == (10_000_000, 3, 1)
    assert later.after(0).rounds_left == 0


def test_a_purse_never_goes_below_zero():
    with pytest.raises(OverspentError, match=r"10.000001 spent of 10.00"):
        Purse.of(10, 3).after(10_000_001)


@pytest.mark.parametrize(
    ("total", "rounds", "message"),
    [(0, 5, "budget is 0.00"), (-1, 5, "budget"), (5, 0, "deadline is 0"), (5, 2**63, "to 2147483647")],
)
def test_an_empty_purse_or_deadline_is_refused(total, rounds, message):
    with pytest.raises(InvalidRecordError, match=message):
        Purse.of(total, rounds)


def test_an_award_that_contradicts_itself_is_refused():
    with pytest.raises(InvalidRecordError, match="2 winners but 1 payments"):
        Award(("ann", "bob"), (1,))
    with pytest.raises(InvalidRecordError, match=r"client 'ann' is awarded 0.00"):
        Award(("ann",), (0,))
    with pytest.raises(InvalidRecordError, match="payment of 'ann' is True; required is a whole number"):
        Award(("ann",), (True,))
    with pytest.raises(InvalidRecordError, match="a client is named 7"):
        Award((7,), (1,))
    with pytest.raises(InvalidRecordError, match="1 winners but 2 weights"):
        Award(("ann",), (1,), weights=(0.5, 0.5))


def test_an_offer_beyond_all_money_is_no_limit():
    assert Offer.spend(2**64).cap(1) == MAX_MONEY
    assert Offer.caps([2**64]).cap(1) == MAX_MONEY


@pytest.mark.parametrize("make", [lambda: Purse.of(30, 2.5), lambda: Purse(2**64, 1), lambda: Purse(1.5, 1)])
def test_a_purse_holds_whole_numbers_that_fit(make):
    with pytest.raises(InvalidRecordError):
        make()
