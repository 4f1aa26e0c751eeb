"""The models: the paper's by name, a user's own by import path, each initialised from a seed.

A model is a `torch.nn.Module` that maps a batch of samples to one score per class. `shape` is one
sample's shape as torch sees it: (channels, height, width) for pictures, (features,) for tables.
Building a model leaves torch's global generator as it was.
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
    """Build a softmax regression: one linear layer, small enough to train with privacy noise."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(torch.Size(shape).numel()), classes))


def mlp(shape: Shape, classes: int) -> nn.Module:
    """Build two hidden layers of 200 with ReLU (784-200-200-10 on MNIST), for any sample shape."""
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
    """Build two 5x5 convolutions with pooling and ReLU (32 and 64 channels), and a linear layer."""
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
    """Build two 3x3 convolutions with ReLU, pooling and batch norm, and two linear layers.

    The convolutions have no padding; on 32x32 pictures, the linear layers are 2304-512-classes.
    """
    return _cifar_cnn("cifar-cnn", shape, classes, nn.BatchNorm2d)


def cifar_cnn_private(shape: Shape, classes: int) -> nn.Module:
    """Build `cifar_cnn` with group norm (8 groups), for training with privacy.

    Privacy demands that samples do not influence each other, which they do under batch norm.
    """
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
    """Build the model of this name and initialise it from the seed.

    Args:
        name: One of `MODELS`, or `package.module:Name`, called as `Name(shape, classes)` to get a
            `torch.nn.Module`. A name may also stand for a module that was given as an object; that
            module is copied, with its weights.
        shape: One sample's shape as torch sees it, (channels, height, width) for pictures.
        classes: The number of scores for each sample.
        seed: The seed of the initial weights.
    """
    factory = MODELS.factory(name)
    if isinstance(factory, nn.Module):
        factory = partial(_copied, factory)
    if not callable(factory):
        raise ConfigError(
            f"model {name!r} must be a class or function that builds a torch.nn.Module, "
            f"got {factory!r}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = _built(name, factory, shape, classes)
        _demand_scores(name, module, shape, classes)
    return module


def _copied(module: nn.Module, _shape: Shape, _classes: int) -> nn.Module:
    """Copy a module with its weights, whatever the seed."""
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
            f"model {name!r} turns 2 samples of shape {shape} into {got}; "
            f"{classes} classes need (2, {classes})"
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
            f"model {name!r} needs pictures (channels, height, width) of at least "
            f"{smallest}x{smallest}, got {shape}"
        )
    return shape[0], shape[1], shape[2]


def _twice_convolved(side: int) -> int:
    """Return the side of a picture after two 3x3 convolutions, each with 2x2 pooling."""
    return ((side - 2) // 2 - 2) // 2
