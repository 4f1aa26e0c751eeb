"""What happens to batch-norm statistics: part of the state, moved by training,
averaged like parameters.
"""

import numpy as np
import pytest
import torch

from bara.simulator import aggregate
from bara.simulator._layout import Layout
from bara.simulator._networks import Autograd
from bara.simulator.losses import CrossEntropy
from bara.simulator.models import build

COUNT, MEAN = "3.num_batches_tracked", "3.running_mean"


def slot(engine, name):
    place = next(place for place in engine.layout if place.name == name)
    return slice(place.start, place.start + place.size)


@pytest.mark.parametrize(("algorithm", "batches"), [("fedsgd", (1, 1)), ("fedavg", (5, 3))])
def test_statistics_are_averaged_with_the_parameters_weights(make_engine, algorithm, batches):
    engine = make_engine("cifar-cnn", shape=(12, 12, 3), algorithm=algorithm)
    updates = engine.train(engine.start(), 1, [0, 2])  # 50 and 30 samples in batches of 10
    state = aggregate(updates, [3, 1])
    mean, count = slot(engine, MEAN), slot(engine, COUNT)
    assert np.allclose(
        state[mean], 0.75 * updates.states[0][mean] + 0.25 * updates.states[1][mean], atol=1e-7
    )
    assert not np.allclose(updates.states[0][mean], updates.states[1][mean])
    assert not np.allclose(updates.states[0][mean], engine.start()[mean])
    assert updates.states[:, count].ravel().tolist() == list(batches)
    assert state[count] == pytest.approx(0.75 * batches[0] + 0.25 * batches[1])


def test_evaluation_uses_the_running_statistics_and_does_not_move_them(make_engine):
    engine = make_engine("cifar-cnn", shape=(12, 12, 3))
    state = engine.start()
    before = engine.evaluate(state)
    assert engine.evaluate(state) == before
    state[slot(engine, MEAN)] += 1
    assert engine.evaluate(state) != before


def test_a_module_reads_an_averaged_count_as_the_nearest_whole_number():
    module = build("cifar-cnn", (3, 12, 12), 4, 0)
    layout = Layout.of(module)
    flat = layout.read(module)
    flat[-2:] = torch.tensor([2.6, 3.2])
    layout.write(flat, module)
    assert module.get_buffer(COUNT).item() == 3
    assert layout.read(module)[-2:].tolist() == [3, 3]


def test_autograd_counts_on_from_the_averaged_count():
    network = Autograd(build("cifar-cnn", (3, 12, 12), 4, 0), CrossEntropy())
    network.state[-2:] = 2.6
    network.accumulate(torch.rand(5, 3, 12, 12), torch.zeros(5, dtype=torch.int64), 1.0, 0.0)
    assert network.state[-2:].tolist() == [4, 4]
