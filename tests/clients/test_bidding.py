import numpy as np
import pytest
from refusals import refused

from bara import Award
from bara.clients.bidding import Bidders, Strategy, client_names, equilibrium_asks
from bara.clients.costs import Distribution, PrivacyCosts, valuations
from bara.errors import ConfigError


def bidders(**options):
    return Bidders(4, Distribution.parse("uniform(0.5, 1.5)"), 0, **options)


def test_truthful_clients_ask_their_cost():
    b = bidders()
    assert b.bids(3).prices.tolist() == b.costs(3).tolist()


def test_an_overbidder_always_asks_more():
    b = bidders(strategic=2, strategy=Strategy.parse("overbid(0.2)"))
    ratio = b.bids(1).prices / b.costs(1)
    assert ratio[:2] == pytest.approx([1.2, 1.2], rel=1e-5)
    assert ratio[2:].tolist() == [1, 1]


def test_a_learner_raises_its_price_after_a_win_and_lowers_it_after_a_loss_but_never_below_cost():
    b = bidders(strategic=1, strategy=Strategy.parse("learner(0.1)"))
    won, lost = Award((b.clients[0],), (1,)), Award((b.clients[1],), (1,))
    markups = []
    for number, award in enumerate((won, won, lost, lost, lost), 1):
        b.tell(number, award)
        markups.append(b.bids(number + 1).prices[0] / b.costs(number + 1)[0])
    assert markups == pytest.approx([1.1, 1.21, 1.1, 1.0, 1.0], rel=1e-5)


def test_a_round_that_recruits_nobody_is_a_loss_to_a_learner():
    """Two wins in rounds 1 and 2, nobody in 3 and 4, a win in 5; asking twice changes nothing."""
    b = bidders(strategic=1, strategy=Strategy.parse("learner(0.1)"))
    won = Award((b.clients[0],), (1,))

    def markup(number):
        return b.bids(number).prices[0] / b.costs(number)[0]

    b.tell(1, won)
    b.tell(2, won)
    assert [markup(number) for number in (3, 4, 5, 5)] == pytest.approx(
        [1.21, 1.1, 1.0, 1.0], rel=1e-5
    )
    b.tell(5, won)
    assert markup(6) == pytest.approx(1.1, rel=1e-5)


def test_costs_depend_on_seed_and_round_only():
    assert bidders().costs(5).tolist() == bidders().costs(5).tolist()
    assert bidders().costs(5).tolist() != bidders().costs(6).tolist()


def test_names_sort_as_they_count():
    names = client_names(101)
    assert list(names) == sorted(names)
    assert (names[0], names[100]) == ("client-000", "client-100")


def test_at_first_price_equilibrium_bidders_ask_as_the_textbook_says():
    """One winner of two, costs from U(0, 1): (1 + c) / 2.

    Nobody asks below its cost, and the dearest asks it.
    """
    costs, asks = equilibrium_asks(Distribution.parse("uniform(0, 1)"), clients=2, winners=1)
    assert asks == pytest.approx((1 + costs) / 2, abs=0.02)
    b = bidders(strategic=3, strategy=Strategy.parse("equilibrium(2)"))
    ratio = b.bids(1).prices / b.costs(1)
    assert (ratio[:3] > 1).all()
    assert ratio[3] == 1


@pytest.mark.parametrize("winners", [1, 3])
def test_no_other_price_pays_better_in_equilibrium(winners):
    """Four clients at first price, one of which costs 0.8
    and tries every ask against three in equilibrium.
    """
    costs, asks = equilibrium_asks(Distribution.parse("uniform(0.5, 1.5)"), 4, winners)
    others = np.interp(np.random.default_rng(1).uniform(0.5, 1.5, (40_000, 3)), costs, asks)
    tried = np.linspace(0.82, 1.6, 40)
    profit = [(ask - 0.8) * ((others < ask).sum(1) < winners).mean() for ask in tried]
    own = float(np.interp(0.8, costs, asks))
    assert (own - 0.8) * ((others < own).sum(1) < winners).mean() > 0.98 * max(profit)


def test_equilibrium_is_refused_where_clients_differ_or_nobody_says_how_many_win():
    with refused(ConfigError, "clients.strategy", "equilibrium", "privacy budgets"):
        Bidders(
            2,
            PrivacyCosts(np.array([0.1, 1.0]), valuations("linear")),
            0,
            strategy=Strategy("equilibrium", 1),
        )
    with refused(ConfigError, "'equilibrium'", "equilibrium(8)"):
        Strategy.parse("equilibrium")


@pytest.mark.parametrize(
    "text", ["liar", "truthful(1)", "overbid(-1)", "overbid(1, 2)", "equilibrium(1.5)"]
)
def test_a_strategy_nobody_knows_is_refused(text):
    with refused(ConfigError, repr(text)):
        Strategy.parse(text)
