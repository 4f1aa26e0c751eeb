"""A tiny federation that every test of the simulator can afford."""

from dataclasses import fields

import numpy as np
import pytest

from bara.runs.config_sections import TrainingSection
from bara.simulator import Data, Engine, Training


def training(privacy=None, **changes):
    """How clients train by a configuration's defaults, but for these changes."""
    given = vars(TrainingSection(**changes))
    return Training(
        **{field.name: given[field.name] for field in fields(Training) if field.name in given},
        privacy=privacy,
    )


def tiny_data(shape=(8, 8), samples=120, classes=4, seed=0, parts=None):
    """Pictures whose brightest rows tell their class, so that a model can learn them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, samples + 60)
    x = random.integers(0, 100, (samples + 60, *shape))
    for i, label in enumerate(y):
        x[i, label * shape[0] // classes : (label + 1) * shape[0] // classes] += 150
    x = x.astype(np.uint8)
    held = {"validation": np.arange(20), "test": np.arange(20, 60)}
    return Data(
        x[:samples], y[:samples], x[samples:], y[samples:], classes, held, parts or tiny_parts()
    )


def tiny_parts(samples=120, sizes=(50, 33, 30, 7)):
    return np.split(np.random.default_rng(1).permutation(samples), np.cumsum(sizes)[:-1])


@pytest.fixture
def make_engine():
    """Engines that are closed when the test ends."""
    engines = []

    def make(model="mlp", *, shape=(8, 8), seed=3, workers=1, parts=None, data=None, **changes):
        how = training(**{"algorithm": "fedavg", "batch_size": 10, **changes})
        engine = Engine(
            model, how, data or tiny_data(shape, parts=parts), seed=seed, workers=workers
        )
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.close()
