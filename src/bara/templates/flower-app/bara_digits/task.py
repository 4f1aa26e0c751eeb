"""Data and model. torch is imported where it is used, so that answering a request for a bid does not load it."""

import numpy as np

from bara.datasets import load, partition

FEATURES, CLASSES = 64, 10


def part_of(number: int, parts: int):
    """The training samples that one silo holds: an even part of all, drawn with a fixed seed."""
    data = load("digits")
    mine = partition("iid", data.y_train, parts, seed=0)[number]
    return _features(data.x_train[mine]), data.y_train[mine]


def in_file(path: str):
    """The training samples in a silo's own file, an `.npz` with `x` (as many rows as samples) and `y`."""
    with np.load(path) as held:
        return _features(held["x"]), held["y"].astype(np.int64)


def held_out():
    """What the server evaluates on."""
    data = load("digits")
    return _features(data.x_test), data.y_test


def make_model():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
    )


def train(model, x, y, learning_rate: float, epochs: int) -> float:
    """Minibatch SGD; returns the last batch's loss."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(32):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
    return loss.item()


def test(model, x, y) -> tuple[float, float]:
    """Accuracy and mean loss."""
    import torch

    with torch.no_grad():
        scores = model(torch.from_numpy(x))
    y = torch.from_numpy(y)
    loss = torch.nn.functional.cross_entropy(scores, y).item()
    return (scores.argmax(1) == y).float().mean().item(), loss


def _features(pictures: np.ndarray) -> np.ndarray:
    flat = pictures.reshape(len(pictures), -1).astype(np.float32)
    return flat / 255 if pictures.dtype == np.uint8 else flat
