"""A tiny federation that every test of the simulator can afford."""

import numpy as np
import pytest

from bara.federations.simulator import Data, Engine, Training


def tiny_data(shape=(8, 8), samples=120, classes=4, seed=0):
    """Pictures whose brightest rows tell their class, so that a model can learn them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, samples + 60)
    x = random.integers(0, 100, (samples + 60, *shape))
    for i, label in enumerate(y):
        x[i, label * shape[0] // classes : (label + 1) * shape[0] // classes] += 150
    x = x.astype(np.uint8)
    held = {"validation": np.arange(20), "test": np.arange(20, 60)}
    return Data(x[:samples], y[:samples], x[samples:], y[samples:], classes, held)


def tiny_parts(samples=120, sizes=(50, 33, 30, 7)):
    return np.split(np.random.default_rng(1).permutation(samples), np.cumsum(sizes)[:-1])


@pytest.fixture
def make_engine():
    """Engines that are closed when the test ends."""
    engines = []

    def make(model="mlp", *, shape=(8, 8), seed=3, workers=1, parts=None, data=None, **training):
        given = {"learning_rate": 0.1, "batch_size": 10, **training}
        data = data or tiny_data(shape)
        engine = Engine(model, Training(**given), data, parts or tiny_parts(), seed=seed, workers=workers)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.close()
