import re

import pytest
from refusals import refused

from bara.datasets import fetch, names
from bara.datasets._catalogue import CATALOGUE
from bara.errors import UnknownNameError


def test_the_embedded_default_comes_first():
    assert names() == (
        "digits",
        "mnist",
        "fashion-mnist",
        "cifar10",
        "cifar100",
        "heart-disease",
        "rand-hie",
    )
    assert [name for name in names() if CATALOGUE[name].embedded] == ["digits", "rand-hie"]


@pytest.mark.parametrize("name", names())
def test_every_checksum_is_a_sha256(name):
    known = CATALOGUE[name]
    digests = [digest for version in known.versions for digest in version.sha256.values()]
    digests += [remote.sha256 for remote in known.remotes]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    if not known.table:
        parts = {"x_train", "y_train", "x_test", "y_test"}
        assert all(set(version.sha256) == parts for version in known.versions)
    assert known.shape in ({()} if known.table else {(8, 8), (28, 28), (32, 32, 3)})
    assert bool(known.remotes) == bool(known.mirrors) == (not known.embedded)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("minst", "mnist"), ("CIFAR-10", "cifar10"), ("fashion_mnist", "fashion-mnist")],
)
def test_an_unknown_name_gets_the_nearest(typed, meant):
    with refused(UnknownNameError, repr(typed), repr(meant)):
        fetch(typed)
