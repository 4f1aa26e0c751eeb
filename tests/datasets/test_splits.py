import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara.datasets import Dataset, held_out, subset
from bara.datasets._splits import stratified_order
from bara.errors import ConfigError, DatasetError, UnfitDatasetError, UnknownNameError


def numbered(labels, test=None):
    """A dataset of which every sample is its own number."""
    x_train = np.arange(len(labels), dtype=float).reshape(-1, 1)
    test = labels if test is None else test
    return Dataset(
        "mine", x_train, labels, np.arange(len(test), dtype=float).reshape(-1, 1), test, 10
    )


labelled = st.lists(st.integers(0, 9), min_size=2, max_size=200).map(np.array)


@given(labelled, st.data())
def test_property_a_subset_has_each_class_in_its_share_and_samples_keep_their_labels(labels, data):
    size = data.draw(st.integers(1, len(labels)))
    part = subset(numbered(labels), size, seed=data.draw(st.integers(0, 99)))
    kept = part.x_train[:, 0].astype(int)
    assert len(kept) == size
    assert (np.diff(kept) > 0).all()
    assert (labels[kept] == part.y_train).all()
    wish = np.bincount(labels, minlength=10) * size / len(labels)
    assert (
        np.abs(np.bincount(part.y_train, minlength=10) - wish).max() <= 5
    )  # one a class, and ties of all classes


def test_balanced_classes_stay_balanced_to_within_one_sample():
    part = subset(numbered(np.arange(1000) % 10), 123)
    sizes = np.bincount(part.y_train)
    assert sizes.max() - sizes.min() <= 1


def test_a_smaller_subset_is_part_of_a_larger_one():
    data = numbered(np.random.default_rng(0).integers(0, 10, 300))
    small, large = (set(subset(data, size, seed=4).x_train[:, 0]) for size in (50, 120))
    assert small < large


def test_the_seed_decides_and_no_size_means_all():
    data = numbered(np.arange(100) % 10)
    once, again, other = (subset(data, 50, seed).x_train for seed in (0, 0, 1))
    assert (once == again).all()
    assert (once != other).any()
    assert subset(data, None) is data


def test_more_than_there_are_is_an_error_that_names_both():
    with refused(UnfitDatasetError, "mine", "train_samples", "100", "101"):
        subset(numbered(np.arange(100) % 10), 101)


@pytest.mark.parametrize("size", [0, -5, 1.5, True])
def test_a_size_must_be_a_whole_number(size):
    with refused(ConfigError, "train_samples", "1", repr(size)):
        subset(numbered(np.arange(100) % 10), size)


@given(labelled, st.integers(0, 99))
def test_property_halves_are_disjoint_and_together_the_test_set(labels, seed):
    data = held_out(numbered(labels), seed=seed)
    validation, test = data.x_validation[:, 0].astype(int), data.x_test[:, 0].astype(int)
    assert sorted([*validation, *test]) == list(range(len(labels)))
    assert 0 <= len(test) - len(validation) <= 1
    assert (labels[validation] == data.y_validation).all()
    assert (labels[test] == data.y_test).all()
    assert not data.same


def test_both_halves_have_every_class_in_its_share():
    data = held_out(numbered(np.repeat(np.arange(10), [10, 20, 30, 40, 50, 10, 20, 30, 40, 50])))
    gap = np.bincount(data.y_validation) - np.bincount(data.y_test)
    assert np.abs(gap).max() <= 1


def test_the_same_set_for_both_is_named_so():
    data = numbered(np.arange(100) % 10)
    both = held_out(data, "same")
    assert both.same
    assert both.x_validation is both.x_test is data.x_test


def test_an_unknown_way_to_split_gets_the_nearest():
    with refused(UnknownNameError, "'halfs'", "'halves'"):
        held_out(numbered(np.arange(100) % 10), "halfs")


def test_one_sample_cannot_be_halved():
    data = numbered(np.arange(10), test=np.array([1]))
    with refused(DatasetError, "mine", "x_test", "at least 2"):
        held_out(data)


@given(labelled, st.randoms(use_true_random=False))
def test_property_an_order_is_a_permutation(labels, random):
    shuffled = list(range(len(labels)))
    random.shuffle(shuffled)
    assert sorted(stratified_order(labels, np.array(shuffled))) == sorted(shuffled)
