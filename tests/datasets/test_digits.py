import sys

import numpy as np
from refusals import refused
from sklearn.datasets import load_digits

from bara.datasets import load
from bara.errors import MissingExtraError


def test_it_is_all_of_scikit_learns_digits_stretched_to_bytes():
    data = load("digits")
    ours = np.concatenate([data.x_train, data.x_test]).reshape(-1, 64)
    theirs = load_digits().images.reshape(-1, 64)
    assert sorted(map(tuple, np.rint(ours * (16 / 255)).astype(int))) == sorted(
        map(tuple, theirs.astype(int))
    )
    assert ours.max() == 255


def test_images_keep_their_labels():
    bunch = load_digits()
    label_of = {
        tuple(image.ravel().astype(int)): label
        for image, label in zip(bunch.images, bunch.target, strict=True)
    }
    data = load("digits")
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        pixels = np.rint(x * (16 / 255)).astype(int).reshape(len(x), -1)
        assert [label_of[tuple(image)] for image in pixels] == y.tolist()


def test_every_class_is_held_out_in_proportion():
    data = load("digits")
    share = np.bincount(data.y_test) / (np.bincount(data.y_train) + np.bincount(data.y_test))
    assert np.abs(share - 397 / 1797).max() < 0.005


def test_it_is_verified_and_always_the_same():
    assert load("digits").version == "complete"
    np.testing.assert_array_equal(load("digits").x_test, load("digits").x_test)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with refused(MissingExtraError, "scikit-learn", "bara-fl[sim]"):
        load("digits")
