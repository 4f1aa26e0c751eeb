"""The simulated federation as the market sees it: real training on the embedded digits."""

import contextlib

import numpy as np
import pytest
from refusals import refused

from bara import Award
from bara.clients.conduct import Conduct, cast_roles
from bara.errors import ConfigError, DatasetError, TrainingError, UnknownNameError
from bara.runs.config import Config
from bara.runs.factory import assemble, build_federation
from bara.runs.play import play_run
from bara.server.checkpoints import load
from bara.simulator import Engine, aggregate

SMALL = [
    "federation.engine=simulator",
    "clients.count=6",
    "data.train_samples=300",
    "allocator.name=fixed",
    "allocator.n=4",
]
SHORT = [*SMALL, "budget.total=40", "budget.max_rounds=5"]


@contextlib.contextmanager
def federation(*changes, folder=None):
    with build_federation(Config.load(None, [*SMALL, *changes]), folder) as made:
        yield made


def award(clients, weights=None):
    return Award(tuple(clients), (1,) * len(clients), weights=weights)


def cheating(roles, free_riding="unchanged"):
    return Conduct(0, roles, failure_rate=0.0, late_rate=0.0, free_riding=free_riding)


def names(*numbers):
    return [f"client-{number}" for number in numbers]


def test_a_run_learns_and_says_what_each_client_brought():
    with federation() as f:
        before = f.evaluate()
        for t in range(1, 16):
            delivery = f.train(t, award(names(0, 1, 2, 3, 4, 5)))
        assert delivery.evaluation.accuracy > before.accuracy + 0.1
        assert delivery.delivered["client-3"].samples == 50
        assert delivery.delivered["client-3"].loss_before > 0


def test_data_sizes_that_the_server_knows_have_only_the_limit_that_is_declared():
    uneven = ("clients.partition=quantity(2)", "training.memory=off")
    with federation(*uneven) as f:
        free = f.train(1, award(names(0, 1, 2, 3, 4, 5)))
    sizes = {client: evidence.samples for client, evidence in free.delivered.items()}
    assert len(sizes) == 6
    with federation(*uneven, "limits.num_examples=20") as f:
        bounded = f.train(1, award(names(0, 1, 2, 3, 4, 5)))
    assert set(bounded.void) == {client for client, size in sizes.items() if size > 20}
    assert set(bounded.delivered) == {client for client, size in sizes.items() if size <= 20}
    assert bounded.void
    assert all("limits.num_examples = 20" in reason for reason in bounded.void.values())
    with federation(*uneven, "limits.num_examples=0.5") as f:
        start = f.model.copy()
        assert f.train(1, award(names(0, 1))).delivered == {}
        assert np.array_equal(f.model, start)


def test_decisions_see_the_validation_half_and_reports_the_test_half():
    with federation() as halves, federation("data.held_out=same") as same:
        assert halves.evaluate().test_accuracy is not None
        assert same.evaluate().test_accuracy is None


def test_evaluation_has_its_own_sample_size():
    with federation("data.evaluation_samples=10") as f:
        assert round(f.evaluate().accuracy * 10, 6) % 1 == 0
        assert round(f.evaluate().test_accuracy * 10, 6) % 1 == 0


def test_the_order_of_the_winners_does_not_change_the_model():
    with federation() as one, federation() as two:
        one.train(1, award(names(0, 1, 2)))
        two.train(1, award(names(2, 0, 1)))
        assert np.array_equal(one.model, two.model)


@pytest.mark.path
@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_run(workers):
    alone = play_run(Config.load(None, [*SHORT, "federation.workers=1"]))
    many = play_run(Config.load(None, [*SHORT, f"federation.workers={workers}"]))
    assert alone == many


def test_the_mechanisms_weights_are_honoured():
    with federation("training.memory=off") as f, federation("training.memory=off") as g:
        f.train(1, award(names(0, 1), weights=(1.0, 0.0)))
        g.train(1, award(names(0)))
        assert np.array_equal(f.model, g.model)


