"""The workload of every contestant: clients with equally many random pictures, an epoch of SGD."""

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

BATCH, RATE, CLASSES = 50, 0.05, 10
SHAPES = {"mlp": (28, 28, 1), "cnn": (28, 28, 1), "cifar-cnn": (32, 32, 3)}


@dataclass(frozen=True)
class Workload:
    """From the environment, so that a peer's own worker processes see it too."""

    model: str
    clients: int
    samples: int

    @classmethod
    def here(cls):
        """The one the driver asked for."""
        model, clients, samples = os.environ["BARA_BENCH_WORKLOAD"].split(",")
        return cls(model, int(clients), int(samples))

    def pictures(self):
        """Random pictures, channels last, and labels."""
        random = np.random.default_rng(0)
        x = random.integers(
            0, 256, (self.clients * self.samples, *SHAPES[self.model]), dtype=np.uint8
        )
        return x, random.integers(0, CLASSES, self.clients * self.samples)

    def tensors(self):
        """Floating-point pictures in torch's order, as a user of a peer would prepare them once."""
        x, y = self.pictures()
        scaled = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous().float().div_(255)
        return scaled.contiguous(memory_format=memory_format()), torch.from_numpy(y)


def training(algorithm):
    """How bara's clients train, without a configuration.

    The peers' environment has no pydantic, which a configuration needs.
    """
    from bara.simulator import Training  # noqa: PLC0415 - the peers do without

    nothing = {"momentum": 0.0, "weight_decay": 0.0, "proximal": 0.0, "privacy": None}
    return Training(
        algorithm=algorithm, learning_rate=RATE, local_epochs=1, batch_size=BATCH, **nothing
    )


def memory_format():
    return (
        torch.channels_last
        if os.environ.get("BARA_BENCH_CHANNELS_LAST")
        else torch.contiguous_format
    )


def network(model):
    """The same layers as bara's, written down independently of it."""
    layers = {
        "mlp": lambda: [
            nn.Flatten(),
            nn.Linear(784, 200),
            nn.ReLU(),
            nn.Linear(200, 200),
            nn.ReLU(),
            nn.Linear(200, CLASSES),
        ],
        "cnn": lambda: [
            nn.Conv2d(1, 32, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, CLASSES),
        ],
        "cifar-cnn": lambda: [
            nn.Conv2d(3, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(32),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(64),
            nn.Flatten(),
            nn.Linear(2304, 512),
            nn.ReLU(),
            nn.Linear(512, CLASSES),
        ],
    }
    torch.manual_seed(0)
    return nn.Sequential(*layers[model]()).to(memory_format=memory_format())
