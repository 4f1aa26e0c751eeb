"""The fast engine against the plain loop, for every model and every way of training."""

import numpy as np
import plain_training as plain
import pytest
import torch

from bara.simulator import Data, Engine, Training, aggregate
from bara.simulator._batches import Samples
from bara.simulator._layout import Layout
from bara.simulator.models import build

PLAIN = {
    "algorithm": "fedavg",
    "learning_rate": 0.02,
    "local_epochs": 1,
    "batch_size": 30,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "proximal": 0.0,
    "privacy": None,
}
WAYS = {
    "fedsgd": {"algorithm": "fedsgd"},
    "fedavg": {},
    "epochs": {"local_epochs": 3, "batch_size": 20},
    "momentum": {"momentum": 0.9},
    "decay": {"weight_decay": 0.1},
    "proximal": {"proximal": 0.5, "local_epochs": 2},
    "everything": {"momentum": 0.5, "weight_decay": 0.05, "proximal": 0.3, "local_epochs": 2},
}
OWN_MODELS = dict.fromkeys(("own_module:Own", "own_module:Fused", "own_module:Twice"), (8, 8))
MODELS = {"mlp": (8, 8), "cnn": (8, 8), "cifar-cnn": (12, 12, 3), **OWN_MODELS}
OWN = """
from torch import nn
class Own(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.a, self.b = nn.Linear(64, 20), nn.Linear(20, classes)
    def forward(self, x):
        return self.b(self.a(x.flatten(1)).tanh())
def Fused(shape, classes):
    return nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(16, 6, 3, stride=(1, 2), padding=(2, 1)), nn.ReLU(),
                         nn.MaxPool2d(3, 2, 1), nn.Flatten(), nn.ReLU(), nn.Linear(18, classes))
def Twice(shape, classes):
    relu, middle = nn.ReLU(), nn.Linear(20, 20)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 20), relu, middle, relu, middle, relu,
                         nn.Linear(20, classes))
"""
CLASSES, SEED = 5, 4


@pytest.fixture(autouse=True)
def _one_thread():
    """Two threads crawl when the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_a_round_agrees_with_the_plain_loop(model, way):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (400, *MODELS[model]), dtype=np.uint8)
    y = random.integers(0, CLASSES, 400)
    # FedSGD in more than one chunk; FedAvg in few steps, for a ReLU that rounding tips over sends
    # paths apart
    sizes = (300, 23) if way == "fedsgd" else (70, 23)
    parts = np.split(random.permutation(400)[: sum(sizes)], [sizes[0]])
    training = Training(**{**PLAIN, **WAYS[way]})
    data = Data(x, y, x, y, CLASSES, {"test": np.arange(400)}, parts)
    with Engine(model, training, data, seed=SEED, workers=1) as engine:
        start = engine.start()
        updates = engine.train(start, 2, [0, 1])
        state = aggregate(updates, updates.samples)
        score = engine.evaluate(state)

    module = build(model, engine_shape(MODELS[model]), CLASSES, SEED)
    samples = Samples(torch.from_numpy(x.reshape(400, *MODELS[model][:2], -1)), torch.from_numpy(y))
    begin = Layout.of(module).read(module)
    assert np.array_equal(begin.numpy(), start)
    expected = [
        plain.client_update(
            module, begin, samples, torch.from_numpy(part), training, (SEED, 2, client)
        )
        for client, part in enumerate(parts)
    ]
    for got, want in zip(updates.states, expected, strict=True):
        assert_close(got, want.numpy(), start)
    mean = plain.average(expected, sizes)
    assert_close(state, mean.numpy(), start)
    accuracy, loss = plain.accuracy_and_loss(module, mean, samples, torch.arange(400))
    assert score.accuracy == pytest.approx(accuracy, abs=0.011)  # a tie may fall the other way
    assert score.loss == pytest.approx(loss, rel=1e-4)


def engine_shape(shape):
    return (1, *shape) if len(shape) == 2 else (shape[2], shape[0], shape[1])


def assert_close(got, want, start):
    """Apart by a small share of how far training went,
    so that a forgotten term cannot hide behind the weights.
    """
    apart, went = np.linalg.norm(got - want), np.linalg.norm(want - start)
    assert went > 0
    assert apart < 5e-4 * went + 2e-7 * np.linalg.norm(want)
