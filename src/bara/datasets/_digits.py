"""The embedded default: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels; needs no file."""

from pathlib import Path

import numpy as np

from bara.datasets._record import Arrays, Source
from bara.datasets._splits import stratified_order
from bara.errors import MissingExtraError

TRAIN_SAMPLES = 1_400
"""How many digits are for training; 397 are held out.

1,400 makes equal shards for 10, 20, 25, 35, 50 and 70 clients.
"""

SPLIT_SEED = 2023


def embedded_digits() -> Source:
    """Return the digits inside scikit-learn, with our own split since none is published.

    The split into training and test samples is the same everywhere and for ever: it is drawn from
    raw PCG64 bits, which numpy guarantees not to change, and each class is held out in proportion.
    Pixels, published as 0 .. 16, are stretched to 0 .. 255.
    """
    return Source("embedded", Path("scikit-learn"), _read)


def _read() -> Arrays:
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415  (heavy, and an extra)
    except ImportError as error:
        raise MissingExtraError(
            "the digits need scikit-learn: pip install 'bara-fl[sim]'"
        ) from error
    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    shuffled = np.argsort(np.random.PCG64(SPLIT_SEED).random_raw(len(labels)), kind="stable")
    order = stratified_order(labels, shuffled)
    train = np.sort(order[:TRAIN_SAMPLES])
    test = np.sort(order[TRAIN_SAMPLES:])
    return Arrays(images[train], labels[train], images[test], labels[test])
