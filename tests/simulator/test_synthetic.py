import pytest
from refusals import refused

from bara import Award
from bara.errors import ConfigError
from bara.simulator.synthetic import LearningCurve

QUIET = {"v_0": 0.0, "v_1": 0.0}


def award(federation, n):
    return Award(federation.bidders.clients[:n], (1,) * n)


def test_the_first_round_by_hand(make_federation):
    """N = 4 all take part: no selection noise, S = 1. a = .9 - .8 (1 + 1/1)^-1 = .5."""
    federation = make_federation(clients=4, a_0=0.1, a_max=0.9, s=1, p=1, kappa=2, delta=1, **QUIET)
    assert federation.train(1, award(federation, 4)).evaluation.accuracy == pytest.approx(0.5)


def test_selecting_few_costs_accuracy_by_hand(make_federation):
    """n = 1 of 4, kappa 0: S = 1; E = (1 - .5) (1 - 1/4) = .375; a = .5 - .4 * .375 = .35."""
    federation = make_federation(
        clients=4, a_0=0.1, a_max=0.9, s=1, p=1, kappa=0, delta=0.4, phi=0.5, **QUIET
    )
    assert federation.train(1, award(federation, 1)).evaluation.accuracy == pytest.approx(0.35)


def test_more_clients_learn_faster(make_federation):
    few, many = make_federation(clients=8, **QUIET), make_federation(clients=8, **QUIET)
    for t in range(1, 6):
        low, high = few.train(t, award(few, 2)), many.train(t, award(many, 7))
    assert high.evaluation.accuracy > low.evaluation.accuracy
    assert high.evaluation.loss < low.evaluation.loss


def test_failures_come_at_their_rate_and_are_void_with_a_reason(make_federation):
    federation = make_federation(clients=8, failure_rate=0.25)
    void = [
        client
        for t in range(1, 401)
        for client in federation.train(t, award(federation, 8)).void.items()
    ]
    assert 0.2 < len(void) / 3200 < 0.3
    assert {reason for _, reason in void} == {"it did not answer"}


def test_when_everybody_fails_the_model_stays_as_it_is(make_federation):
    federation = make_federation(failure_rate=1.0)
    assert federation.train(1, award(federation, 3)).evaluation == federation.evaluate()


@pytest.mark.parametrize(
    ("curve", "facts"),
    [
        ({"a_0": 0.9, "a_max": 0.5}, ("a_0", "a_max", "0.9", "0.5")),
        ({"s": 0}, (" s = 0",)),
        ({"phi": 1}, ("phi = 1",)),
        ({"v_1": -1}, ("v_1 = -1",)),
    ],
)
def test_a_curve_that_cannot_be_is_refused(curve, facts):
    with refused(ConfigError, *facts):
        LearningCurve(**curve)


def test_where_clients_differ_the_same_few_teach_less_than_everybody_in_turn(make_federation):
    """As if all took part, but for what the unheard half alone knows: a = .1 + .4 (1 - .5)."""
    by_hand = {"a_0": 0.1, "a_max": 0.9, "s": 1, "p": 1, "kappa": 0, "delta": 0}
    federation = make_federation(clients=4, variety=1, **by_hand, **QUIET)
    assert federation.train(1, award(federation, 2)).evaluation.accuracy == pytest.approx(0.3)
    rest = Award(federation.bidders.clients[2:], (1, 1))
    heard = federation.train(2, rest).evaluation.accuracy
    alike = make_federation(clients=4, **by_hand, **QUIET)
    alike.train(1, award(alike, 2))
    assert heard == alike.train(2, award(alike, 2)).evaluation.accuracy
