from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused

from bara.errors import ConfigError, DatasetError, TrainingError
from bara.simulator import aggregate

from .conftest import tiny_data


def run(engine, rounds=3, clients=(2, 0, 3)):
    """A few rounds: the last state and everything measured on the way."""
    state, seen = engine.start(), []
    for number in range(1, rounds + 1):
        updates = engine.train(state, number, clients, evidence=True)
        state = aggregate(updates, updates.samples)
        seen.append((updates.loss_before, updates.loss_after, engine.evaluate(state, "validation")))
    return state, seen, engine.evaluate(state)


def test_training_makes_the_model_better(make_engine):
    engine = make_engine(local_epochs=3)
    before = engine.evaluate(engine.start())
    _, _, after = run(engine, rounds=10, clients=(0, 1, 2, 3))
    assert after.accuracy > 0.9 > before.accuracy
    assert after.loss < before.loss / 2
    assert after.samples == 40


def test_a_run_is_the_same_twice_and_another_with_another_seed(make_engine):
    first, again, other = (run(make_engine(seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first[0], again[0])
    assert first[1:] == again[1:]
    assert not np.array_equal(first[0], other[0])


@pytest.mark.path
@pytest.mark.parametrize(
    ("model", "algorithm"), [("mlp", "fedavg"), ("cifar-cnn", "fedsgd"), ("cnn", "fedavg")]
)
def test_one_worker_and_two_give_the_same_bits(make_engine, model, algorithm):
    one, two = (
        run(make_engine(model, shape=(12, 12, 3), algorithm=algorithm, workers=n)) for n in (1, 2)
    )
    assert np.array_equal(one[0], two[0])
    assert one[1:] == two[1:]


def test_a_clients_update_depends_neither_on_the_others_nor_on_their_order(make_engine):
    engine = make_engine()
    together = engine.train(engine.start(), 1, [0, 1, 2]).states.copy()
    assert np.array_equal(together[1], engine.train(engine.start(), 1, [1]).states[0])
    assert np.array_equal(together[::-1], engine.train(engine.start(), 1, [2, 1, 0]).states)


def test_batches_are_shuffled_anew_every_round(make_engine):
    engine = make_engine()
    first = engine.train(engine.start(), 1, [0]).states.copy()
    assert not np.array_equal(first, engine.train(engine.start(), 2, [0]).states)


def test_evidence_is_the_loss_on_ones_own_samples(make_engine):
    engine = make_engine(local_epochs=5, parts=[np.arange(60), np.arange(60, 120)])
    updates = engine.train(engine.start(), 1, [1, 0], evidence=True)
    assert updates.clients == (1, 0)
    assert updates.samples == (60, 60)
    assert all(
        after < before
        for before, after in zip(updates.loss_before, updates.loss_after, strict=True)
    )
    bare = engine.train(engine.start(), 1, [1, 0])
    assert bare.loss_before == bare.loss_after == (None, None)


def test_fedsgd_knows_the_loss_before_without_being_asked(make_engine):
    engine = make_engine(algorithm="fedsgd")
    bare = engine.train(engine.start(), 1, [0, 1])
    asked = engine.train(engine.start(), 1, [0, 1], evidence=True)
    assert bare.loss_before == asked.loss_before
    assert bare.loss_after == (None, None)
    assert all(
        after < before for before, after in zip(asked.loss_before, asked.loss_after, strict=True)
    )


def test_uint8_is_divided_by_255_and_floats_are_taken_as_they_are(make_engine):
    data = tiny_data()
    scaled = replace(data, x_train=data.x_train / 255, x_held=data.x_held / 255)
    whole, real = (run(make_engine(data=given))[0] for given in (data, scaled))
    assert np.allclose(whole, real, atol=1e-5)


def test_the_callers_torch_settings_survive(make_engine):
    threads, before = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        run(make_engine(), rounds=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(before, torch.get_rng_state())


def test_a_state_that_is_not_finite_is_neither_trained_nor_evaluated(make_engine):
    engine = make_engine()
    state = engine.start()
    state[5] = np.nan
    with refused(TrainingError, "not finite", "round 4"):
        engine.train(state, 4, [0])
    with refused(TrainingError, "not finite", "evaluation", "'test'"):
        engine.evaluate(state)


def test_a_loss_that_is_not_finite_stops_the_evaluation(make_engine):
    engine = make_engine()
    with refused(TrainingError, "loss", "'test'", "nan"):
        engine.evaluate(engine.start() + np.float32(1e37))


@pytest.mark.parametrize("clients", [[], [4], [-1], [1, 1]])
def test_clients_that_are_none_are_refused(make_engine, clients):
    engine = make_engine()
    with refused(ConfigError, "clients", "0 to 3", clients):
        engine.train(engine.start(), 1, clients)


def test_a_state_of_another_model_and_a_part_there_is_not_are_refused(make_engine):
    engine = make_engine()
    whole = engine.start()
    with refused(ConfigError, "state", whole.shape, whole[1:].shape):
        engine.train(whole[1:], 1, [0])
    with refused(ConfigError, "'train'", "validation", "test"):
        engine.evaluate(engine.start(), "train")


@pytest.mark.parametrize(
    ("shape", "seen"), [((8, 9), (1, 8, 9)), ((8, 9, 3), (3, 8, 9)), ((11,), (11,))]
)
def test_a_samples_shape_is_as_torch_sees_it(shape, seen):
    assert replace(tiny_data(), x_train=np.zeros((6, *shape))).shape == seen


def test_samples_that_are_neither_tables_nor_pictures_are_refused():
    with refused(DatasetError, "samples", "shape", "(2, 8, 8, 3)"):
        _ = replace(tiny_data(), x_train=np.zeros((6, 2, 8, 8, 3))).shape


@pytest.mark.parametrize("algorithm", ["fedsgd", "fedavg"])
def test_bytes_and_the_same_samples_as_fractions_teach_the_same(make_engine, algorithm):
    stored = tiny_data()
    fractions = {
        name: getattr(stored, name).astype(np.float32) * np.float32(1 / 255)
        for name in ("x_train", "x_held")
    }
    bytes_, floats = (
        run(make_engine(algorithm=algorithm, data=data))
        for data in (stored, replace(stored, **fractions))
    )
    assert np.array_equal(bytes_[0], floats[0])
    assert bytes_[1:] == floats[1:]


def test_a_sample_that_two_clients_hold_is_both_of_theirs(make_engine):
    shared = [np.arange(30), np.arange(20, 50)]
    engine = make_engine(parts=shared, algorithm="fedsgd")
    alone = make_engine(parts=[shared[1]], algorithm="fedsgd")
    start = engine.start()
    assert np.array_equal(
        engine.train(start, 1, [1]).states[0], alone.train(start, 1, [0]).states[0]
    )
