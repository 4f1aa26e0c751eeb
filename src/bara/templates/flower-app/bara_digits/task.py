"""Data and model; torch is imported only where it is used, so that a bid does not load it."""

import numpy as np

from bara.datasets import load, partition

FEATURES = 64
CLASSES = 10


def share_of(silo: int, silos: int):
    """Return one silo's even share of the training samples, drawn with a fixed seed."""
    data = load("digits")
    mine = partition("iid", data.y_train, silos, seed=0)[silo]
    return _features(data.x_train[mine]), data.y_train[mine]


def in_file(path: str):
    """Return the training samples in a silo's own `.npz` file: `x`, one row per sample, and `y`."""
    with np.load(path) as arrays:
        return _features(arrays["x"]), arrays["y"].astype(np.int64)


def held_out():
    """Return the samples that the server evaluates on."""
    data = load("digits")
    return _features(data.x_test), data.y_test


def make_model():
    """Return the initial model, the same every time."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
    )


def train(model, x, y, learning_rate: float, epochs: int) -> float:
    """Train the model by minibatch SGD and return the last batch's loss."""
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
    """Return the model's accuracy and mean loss."""
    import torch

    with torch.no_grad():
        scores = model(torch.from_numpy(x))
    y = torch.from_numpy(y)
    accuracy = (scores.argmax(1) == y).float().mean().item()
    loss = torch.nn.functional.cross_entropy(scores, y).item()
    return accuracy, loss


def _features(pictures: np.ndarray) -> np.ndarray:
    flat = pictures.reshape(len(pictures), -1).astype(np.float32)
    return flat / 255 if pictures.dtype == np.uint8 else flat
