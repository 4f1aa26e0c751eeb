"""Shapley values: what is estimated, how sure it is, and why nobody is paid by it."""

from itertools import permutations

import numpy as np
import pytest

from bara.randomness import stream
from bara.server.memory import Fresh, UpdateMemory
from bara.server.shapley import TOLERANCE, estimate_shapley


class Game:
    """Six clients with data of different size and direction; two of them hold the same."""

    def __init__(self):
        rng = stream(0, "a game")
        self.memory = UpdateMemory(extrapolated=False)
        updates = rng.normal(size=(6, 8)).astype(np.float32) + 0.5
        updates[5] = updates[4]
        fresh = {f"c{i}": Fresh(update, float(1 + i % 3)) for i, update in enumerate(updates)}
        self.memory.tell(1, fresh)
        self.asked = []

    def worth(self, some):
        """The accuracy of a model that is the better, the nearer it is to (1, ..., 1)."""
        self.asked.append(some)
        model = self.memory.step_of(some) if some else np.zeros(8, np.float32)
        return float(np.exp(-np.square(model - 1).sum() / 8))


def exact(clients, worth):
    """The definition: the mean of what a client adds, over every order."""
    added = dict.fromkeys(clients, 0.0)
    orders = list(permutations(clients))
    known = {}
    for order in orders:
        for place, client in enumerate(order):
            before, after = frozenset(order[:place]), frozenset(order[: place + 1])
            for some in (before, after):
                if some not in known:
                    known[some] = worth(some)
            added[client] += known[after] - known[before]
    return {client: total / len(orders) for client, total in added.items()}


@pytest.fixture
def game():
    return Game()


def test_the_estimate_is_within_its_error_of_the_exact_value_for_six_clients(game):
    truth = exact(game.memory.clients, game.worth)
    misses = []
    for seed in range(20):
        found = estimate_shapley(game.memory.clients, game.worth, stream(seed, "orders"), 0)
        misses += [(found.values[c] - truth[c]) / found.errors[c] for c in truth]
    assert np.mean(np.abs(misses) < 2) > 0.9  # as is expected of standard errors
    assert abs(np.mean(misses)) < 0.3


def test_values_add_up_to_what_the_round_gained_and_no_set_is_evaluated_twice(game):
    found = estimate_shapley(game.memory.clients, game.worth, stream(1, "orders"), 0)
    assert len(game.asked) == len(set(game.asked)) == found.evaluations <= 2**6
    gained = game.worth(frozenset(game.memory.clients)) - game.worth(frozenset())
    assert sum(found.values.values()) == pytest.approx(gained)


def test_an_order_is_cut_where_the_rest_can_add_no_more():
    """Two of six clients make the whole, so that only they need to be tried."""
    sizes = set()

    def worth(some):
        sizes.add(len(some))
        return min(len(some), 2) / 2

    found = estimate_shapley("abcdef", worth, stream(0, "orders"), TOLERANCE)
    assert sizes == {0, 1, 2, 6}
    assert max(found.errors.values()) < TOLERANCE


def test_twins_share_what_leaving_one_out_gives_to_neither():
    """Whatever the one knows the other knows, too: without either, nothing is lost."""
    found = estimate_shapley(["one", "two"], lambda some: float(bool(some)), stream(0, "orders"))
    assert found.values == {"one": 0.5, "two": 0.5}


def test_a_second_name_gets_a_second_share_which_is_why_nobody_is_paid_by_it():
    clients = ["one", "two", "two again"]
    found = estimate_shapley(clients, lambda some: float(bool(some)), stream(0, "orders"))
    assert found.values["two"] + found.values["two again"] == pytest.approx(2 / 3)


def test_a_single_client_has_all_of_it():
    found = estimate_shapley(["one"], lambda some: 0.1 + 0.6 * len(some), stream(0, "orders"))
    assert found.values == {"one": pytest.approx(0.6)}
    assert found.errors == {"one": 0}
