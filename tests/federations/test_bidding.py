import numpy as np
import pytest

from bara import Award
from bara.errors import ConfigError
from bara.federations.bidding import Bidders, Strategy, client_names
from bara.federations.costs import Distribution
from bara.plugins import parse_call


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
    assert [markup(number) for number in (3, 4, 5, 5)] == pytest.approx([1.21, 1.1, 1.0, 1.0], rel=1e-5)
    b.tell(5, won)
    assert markup(6) == pytest.approx(1.1, rel=1e-5)


def test_costs_depend_on_seed_and_round_only():
    assert bidders().costs(5).tolist() == bidders().costs(5).tolist()
    assert bidders().costs(5).tolist() != bidders().costs(6).tolist()


def test_names_sort_as_they_count():
    names = client_names(101)
    assert list(names) == sorted(names)
    assert (names[0], names[100]) == ("client-000", "client-100")


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("uniform(0.5, 1.5)", 1.0),
        ("constant(2)", 2.0),
        ("exponential(3)", 3.0),
        ("lognormal(0, 0.5)", np.exp(0.125)),
        ("normal(1, 0.1)", 1),
    ],
)
def test_distributions_have_their_mean(text, mean):
    drawn = Distribution.parse(text).draw(np.random.default_rng(0), 20_000)
    assert drawn.mean() == pytest.approx(mean, rel=0.05)
    assert drawn.min() > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unifrom(0, 1)", "did you mean 'uniform'"),
        ("uniform(1)", "has 1 numbers; uniform takes 2"),
        ("uniform(2, 1)", "low before high"),
        ("uniform(-1, 1)", "low before high"),
        ("uniform(a, b)", "required is a name with numbers"),
        ("uniform(0, 1", "required is a name with numbers"),
        ("constant(0)", "more than zero"),
        ("uniform(0, inf)", "required is a name with numbers"),
    ],
)
def test_a_distribution_that_cannot_be_drawn_from_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        Distribution.parse(text)


@pytest.mark.parametrize("text", ["liar", "truthful(1)", "overbid(-1)", "overbid(1, 2)"])
def test_a_strategy_nobody_knows_is_refused(text):
    with pytest.raises(ConfigError):
        Strategy.parse(text)


def test_more_strategic_clients_than_clients_are_refused():
    with pytest.raises(ConfigError, match=r"clients\.strategic is 5"):
        bidders(strategic=5)


def test_a_bare_name_has_no_arguments():
    assert parse_call(" iid ", "a partition") == ("iid", ())