def test_updates_are_weighed_by_data_size_or_equally():
    changes = ("clients.partition=quantity(1.5)", "training.memory=off")
    with federation(*changes) as f, federation(*changes, "training.aggregation=equal") as g:
        updates = f.collect(1, award(names(0, 1))).updates
        assert updates.samples[0] != updates.samples[1]
        by_size, equally = aggregate(updates, updates.samples), aggregate(updates, [1, 1])
        f.train(1, award(names(0, 1)))
        g.train(1, award(names(0, 1)))
        assert np.array_equal(f.model, by_size)
        assert np.array_equal(g.model, equally)
        assert not np.array_equal(by_size, equally)


def test_updates_may_add_up_instead():
    with federation("training.aggregation=sum") as f:
        start = f.model.copy()
        updates = f.collect(1, award(names(0, 1, 2))).updates
        f.train(1, award(names(0, 1, 2)))
        added = start + sum(state - start for state in updates.states)
        assert f.model == pytest.approx(added, rel=1e-4, abs=1e-6)


def test_failing_and_late_clients_are_void_with_their_reason():
    with federation("clients.failure_rate=0.3", "clients.late_rate=0.3") as f:
        reasons = {
            r for t in range(1, 9) for r in f.train(t, award(names(0, 1, 2, 3, 4, 5))).void.values()
        }
    assert reasons == {"it did not answer", "its update came too late"}


def test_when_nobody_delivers_the_model_stays():
    with federation("clients.failure_rate=1") as f:
        before = f.model
        assert not f.train(1, award(names(0, 1))).delivered
        assert np.array_equal(f.model, before)


def test_a_learning_rate_that_breaks_the_model_ends_the_run_and_pays_nobody():
    config = Config.load(None, [*SHORT, "training.learning_rate=1e30"])
    seen = []
    with refused(TrainingError, "loss", "nan", "learning rate"):
        play_run(config, seen.append)
    assert seen[-1].purse.spent == 0


def test_one_client_whose_update_is_not_finite_is_void_and_the_others_go_on(monkeypatch):
    original = Engine.train

    def poisoned(*arguments, **options):
        updates = original(*arguments, **options)
        updates.states[1] = np.nan
        return updates

    monkeypatch.setattr(Engine, "train", poisoned)
    with federation() as f:
        delivery = f.train(1, award(names(0, 1, 2)))
        assert dict(delivery.void) == {"client-1": "its update is not finite"}
        assert np.isfinite(f.model).all()


def test_free_riders_deliver_no_work_and_poisoners_the_opposite():
    with federation("training.evidence=true") as f:
        state = f.model
        updates = f.collect(1, award(names(0, 1, 2))).updates
        conduct = cheating({"client-1": "free rider", "client-2": "poisoner"})
        seen = conduct.tamper(1, names(0, 1, 2), state, updates)
        assert np.array_equal(seen.states[0], updates.states[0])
        assert np.array_equal(seen.states[1], state)
        np.testing.assert_allclose(seen.states[2] - state, state - updates.states[2], atol=1e-6)
        assert seen.loss_after[1] == seen.loss_before[1]
        assert seen.loss_after[2] > seen.loss_before[2]
        random = cheating({"client-1": "free rider"}, "random").tamper(
            1, names(0, 1), state, updates
        )
        assert 0 < np.abs(random.states[1] - state).max() < 0.1
        alone = f.collect(1, award(names(1))).updates
        riders = cheating({"client-0": "free rider", "client-1": "free rider"}, "random")
        both, one = (
            riders.tamper(1, names(0, 1), state, updates),
            riders.tamper(1, names(1), state, alone),
        )
        assert np.array_equal(both.states[1], one.states[0])  # whoever else is there
        assert not np.array_equal(both.states[0], both.states[1])


def test_roles_are_drawn_and_never_doubled():
    roles = cast_roles(names(*range(6)), 0, noisy=2, free_riders=2, poisoners=2)
    assert sorted(roles.values()) == ["free rider"] * 2 + ["noisy"] * 2 + ["poisoner"] * 2


