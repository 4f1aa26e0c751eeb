"""The strategy contract: every strategy of Flower's runs under a budget or is refused first, and
none forgets.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.server.strategy import FedAvg as OldFedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import (
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import Bulyan, FedAvg, FedXgbBagging, FedXgbCyclic, Krum, MultiKrum
from refusals import refused

from bara import ALLOCATORS, MECHANISMS, Purse, RoundRecord, Session
from bara.errors import ConfigError, TrainingError
from bara.flower import answer_bids, fixed, start

from .conftest import LocalGrid, amid, raising, walking_app
from .test_app import account, begin, context
from .test_federation import award
from .test_strategies import carried

pytestmark = pytest.mark.full  # every strategy of Flower

PAGE = (Path(__file__).parents[2] / "docs" / "flower.md").read_text()

PLAIN = [name for name in flower.__all__ if name.startswith("Fed") and "Xgb" not in name]
ROBUST = {"Krum": Krum, "MultiKrum": MultiKrum, "Bulyan": Bulyan}
NOISE = {"noise_multiplier": 0.1, "num_sampled_clients": 50}
WRAPPED = {
    "DifferentialPrivacyServerSideFixedClipping": ({**NOISE, "clipping_norm": 1.0}, None),
    "DifferentialPrivacyClientSideFixedClipping": (
        {**NOISE, "clipping_norm": 1.0},
        fixedclipping_mod,
    ),
    "DifferentialPrivacyServerSideAdaptiveClipping": (NOISE, None),
    "DifferentialPrivacyClientSideAdaptiveClipping": (NOISE, adaptiveclipping_mod),
}


def trains(folder, strategy, app, mishaps=None):
    """Run the strategy; three winners are paid in every round."""
    grid = LocalGrid(app, 5)
    grid.mishaps = mishaps or {}
    begin(folder, strategy, grid)
    rounds = account(folder)[1][1:]
    assert len(rounds) == 3
    assert all(len(paid) == 3 for paid in rounds)


@pytest.mark.parametrize("name", [*PLAIN, *ROBUST])
def test_strategies_that_average_or_select_run_under_a_budget(tmp_path, name):
    trains(tmp_path / "run", getattr(flower, name)(fraction_evaluate=0.0), walking_app())


@pytest.mark.parametrize("name", WRAPPED)
def test_privacy_wrappers_run_under_a_budget_with_the_clipping_mods_of_their_clients(
    tmp_path, name
):
    options, mod = WRAPPED[name]
    strategy = getattr(flower, name)(FedAvg(fraction_evaluate=0.0), **options)
    trains(tmp_path / "run", strategy, walking_app(mods=[mod] if mod else []))


def test_q_fedavg_runs_on_the_losses_its_clients_send(tmp_path):
    def with_loss(reply):
        reply.content["metrics"]["train_loss"] = 0.5
        return reply

    strategy = flower.QFedAvg(client_learning_rate=0.1, fraction_evaluate=0.0)
    losses = {("train", client): with_loss for client in range(5)}
    trains(tmp_path / "run", strategy, walking_app(), losses)


def growing_app():
    """Clients that return a model of XGBoost's form with one tree."""
    app = ClientApp()
    answer_bids(app, fixed(1))

    @app.train()
    def train(message, context):
        tree = {"id": 0, "of": context.node_config["partition-id"]}
        booster = {
            "gbtree_model_param": {"num_trees": "1", "num_parallel_tree": "1"},
            "trees": [tree],
        }
        model = {
            "learner": {
                "gradient_booster": {
                    "model": {**booster, "iteration_indptr": [0, 1], "tree_info": [0]}
                }
            }
        }
        arrays = ArrayRecord([np.frombuffer(json.dumps(model).encode(), np.uint8)])
        return Message(
            RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 7})}),
            reply_to=message,
        )

    return app


def trees(arrays):
    return json.loads(arrays["0"].numpy().tobytes())["learner"]["gradient_booster"]["model"][
        "trees"
    ]


