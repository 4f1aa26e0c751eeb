"""How work grows with the number of clients, in comparisons of their names:
a scan for each client would square it.
"""

import pytest

from bara.clients import bidding
from bara.mechanisms import MECHANISMS
from bara.runs import data, factory
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run


class Counted(str):
    """A client's name that counts how often names are told apart."""

    __slots__ = ()
    told_apart = 0

    def __eq__(self, other):
        Counted.told_apart += 1
        return str.__eq__(self, other)

    def __lt__(self, other):
        Counted.told_apart += 1
        return str.__lt__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def comparisons(monkeypatch, tmp_path):
    """Comparisons of names in a run of two rounds among so many clients, with its books."""
    plain = bidding.client_names
    for module in (bidding, data, factory):
        monkeypatch.setattr(module, "client_names", lambda count: tuple(map(Counted, plain(count))))

    def play(clients, *changes):
        amounts = [
            f"clients.count={clients}",
            f"clients.strategic={clients // 2}",
            f"budget.total={clients}",
        ]
        config = Config.load(
            None, ["federation.engine=synthetic", "budget.max_rounds=2", *amounts, *changes]
        )
        Counted.told_apart = 0
        with RunFolder.new(tmp_path / str(clients), config) as folder:
            assert (
                sum(entry["n"] for entry in play_run(config, folder=folder).history) > clients / 4
            )
        return Counted.told_apart

    return play


SOME_FAIL = (
    "clients.failure_rate=0.3",
    "clients.absence_rate=0.2",
    "clients.strategy=learner(0.05)",
)


PRICES = {
    "posted-price": ("mechanism.price=1",),
    "tariff": ("mechanism.per_round=1",),
    "standing": ("mechanism.reserve=1.6", "clients.stability=1"),
}


@pytest.mark.parametrize(
    "changes",
    [
        (*SOME_FAIL, "ledger.client_cap=5"),
        (*SOME_FAIL, "ledger.retention=drop"),
        *((f"mechanism.name={name}", *PRICES.get(name, ())) for name in MECHANISMS.names()),
    ],
)
def test_four_times_the_clients_are_hardly_more_than_four_times_the_work(comparisons, changes):
    few = comparisons(200, *changes)
    assert 0 < comparisons(800, *changes) < 6 * few
