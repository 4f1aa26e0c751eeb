import pytest
from refusals import refused

from bara import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.allocators import ALLOCATORS
from bara.allocators.isp import Isp
from bara.errors import ConfigError
from bara.mechanisms import bid_price_first

BIDS = Bids.of(dict.fromkeys("abcdefghij", 1))


def tell(allocator, purse, loss):
    awarded = AwardedRound.of(purse, allocator.ask(purse), bid_price_first().menu(BIDS))
    record = awarded.settle(Delivery.complete(awarded.award, Evaluation(0.5, loss=loss)))
    allocator.tell(record)
    return record.purse_after


def test_it_probes_with_everybody_and_looks_for_the_smallest_number_that_still_learns():
    """N = 10, momentum 1/2: after a loss below the average k shrinks by an eighth,
    else it grows by a quarter.
    """
    allocator = Isp(clients=10, every=4)
    purse = Purse.of(1000, 20)
    allocator.tell(RoundRecord.initial(purse, Evaluation(0.1, loss=2.0)))
    assert allocator.ask(purse) == Offer.recruit(9, shortfall="shrink")
    for loss, then in ((1.9, 9), (1.8, 8), (1.7, 7)):  # 9 -> 7.875 -> 6.89
        purse = tell(allocator, purse, loss)
        assert allocator.ask(purse) == Offer.recruit(then, shortfall="stop")
    purse = tell(allocator, purse, 5.0)  # 6.89 -> 8.6, but round 5 is a probe
    assert allocator.ask(purse) == Offer.recruit(9, shortfall="shrink")
    purse = tell(allocator, purse, 1.0)
    assert allocator.ask(purse) == Offer.recruit(9, shortfall="stop")


def test_without_a_loss_it_goes_by_accuracy():
    allocator = Isp(clients=10, every=50)
    purse = Purse.of(1000, 20)
    allocator.tell(RoundRecord.initial(purse, Evaluation(0.1)))
    for accuracy in (0.2, 0.3, 0.4):
        awarded = AwardedRound.of(purse, allocator.ask(purse), bid_price_first().menu(BIDS))
        record = awarded.settle(Delivery.complete(awarded.award, Evaluation(accuracy)))
        allocator.tell(record)
        purse = record.purse_after
    assert allocator.ask(purse) == Offer.recruit(7, shortfall="stop")


@pytest.mark.parametrize(("option", "value"), [("every", 0), ("momentum", 1.0), ("momentum", -0.1)])
def test_nonsense_is_refused(option, value):
    with refused(ConfigError, "'isp'", f"{option} = {value}"):
        ALLOCATORS.build("isp", {option: value}, clients=10)