def grow(folder, strategy, **keys):
    """Trees from an empty model, which nobody can evaluate, as Flower's quickstart begins."""

    def evaluate(server_round, arrays):
        return MetricRecord({"accuracy": len(trees(arrays)) / 100}) if server_round else None

    empty = ArrayRecord([np.frombuffer(b"", np.uint8)])
    where = context(folder, **{"bara.mechanism.reserve": 2, **keys})
    return start(strategy, where, LocalGrid(growing_app(), 5), empty, 3, evaluate_fn=evaluate)


def test_trees_are_bagged_from_an_empty_model(tmp_path):
    result = grow(
        tmp_path / "run",
        FedXgbBagging(fraction_evaluate=0.0),
        **{"bara.federation.same-shapes": False},
    )
    assert len(trees(result.arrays)) == 3 * 3
    assert [len(paid) for paid in account(tmp_path / "run")[1]] == [0, 3, 3, 3]
    assert set(result.evaluate_metrics_serverapp) == {1, 2, 3}


def test_a_model_of_the_apps_own_that_grows_from_nothing_is_refused_unless_it_may(tmp_path):
    with refused(ConfigError, "initial model", "bara.federation.same-shapes", "false"):
        grow(tmp_path / "run", FedAvg(fraction_evaluate=0.0))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("strategy", [FedXgbBagging, FedXgbCyclic])
def test_trees_that_may_not_grow_are_refused_before_anything_is_written(tmp_path, strategy):
    with refused(ConfigError, strategy.__name__, "trees", "bara.federation.same-shapes", "false"):
        grow(tmp_path / "run", strategy(fraction_evaluate=0.0))
    assert not (tmp_path / "run").exists()


def test_who_the_cyclic_strategy_does_not_ask_is_not_paid_and_does_not_back_off(tmp_path):
    result = grow(tmp_path / "run", FedXgbCyclic(), **{"bara.federation.same-shapes": False})
    whole, payments = account(tmp_path / "run")
    assert [len(paid) for paid in payments] == [0, 1, 1, 1]
    assert len(trees(result.arrays)) == 1
    assert whole.outstanding == 0


