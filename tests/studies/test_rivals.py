"""Each rival's update rule by hand, over two rounds and three clients."""

import math
from copy import copy

import numpy as np
import pytest
from refusals import refused

from bara import Bids, Evidence, RoundRecord
from bara.errors import ConfigError
from bara.mechanisms import bid_price_first
from bara.records import AwardedRound, Delivery, Evaluation, Offer, Purse
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.server.checkpoints import Checkpoint
from bara.server.memory import Fresh
from bara.studies import rivals

A, B, C = (np.array(one, np.float32) for one in ([4, 0], [0, 2], [-2, 2]))
FIRST = {"ann": Fresh(A, 1), "bob": Fresh(B, 3)}
SECOND = {"bob": Fresh(C, 1)}
MEAN = np.array([1, 1.5])  # of the first round, by weight


def steps(memory):
    return memory.tell(1, FIRST), memory.tell(2, SECOND)


def test_momentum():
    first, second = steps(rivals.momentum(beta=0.5, rate=2))
    assert first == pytest.approx(2 * MEAN)
    assert second == pytest.approx(2 * (0.5 * MEAN + C))


def test_fed_adam():
    first, second = steps(rivals.fed_adam(rate=0.1, tau=0.01))
    m, v = 0.1 * MEAN, 0.99 * 1e-4 + 0.01 * MEAN**2
    assert first == pytest.approx(0.1 * m / (np.sqrt(v) + 0.01), rel=1e-5)
    m, v = 0.9 * m + 0.1 * C, 0.99 * v + 0.01 * C**2
    assert second == pytest.approx(0.1 * m / (np.sqrt(v) + 0.01), rel=1e-5)


def test_fed_yogi():
    first, second = steps(rivals.fed_yogi(rate=0.1, tau=0.01))
    m, v = 0.1 * MEAN, 1e-4 + 0.01 * MEAN**2
    assert first == pytest.approx(0.1 * m / (np.sqrt(v) + 0.01), rel=1e-5)
    m, v = 0.9 * m + 0.1 * C, v + 0.01 * C**2
    assert second == pytest.approx(0.1 * m / (np.sqrt(v) + 0.01), rel=1e-5)


def test_fed_exp():
    """D = (2, 1), |D|^2 = 5, the mean of |D_i|^2 is 10: s = 10 / (2 * 5), and never below 1."""
    assert rivals.fed_exp(epsilon=0).tell(1, FIRST) == pytest.approx([2, 1])
    apart = {"ann": Fresh(A, 1), "bob": Fresh(-A + B, 1)}  # D = (0, 1), mean of squares 18
    assert rivals.fed_exp(epsilon=0).tell(1, apart) == pytest.approx([0, 9])


def test_mifa_counts_who_was_never_heard_as_zero():
    first, second = steps(rivals.mifa(clients=4))
    assert first == pytest.approx((A + B) / 4)
    assert second == pytest.approx((A + C) / 4)


def test_fed_varp_corrects_the_winners_by_everybodys_last_updates():
    first, second = steps(rivals.fed_varp(clients=4))
    assert first == pytest.approx((A + B) / 2)
    assert second == pytest.approx((C - B) + (A + B) / 4)


def test_fed_stale_mixes_fed_avg_and_fed_varp():
    _, plain = steps(rivals.fed_stale(clients=4, beta=0))
    _, varp = steps(rivals.fed_varp(clients=4))
    _, mixed = steps(rivals.fed_stale(clients=4, beta=0.25))
    assert plain == pytest.approx(C)
    assert mixed == pytest.approx(0.75 * plain + 0.25 * varp)


def test_scaffold_with_one_gradient_is_fed_varp():
    """y_i = x - eta (g_i - c_i + c); c_i <- g_i; x <- x + mean of (y_i - x); c <- mean of c_i."""
    rng = np.random.default_rng(0)
    eta, N = 0.3, 5
    c_i = np.zeros((N, 3))
    varp = rivals.fed_varp(clients=N)
    for number in range(1, 6):
        winners = rng.choice(N, 2, replace=False)
        g = rng.normal(size=(N, 3))
        c = c_i.mean(axis=0)
        scaffold = np.mean([-eta * (g[i] - c_i[i] + c) for i in winners], axis=0)
        fresh = {f"client-{i}": Fresh((-eta * g[i]).astype(np.float32), 1) for i in winners}
        assert varp.tell(number, fresh) == pytest.approx(scaffold, abs=1e-6)
        c_i[winners] = g[winners]


RULES = [
    rivals.momentum,
    rivals.fed_adam,
    rivals.fed_yogi,
    rivals.fed_exp,
    lambda: rivals.mifa(4),
    lambda: rivals.fed_varp(4),
    lambda: rivals.fed_stale(4),
]


