"""The paper's models, and a user's own by import path; built from a seed, torch's global generator untouched.

A model is a `torch.nn.Module` that maps a batch of samples to one score per class. `shape` is one
sample's shape as torch sees it: (channels, height, width) for pictures, (features,) for tables.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from bara.errors import ConfigError
from bara.plugins import Registry

Shape = tuple[int, ...]
Factory = Callable[[Shape, int], nn.Module]


def linear(shape: Shape, classes: int) -> nn.Module:
    """Softmax regression: one linear layer. Few numbers, so that noise on every one of them leaves something."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(torch.Size(shape).numel()), classes))


def mlp(shape: Shape, classes: int) -> nn.Module:
    """Two hidden layers of 200 with ReLU (784-200-200-10 on MNIST); takes samples of any shape."""
    features = int(torch.Size(shape).numel())
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(features, 200),
        nn.ReLU(),
        nn.Linear(200, 200),
        nn.ReLU(),
        nn.Linear(200, classes),
    )


def cnn(shape: Shape, classes: int) -> nn.Module:
    """Two 5x5 convolutions (32 and 64 channels, padding 2), each with 2x2 max pooling and ReLU, one linear layer."""
    channels, height, width = _picture("cnn", shape, smallest=4)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), classes),
    )


def cifar_cnn(shape: Shape, classes: int) -> nn.Module:
    """3x3 convolutions without padding, each with ReLU, 2x2 pooling, batch norm; on 32x32: 2304-512-classes."""
    return _cifar_cnn("cifar-cnn", shape, classes, nn.BatchNorm2d)


def cifar_cnn_private(shape: Shape, classes: int) -> nn.Module:
    """The same with group norm (8 groups), under which samples do not influence each other: privacy asks for that."""
    return _cifar_cnn("cifar-cnn-private", shape, classes, partial(nn.GroupNorm, 8))


def _cifar_cnn(
    name: str, shape: Shape, classes: int, norm: Callable[[int], nn.Module]
) -> nn.Module:
    channels, height, width = _picture(name, shape, smallest=10)
    flat = 64 * _twice_convolved(height) * _twice_convolved(width)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        norm(32),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        norm(64),
        nn.Flatten(),
        nn.Linear(flat, 512),
        nn.ReLU(),
        nn.Linear(512, classes),
    )


_HERE = "bara.simulator.models"
MODELS: Registry[nn.Module] = Registry(
    "model",
    {
        "linear": f"{_HERE}:linear",
        "mlp": f"{_HERE}:mlp",
        "cnn": f"{_HERE}:cnn",
        "cifar-cnn": f"{_HERE}:cifar_cnn",
        "cifar-cnn-private": f"{_HERE}:cifar_cnn_private",
    },
)
"""The paper's models by name; others by import path or by the entry-point group `bara.models`."""


def build(name: str, shape: Shape, classes: int, seed: int) -> nn.Module:
    """The model of that name, initialised from the seed.

    Args:
        name: one of `MODELS`, or `package.module:Name`, called as `Name(shape, classes)` to get a
            `torch.nn.Module`. What Python handed over may be such a module itself; a copy is taken.
        shape: one sample's shape as torch sees it, (channels, height, width) for pictures.
        classes: how many scores a sample gets.
        seed: of the initial weights.
    """
    factory = MODELS.factory(name)
    if isinstance(factory, nn.Module):
        factory = partial(_copied, factory)
    if not callable(factory):
        raise ConfigError(
            f"model {name!r} must be a class or function that builds a torch.nn.Module, got {factory!r}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = _built(name, factory, shape, classes)
        _demand_scores(name, module, shape, classes)
    return module


def _copied(module: nn.Module, _shape: Shape, _classes: int) -> nn.Module:
    """A model that is there already, with its weights, whatever the seed."""
    return copy.deepcopy(module)


def _built(name: str, factory: Factory, shape: Shape, classes: int) -> nn.Module:
    try:
        module = factory(shape, classes)
    except (TypeError, RuntimeError) as error:
        raise ConfigError(
            f"model {name!r} cannot be built as Name({shape}, {classes}): {error}"
        ) from error
    if not isinstance(module, nn.Module):
        raise ConfigError(
            f"model {name!r} must build a torch.nn.Module, got a {type(module).__name__}"
        )
    return module.float()


def _demand_scores(name: str, module: nn.Module, shape: Shape, classes: int) -> None:
    got = _shape_of_scores(name, module.eval(), torch.zeros(2, *shape))
    if got != (2, classes):
        raise ConfigError(
            f"model {name!r} turns 2 samples of shape {shape} into {got}; {classes} classes need (2, {classes})"
        )


def _shape_of_scores(name: str, module: nn.Module, samples: Tensor) -> Shape:
    try:
        with torch.no_grad():
            return tuple(module(samples).shape)
    except (TypeError, RuntimeError, ValueError, AttributeError) as error:
        shape = tuple(samples.shape[1:])
        raise ConfigError(
            f"model {name!r} does not take samples of shape {shape}: {error}"
        ) from error


def _picture(name: str, shape: Shape, smallest: int) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise ConfigError(
            f"model {name!r} needs pictures (channels, height, width) of at least {smallest}x{smallest}, got {shape}"
        )
    return shape[0], shape[1], shape[2]


def _twice_convolved(side: int) -> int:
    return ((side - 2) // 2 - 2) // 2