def test_winners_that_are_not_asked_win_again_in_the_next_round(federate):
    class First(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            return list(super().configure_train(server_round, arrays, config, grid))[:1]

    session = Session(
        ALLOCATORS.build("fixed", {"n": 3}),
        MECHANISMS.build("bid-price-first"),
        federate(First()),
    )
    steps = session.rounds(Purse.of(100, 3))
    records = [step for step in steps if isinstance(step, RoundRecord)][1:]
    assert {record.awarded.award.clients for record in records} == {
        ("client-0", "client-1", "client-2")
    }


# --- the least number of winners ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "least"),
    [
        (Bulyan(num_malicious_nodes=1), 7),
        (Krum(num_malicious_nodes=1), 5),
        (MultiKrum(num_malicious_nodes=1), 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_strategy_that_could_never_have_winners_enough_is_refused(tmp_path, strategy, least):
    facts = (type(strategy).__name__, f"{least} winners", "4 of 5 clients", "bara.allocator.n")
    with refused(ConfigError, *facts, "bara.mechanism.reserve"):
        begin(tmp_path / "run", strategy, **{"bara.allocator.n": 4})
    assert not (tmp_path / "run").exists()


def test_a_reserve_price_lets_all_of_them_win(tmp_path):
    keys = {"bara.allocator.n": 5, "bara.mechanism.reserve": 6}
    begin(tmp_path / "run", Krum(num_malicious_nodes=1, fraction_evaluate=0.0), **keys)
    assert [len(paid) for paid in account(tmp_path / "run")[1]][:2] == [0, 5]


def test_below_its_least_number_nobody_is_asked_or_to_blame(federate, grid):
    federation = federate(Bulyan(fraction_evaluate=0.0))
    federation.bids(1)
    delivery = federation.train(1, award(0, 1))
    assert set(delivery.void.values()) == {"not asked: Bulyan needs 3 winners, and 2 are there"}
    assert delivery.blameless == ("client-0", "client-1")
    assert not [m for m in grid.pushed if m.metadata.message_type == "train"]


def test_updates_that_bulyan_does_not_take_do_not_make_their_clients_back_off(federate, grid):
    grid.mishaps["train", 0] = raising
    federation = federate(Bulyan(fraction_evaluate=0.0))
    federation.bids(1)
    delivery = federation.train(1, award(0, 1, 2))
    assert delivery.failed == ("client-0",)
    assert set(delivery.blameless) == {"client-1", "client-2"}


# --- what a strategy has learned ------------------------------------------------------------------


class Annealed(FedAvg):
    """A user's own: it counts, lists, nests, and halves the learning rate."""

    def __init__(self, **options):
        super().__init__(**options)
        self.rounds = 0
        self.seen = {}
        self.tuned = (np.float64(1.0), [1, 2.5, {"deep": np.arange(2)}])
        self.rng = np.random.default_rng(0)
        self.name = "annealed"

    def configure_train(self, server_round, arrays, config, grid):
        self.rounds += 1
        self.seen[server_round] = {"lr": config["lr"]}
        config["lr"] = config["lr"] / 2
        return super().configure_train(server_round, arrays, config, grid)


def test_numbers_lists_and_nested_dicts_survive_and_what_cannot_is_named():
    one, two = Annealed(), Annealed()
    one.rounds, one.seen = 3, {2: {"lr": 0.1, "who": ["a", None, True]}}
    assert carried(one, two) == ["Annealed.rng (a Generator)"]
    assert (two.rounds, two.seen) == (3, one.seen)
    assert two.tuned[:1] == (1.0,)
    assert two.tuned[1][2]["deep"].tolist() == [0, 1]


def test_a_strategy_with_a_hook_of_its_own_is_saved_through_it():
    class Hooked(Annealed):
        def state_dict(self):
            return {"count": self.rounds, "moment": np.ones(2)}

        def load_state_dict(self, state):
            self.rounds, self.moment = 10 * state["count"], state["moment"]

    one, two = Hooked(), Hooked()
    one.rounds = 4
    assert carried(one, two) == []
    assert (two.rounds, two.moment.tolist()) == (40, [1, 1])


def cut_at(number, folder, *rest, **options):
    """The server dies in that round, between training and settlement."""
    with amid(number, "trained"), pytest.raises(KeyboardInterrupt):
        begin(folder, *rest, **options)


def test_what_a_strategy_changes_in_the_configuration_stays_changed_even_after_a_kill(
    tmp_path, logged
):
    cut_at(3, tmp_path / "run", Annealed(fraction_evaluate=0.0))
    strategy = Annealed(fraction_evaluate=0.0)
    begin(tmp_path / "run", strategy)
    assert [strategy.seen[r]["lr"] for r in (1, 2, 3)] == [0.1, 0.05, 0.025]
    assert strategy.rounds == 3
    assert (
        logged.text.count(
            "Annealed.rng (a Generator) cannot be saved, so a resumed run begins without"
        )
        == 2
    )  # once a session


def accounted():
    accountant = RdpAccountant(
        PrivacyConfig(
            1e-5, 5, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
        )
    )
    inner = FedAvg(fraction_evaluate=0.0)
    return flower.DifferentialPrivacyServerSideFixedClipping(
        inner, 1.0, 1.0, 5, accountant=accountant
    )


def test_epsilon_goes_on_where_a_killed_server_left_it(tmp_path):
    whole = accounted()
    begin(tmp_path / "whole", whole, LocalGrid(walking_app(samples=10), 5))
    cut_at(3, tmp_path / "cut", accounted(), LocalGrid(walking_app(samples=10), 5))
    again = accounted()
    begin(tmp_path / "cut", again, LocalGrid(walking_app(samples=10), 5))
    assert again.privacy_spent() == whole.privacy_spent()
    assert again.privacy_spent().num_releases == 3


def test_noise_is_for_the_winners_that_delivered(federate, grid, logged):
    grid.mishaps["train", 0] = raising
    private = flower.DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_evaluate=0.0), 1.0, 1.0, 50
    )
    federation = federate(private)
    federation.bids(1)
    federation.train(1, award(0, 1, 2, 3, 4))
    assert "central DP noise with 0.2500 stdev added" in logged.text  # 1 / 4, not 1 / 50
    assert "Received 4 results" in logged.text


def test_an_accountant_lets_go_of_a_round_in_which_nobody_delivers(federate, grid):
    grid.mishaps = {("train", client): raising for client in range(5)}
    private = accounted()
    federation = federate(private)
    federation.bids(1)
    federation.train(1, award(0, 1))
    federation.train(1, award(0, 1))  # Flower refuses a round that it still holds
    assert private.privacy_spent().num_releases == 0


def test_a_privacy_budget_that_is_used_up_ends_the_round_with_one_sentence(federate):
    config = PrivacyConfig(
        1e-5, 5, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION, 0.1
    )
    private = accounted()
    private.accountant = RdpAccountant(config)
    federation = federate(private)
    federation.bids(1)
    name = "DifferentialPrivacyServerSideFixedClipping"
    with refused(TrainingError, "round 1", name, "configure", "max_epsilon"):
        federation.train(1, award(0, 1))


# --- what is refused or said before the run -------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "facts"),
    [
        (OldFedAvg(), ("FedAvg", "flwr.server.strategy.fedavg")),
        (SecAggPlusWorkflow(3, 2), ("SecAggPlusWorkflow", "secure aggregation")),
        (
            DefaultWorkflow(fit_workflow=SecAggPlusWorkflow(3, 2)),
            ("DefaultWorkflow", "secure aggregation"),
        ),
        ("FedAvg", ("got str",)),
    ],
    ids=["legacy", "secagg", "secagg inside", "text"],
)
def test_what_is_no_strategy_of_the_message_api_gets_one_sentence(tmp_path, strategy, facts):
    with refused(ConfigError, "flwr.serverapp.strategy", *facts) as caught:
        begin(tmp_path / "run", strategy)
    assert "\n" not in str(caught.value)
    assert ("flwr.server." in str(caught.value)) == (strategy != "FedAvg")
    assert not (tmp_path / "run").exists()