@pytest.mark.parametrize("make", RULES)
def test_a_copy_is_told_alone_and_a_checkpoint_goes_on(make):
    memory = make()
    memory.tell(1, FIRST)
    copy(memory).tell(2, FIRST)
    arrays = {name: piece() for name, piece in memory.pieces().items()}
    restored = make()
    restored.restore({}, {name: Checkpoint(one, 1) for name, one in arrays.items()})
    assert memory.tell(2, SECOND).tolist() == restored.tell(2, SECOND).tolist()


@pytest.mark.parametrize("name", ["momentum", "fed_exp", "mifa", "fed_stale:beta=0.3"])
def test_a_run_takes_a_rival_for_its_memory(name):
    config = Config.load(
        None,
        [
            "federation.engine=simulator",
            "clients.count=4",
            "data.train_samples=200",
            "budget.total=12",
            "budget.max_rounds=3",
            f"training.memory=bara.studies.rivals:{name}",
        ],
    )
    assert play_run(config).rounds == 3


def test_an_unknown_memory_is_refused_when_the_configuration_is_read():
    with refused(ConfigError, "'plian'", "'plain'"):
        Config.load(None, ["training.memory=plian"])


# --- recruitment ---------------------------------------------------------------------------------

BIDS = Bids.of({"ann": 1, "bob": 2, "cat": 3, "dan": 4})


def heard(number, losses):
    purse = Purse(100_000_000, 10, 0, number)
    offer = Offer.recruit(len(losses)) if losses else Offer.skip()
    awarded = AwardedRound.of(purse, offer, bid_price_first(reserve=9).menu(BIDS))
    delivered = {
        client: Evidence(samples, loss, loss) for client, (samples, loss) in losses.items()
    }
    return RoundRecord(awarded, Delivery(Evaluation(0.5), delivered))


def test_random_candidates_are_drawn_anew_in_each_round():
    mechanism = rivals.RandomCandidates(share=0.5, seed=1)
    drawn = set()
    for number in range(1, 9):
        menu = mechanism.menu(BIDS)
        assert len(menu) == 1  # of two candidates, one sets the price
        drawn.add(menu.order[0])
        mechanism.tell(heard(number, {}))
    assert len(drawn) > 1


def test_power_of_choice_takes_the_largest_losses_per_price():
    mechanism = rivals.power_of_choice(share=1.0)
    mechanism.tell(heard(1, {"ann": (9, 0.1), "bob": (1, 4.0), "cat": (1, 3.0), "dan": (1, 0.2)}))
    assert [BIDS.clients[i] for i in mechanism.menu(BIDS).order[:3]] == ["bob", "cat", "ann"]


def test_oort_counts_data_and_who_was_long_away():
    mechanism = rivals.oort()
    mechanism.tell(heard(1, {"ann": (100, 0.1), "bob": (1, 4.0), "cat": (1, 3.0), "dan": (1, 3.9)}))
    assert BIDS.clients[mechanism.menu(BIDS).order[0]] == "ann"
    bonus = math.sqrt(0.1 * math.log(2))
    utility = {"ann": 100 * (0.1 + bonus), "bob": 4 + bonus, "cat": 3 + bonus}
    ranked = sorted(utility, key=lambda name: -utility[name] / (1 + BIDS.clients.index(name)))
    assert [BIDS.clients[i] for i in mechanism.menu(BIDS).order[:3]] == ranked


def test_to_oort_whoever_was_never_heard_is_worth_as_much_as_anybody():
    mechanism = rivals.oort()
    mechanism.tell(heard(1, {"ann": (100, 2.0), "bob": (50, 1.0)}))
    alike = Bids.of({"ann": 1.0, "cat": 1.0, "bob": 1.0})
    menu = mechanism.menu(alike)
    assert {alike.clients[i] for i in menu.order[:2]} == {"ann", "cat"}


# --- pacing --------------------------------------------------------------------------------------


def test_a_virtual_queue_of_what_was_overspent_caps_what_a_client_may_cost():
    """Ten rounds' share of 100 is 10. Three clients for 12 leave 0.2 waiting, two for 6 nothing."""
    pacer = rivals.VirtualQueue(clients=4, weight=0.1)
    purse = Purse(100_000_000, 10, 0, 1)
    assert pacer.ask(purse) == Offer.spend(100_000_000)
    pacer.tell(heard(1, dict.fromkeys(["ann", "bob", "cat"], (1, 1.0))))
    most = 10_000_000 * 0.1 / 0.2
    shares = [math.log(1 + n) / math.log(5) for n in (1, 2, 3, 4)]
    assert pacer.ask(purse).table == pytest.approx([most * share for share in shares], abs=1)
    pacer.tell(heard(2, dict.fromkeys(["ann", "bob"], (1, 1.0))))
    assert pacer.ask(purse) == Offer.spend(100_000_000)
