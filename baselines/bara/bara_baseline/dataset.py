"""Digits, two shards of labels per client.

One half of the held-out samples is for decisions, the other half is reported.
"""

from functools import cache

import numpy as np

from bara.datasets import held_out, load, partition


@cache
def client_data(number, clients, scheme, seed):
    """What one client trains on."""
    data = load("digits")
    part = partition(scheme, data.y_train, clients, seed)[number]
    return _features(data.x_train[part]), data.y_train[part]


@cache
def server_data(seed):
    """What decisions are made on, and what is reported."""
    held = held_out(load("digits"), "halves", seed)
    return {
        "": (_features(held.x_validation), held.y_validation),
        "test-": (_features(held.x_test), held.y_test),
    }


def _features(pictures):
    flat = pictures.reshape(len(pictures), -1).astype(np.float32)
    return flat / 255 if pictures.dtype == np.uint8 else flat