def test_an_overridden_start_is_noticed(tmp_path, logged):
    class Saving(FedAvg):
        def start(self, *args, **options):
            raise NotImplementedError

    begin(tmp_path / "run", Saving(fraction_evaluate=0.0))
    assert "Saving overrides start, which is not called: bara runs the rounds" in logged.text


@pytest.mark.parametrize(("count", "reserve", "warns"), [(2, None, 1), (3, 9, 0), (5, None, 1)])
def test_without_a_reserve_price_it_is_said_that_somebody_always_sits_out(
    tmp_path, logged, count, reserve, warns
):
    keys = {"bara.clients.count": count, "bara.allocator.n": 1}
    keys |= {} if reserve is None else {"bara.mechanism.reserve": reserve}
    begin(tmp_path / "run", grid=LocalGrid(walking_app(), count), **keys)
    told = f"{count} clients and no reserve price: a bidder that loses sets the price"
    assert logged.text.count(told) == warns


@pytest.mark.parametrize(("total", "suffices"), [(75, True), (74, False)])
def test_it_is_said_beforehand_whether_everybody_trains_in_every_round(
    tmp_path, logged, total, suffices
):
    prices = dict.fromkeys(range(5), "1.40")
    keys = {
        "bara.allocator.name": "even",
        "bara.allocator.n": "",
        "bara.mechanism.name": "turns",
        "bara.mechanism.reserve": 5,
        "bara.budget.total": total,
        "bara.budget.max-rounds": 3,
    }
    begin(tmp_path / "run", grid=LocalGrid(walking_app(prices=prices), 5), **keys)
    told = [line for line in logged.messages if "not everybody trains" in line]
    if suffices:
        assert told == []
        assert [len(paid) for paid in account(tmp_path / "run")[1]][1:] == [5, 5, 5]
    else:
        assert all(fact in told[0] for fact in ("74.00", "3 rounds", "5 clients", "75.00"))
        assert min(len(paid) for paid in account(tmp_path / "run")[1][1:]) < 5


def test_the_documentation_lists_every_strategy_of_flower():
    table = PAGE.partition("## Which strategies")[2].partition("\n## ")[0]
    missing = [
        name
        for name in flower.__all__
        if name not in ("Result", "Strategy") and f"`{name}`" not in table
    ]
    assert missing == []
    assert re.search(r"\| `flwr.server.strategy` .*refused", table)
