import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.datasets import flip_labels
from bara.errors import ConfigError, DatasetError


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=50),
    st.floats(0, 1),
    st.integers(0, 99),
    st.sets(st.integers(0, 49)),
)
def test_property_just_the_fraction_is_wrong_and_only_at_the_indices(labels, fraction, seed, chosen):
    labels = np.array(labels)
    indices = np.array(sorted(k for k in chosen if k < len(labels)), int)
    before = labels.copy()
    noisy = flip_labels(labels, indices, fraction, 5, seed)
    assert (labels == before).all()
    changed = np.flatnonzero(noisy != labels)
    assert len(changed) == round(fraction * len(indices))
    assert set(changed) <= set(indices)
    assert noisy.min() >= 0
    assert noisy.max() < 5


def test_every_other_class_is_as_likely():
    noisy = flip_labels(np.full(9000, 3), np.arange(9000), 1.0, 4)
    share = np.bincount(noisy, minlength=4) / 9000
    np.testing.assert_allclose(share, [1 / 3, 1 / 3, 1 / 3, 0], atol=0.02)


def test_the_same_seed_flips_the_same():
    labels = np.arange(100) % 10
    once, again, other = (flip_labels(labels, np.arange(100), 0.3, 10, seed) for seed in (5, 5, 6))
    assert (once == again).all()
    assert (once != other).any()


@pytest.mark.parametrize(
    ("indices", "fraction", "classes", "error", "message"),
    [
        ([0], -0.1, 2, ConfigError, "from 0 to 1"),
        ([0], 1.1, 2, ConfigError, "from 0 to 1"),
        ([0], float("nan"), 2, ConfigError, "from 0 to 1"),
        ([0], 0.5, 1, ConfigError, "at least 2"),
        ([0, 9], 0.5, 2, DatasetError, r"at 0 \.\. 9; there are 3 labels"),
        ([-1], 0.5, 2, DatasetError, r"at -1"),
        ([1, 1], 0.5, 2, DatasetError, "twice"),
    ],
)
def test_what_cannot_be_flipped_says_why(indices, fraction, classes, error, message):
    with pytest.raises(error, match=message):
        flip_labels(np.array([0, 1, 0]), np.array(indices), fraction, classes)
