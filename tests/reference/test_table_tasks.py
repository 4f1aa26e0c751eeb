"""Table models by hand-written kernels against plain torch: every task,
every loss, every way of training.
"""

import numpy as np
import plain_training as plain
import pytest
import torch

from bara.simulator import Data, Engine, Training
from bara.simulator._batches import Samples
from bara.simulator._layout import Layout
from bara.simulator.losses import Own, loss_of
from bara.simulator.models import build

OWN = """
import torch
def huber(scores, targets):
    return torch.nn.functional.huber_loss(scores[:, 0], targets)
"""
PLAIN = {"learning_rate": 0.05, "batch_size": 30, "privacy": None}
WAYS = {
    "fedsgd": {
        "algorithm": "fedsgd",
        "local_epochs": 1,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "proximal": 0.0,
    },
    "fedavg": {
        "algorithm": "fedavg",
        "local_epochs": 2,
        "momentum": 0.5,
        "weight_decay": 0.05,
        "proximal": 0.3,
    },
}


def table(task, rows=200):
    """Thirty numbers that say something about the target."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 30)).astype(np.float32)
    score = x[:, :3].sum(axis=1) + random.normal(0, 0.5, rows)
    y = {"regression": score, "binary": score > 0, "classes": np.digitize(score, [-1, 1])}[task]
    return x, y if task == "regression" else y.astype(np.int64)


@pytest.fixture(autouse=True)
def _one_thread(tmp_path, monkeypatch):
    (tmp_path / "own_loss.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize(
    ("task", "classes", "loss"),
    [
        ("classes", 3, None),
        ("binary", 2, None),
        ("regression", 0, None),
        ("regression", 0, "own_loss:huber"),
    ],
)
def test_a_client_of_a_table_agrees_with_the_plain_loop(task, classes, loss, model, way):
    x, y = table(task)
    training = Training(**PLAIN, **WAYS[way], loss=loss)
    parts = [np.arange(70)]
    data = Data(x, y, x, y, classes, {"test": np.arange(200)}, parts, task)
    with Engine(
        model,
        training,
        data,
        seed=1,
        workers=1,
        metric="r2" if task == "regression" else "accuracy",
    ) as engine:
        start = engine.start()
        got = engine.train(start, 2, [0]).states[0].copy()
        score = engine.evaluate(got)
    module = build(model, (30,), data.outputs, 1)
    targets = torch.from_numpy(y.astype(np.int64 if task == "classes" else np.float32))
    samples = Samples(torch.from_numpy(x), targets)
    want = plain.client_update(
        module,
        Layout.of(module).read(module),
        samples,
        torch.from_numpy(parts[0]),
        training,
        (1, 2, 0),
        task,
    ).numpy()
    assert np.linalg.norm(got - want) < 5e-4 * np.linalg.norm(want - start) + 2e-7 * np.linalg.norm(
        want
    )
    if loss is None:
        accuracy, mean = plain.accuracy_and_loss(
            module, torch.from_numpy(want), samples, torch.arange(200), task
        )
        assert score.loss == pytest.approx(mean, rel=1e-4)
        assert task == "regression" or score.accuracy == pytest.approx(accuracy, abs=0.011)


@pytest.mark.parametrize("task", ["classes", "binary", "regression"])
def test_the_gradient_of_every_loss_is_autograds(task):
    torch.manual_seed(0)
    loss, outputs = loss_of(task), 3 if task == "classes" else 1
    scores = torch.randn(20, outputs, requires_grad=True)
    y = torch.randint(0, 3, (20,)) if task == "classes" else torch.randint(0, 2, (20,)).float()
    (want,) = torch.autograd.grad(loss.total(scores, y), scores)
    assert torch.allclose(loss.gradient(scores.detach(), y), want, atol=1e-6)
    own = Own(lambda scores, y: loss.total(scores, y) / len(y), loss)
    assert torch.allclose(own.gradient(scores.detach(), y), want, atol=1e-5)