def test_wrong_labels_and_poison_hurt():
    honest = play_run(Config.load(None, [*SMALL, "budget.total=200", "budget.max_rounds=25"]))
    for harm in ("clients.poisoners=3", "clients.noisy=6"):
        assert (
            play_run(
                Config.load(
                    None,
                    [
                        *SMALL,
                        "budget.total=200",
                        "budget.max_rounds=25",
                        harm,
                        "clients.label_noise=1",
                    ],
                )
            ).accuracy_final
            < honest.accuracy_final
        )


def test_costs_follow_data_size_speed_and_time():
    with federation(
        "clients.cost_by=samples", "clients.partition=quantity(1)", "clients.bids=constant(1)"
    ) as f:
        bids = f.bids(1)
        assert bids.prices / bids.column("samples") == pytest.approx([1e6 / 50] * 6, rel=1e-3)
    with federation("clients.cost_by=compute", "clients.bids=constant(1)") as f:
        assert len(set(f.bids(1).prices.tolist())) == 6
        assert f.bids(1).prices.tolist() == f.bids(2).prices.tolist()
    with federation("clients.drift=0.1", "clients.bids=constant(1)") as f:
        assert f.bids(3).prices.tolist() == [1_210_000] * 6


def test_clients_come_and_go():
    with federation("clients.absence_rate=0.5") as f:
        there = [set(f.bids(t).clients) for t in range(1, 200)]
    assert 0.3 < np.mean([len(clients) for clients in there]) / 6 < 0.7
    assert there[1] == there[2]
    assert len({frozenset(clients) for clients in there}) > 5


def test_checkpoints_and_models_are_saved_and_read_back(tmp_path):
    config = Config.load(None, [*SHORT, "training.checkpoint_every=2"])
    result = play_run(config, session=assemble(config, tmp_path))
    assert load(tmp_path / "checkpoints/round-4.npz").round == 4
    assert {path.name for path in tmp_path.glob("model*.npz")} == {
        "model.npz",
        "model-final.npz",
        "model-best.npz",
        "model-average.npz",
    }
    assert set(result.models) == {"final", "best", "average"}
    assert result.accuracy_kept == result.models[result.kept]["accuracy"]
    assert load(tmp_path / "model.npz").extra == {"model": result.kept}
    assert (
        load(tmp_path / "model-final.npz").round == load(tmp_path / "model-average.npz").round == 5
    )


def test_a_restored_checkpoint_goes_on_bit_for_bit():
    with federation("training.memory=off") as f, federation("training.memory=off") as g:
        for t in (1, 2, 3):
            f.train(t, award(names(0, 1, 2)))
        saved = f.model
        f.train(4, award(names(1, 2, 3)))
        g.model = saved
        g.train(4, award(names(1, 2, 3)))
        assert np.array_equal(f.model, g.model)


@pytest.mark.parametrize(
    ("changes", "error", "facts"),
    [
        (["clients.count=400"], DatasetError, ("clients (400)", "samples (300)")),
        (
            ["data.train_samples=5000"],
            DatasetError,
            ("digits", "train_samples", "1400", "5000"),
        ),
        (["data.name=mnst"], UnknownNameError, ("dataset", "'mnst'", "'mnist'")),
        (["training.model=resnet"], UnknownNameError, ("model", "'resnet'", "cifar-cnn")),
        (["federation.speed=2"], ConfigError, ("'federation.speed'", "'workers'")),
        (["clients.noisy=9"], ConfigError, ("clients.noisy", "clients.count = 6", "9")),
        (
            ["training.aggregation=sum", "training.memory=plain"],
            ConfigError,
            ("training.aggregation", "training.memory", "'plain'"),
        ),
        (["training.momentum=0.9"], ConfigError, ("training.momentum", "fedsgd", "0.9")),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(changes, error, facts):
    with refused(error, *facts), federation(*changes):
        pass
