import pytest
import torch
from refusals import refused
from torch.nn.utils import parameters_to_vector

from bara.errors import ConfigError, UnknownNameError
from bara.simulator.models import MODELS, build


def sizes(name, shape, classes=10):
    return [tuple(p.shape) for p in build(name, shape, classes, 0).parameters() if p.ndim > 1]


def test_the_mlp_is_the_papers_784_200_200_10():
    assert sizes("mlp", (1, 28, 28)) == [(200, 784), (200, 200), (10, 200)]


def test_the_cnn_has_two_convolutions_and_one_linear_layer():
    assert sizes("cnn", (1, 28, 28)) == [(32, 1, 5, 5), (64, 32, 5, 5), (10, 64 * 7 * 7)]


def test_the_cifar_cnn_is_the_papers_2304_512_classes():
    assert sizes("cifar-cnn", (3, 32, 32), 100) == [
        (32, 3, 3, 3),
        (64, 32, 3, 3),
        (512, 2304),
        (100, 512),
    ]


@pytest.mark.parametrize(
    ("name", "shape"), [("mlp", (1, 8, 8)), ("cnn", (1, 8, 8)), ("mlp", (13,))]
)
def test_a_model_fits_small_pictures_and_tables(name, shape):
    assert build(name, shape, 3, 0)(torch.zeros(5, *shape)).shape == (5, 3)


@pytest.mark.parametrize("name", MODELS.names())
def test_the_seed_decides_the_initial_weights(name):
    first, again, other = (build(name, (1, 12, 12), 10, seed) for seed in (1, 1, 2))
    weights, same, others = (
        parameters_to_vector(module.parameters()) for module in (first, again, other)
    )
    assert torch.equal(weights, same)
    assert not torch.equal(weights, others)


def test_building_a_model_leaves_torchs_global_generator_alone():
    before = torch.get_rng_state()
    build("cifar-cnn", (3, 32, 32), 10, 5)
    assert torch.equal(before, torch.get_rng_state())


def test_an_unknown_model_is_refused_with_the_nearest_name():
    with refused(UnknownNameError, "'cifar_cnn'", "'cifar-cnn'"):
        build("cifar_cnn", (3, 32, 32), 10, 0)


@pytest.mark.parametrize(
    ("name", "shape", "least"),
    [
        ("cnn", (13,), "4x4"),
        ("cnn", (1, 3, 8), "4x4"),
        ("cifar-cnn", (3, 8, 8), "10x10"),
        ("cifar-cnn", (3, 9, 32), "10x10"),
    ],
)
def test_a_picture_model_refuses_what_is_no_large_enough_picture(name, shape, least):
    with refused(ConfigError, repr(name), least, shape):
        build(name, shape, 10, 0)


MINE = """
from torch import nn
class Mine(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.layer = nn.Linear(shape[1] * shape[2], classes + OFF)
    def forward(self, x):
        return self.layer(x.flatten(1))
class Picky(nn.Linear):
    pass
number = 3
def nothing(shape, classes):
    return None
OFF = 0
class Wrong(Mine):
    def __init__(self, shape, classes):
        super().__init__(shape, classes + 1)
class Deaf(Mine):
    def forward(self, x):
        return self.layer(x)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own")
def test_a_users_own_module_is_found_by_import_path():
    assert type(build("own_models:Mine", (1, 4, 4), 3, 0)).__name__ == "Mine"


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("own_models:Wrong", ("(2, 4)", "3 classes", "(2, 3)")),
        ("own_models:Deaf", ("samples of shape (1, 4, 4)", "cannot be multiplied")),
        ("own_models:number", ("torch.nn.Module", "class or function", "3")),
        ("own_models:nothing", ("torch.nn.Module", "NoneType")),
        ("own_models:Picky", ("Name((1, 4, 4), 3)",)),
        ("own_models:Absent", ("'own_models'", "'Absent'")),
        ("no_such_module:Mine", ("'no_such_module'",)),
    ],
)
def test_a_module_that_does_not_fit_is_refused(name, facts):
    with refused(ConfigError, repr(name), *facts):
        build(name, (1, 4, 4), 3, 0)
