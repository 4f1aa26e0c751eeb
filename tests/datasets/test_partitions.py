import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara.datasets import (
    Scheme,
    counts,
    dirichlet,
    flip_labels,
    iid,
    parse,
    partition,
    quantity,
    shards,
)
from bara.datasets._partitions import KINDS
from bara.errors import ConfigError, DatasetError, UnfitDatasetError, UnknownNameError

WAYS = {
    "iid": lambda labels, clients, seed: iid(labels, clients, seed=seed),
    "shards(1)": lambda labels, clients, seed: shards(labels, clients, 1, seed=seed),
    "dirichlet(0.01)": lambda labels, clients, seed: dirichlet(labels, clients, 0.01, seed=seed),
    "dirichlet(10)": lambda labels, clients, seed: dirichlet(labels, clients, 10, seed=seed),
    "quantity(0)": lambda labels, clients, seed: quantity(labels, clients, 0, seed=seed),
    "quantity(2)": lambda labels, clients, seed: quantity(labels, clients, 2.0, seed=seed),
}


@st.composite
def federations(draw, least=1):
    """Labels, and a number of clients that each can get at least so many samples."""
    labels = draw(st.lists(st.integers(0, 9), min_size=least, max_size=120))
    return np.array(labels, np.int64), draw(st.integers(1, len(labels) // least))


@pytest.mark.parametrize("way", WAYS)
@given(federation=federations(), seed=st.integers(0, 2**40))
def test_property_everybody_holds_something_and_every_sample_is_held_once(way, federation, seed):
    labels, clients = federation
    parts = WAYS[way](labels, clients, seed)
    assert len(parts) == clients
    assert min(map(len, parts)) >= 1
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert all((np.diff(part) > 0).all() for part in parts)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_seed_gives_the_same_partition_and_another_seed_another(way):
    labels = np.random.default_rng(0).integers(0, 10, 500)
    once, again, other = (WAYS[way](labels, 20, seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, once, again))
    assert not all(map(np.array_equal, once, other))


@pytest.mark.parametrize("way", WAYS)
def test_more_clients_than_samples_is_an_error_that_names_both(way):
    with refused(UnfitDatasetError, "clients", "6", "samples", "5"):
        WAYS[way](np.zeros(5, np.int64), 6, 0)


@pytest.mark.parametrize("clients", [0, -1, 2.0, True])
@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_clients_must_be_a_whole_number(way, clients):
    with refused(ConfigError, "clients", "1", repr(clients)):
        WAYS[way](np.zeros(5, np.int64), clients, 0)


def test_labels_must_be_a_list():
    with refused(DatasetError, "labels", "(5, 2)"):
        iid(np.zeros((5, 2), np.int64), 2)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_the_seed_must_be_a_whole_number(seed):
    with refused(ConfigError, "seed", repr(seed)):
        iid(np.zeros(5, np.int64), 2, seed=seed)


def test_shards_are_equal_runs_of_the_sorted_labels_as_in_the_paper():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 60))
    table = counts(labels, shards(labels, 20, 2))
    assert (table.sum(axis=1) == 30).all()
    assert ((table > 0).sum(axis=1) <= 2).all()
    assert set(table[table > 0]) == {15, 30}


@given(federation=federations(least=3), seed=st.integers(0, 99))
def test_property_shards_differ_in_size_by_one_at_most_each(federation, seed):
    labels, clients = federation
    sizes = [len(part) for part in shards(labels, clients, 3, seed=seed)]
    assert max(sizes) - min(sizes) <= 3
    assert sum(sizes) == len(labels)


@given(federation=federations(least=2), seed=st.integers(0, 99))
def test_property_a_client_of_shards_sees_a_contiguous_run_of_labels_a_shard(federation, seed):
    labels, clients = federation
    order = np.argsort(labels, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for part in shards(labels, clients, 2, seed=seed):
        assert (np.diff(np.sort(place[part])) > 1).sum() <= 1


def test_fewer_samples_than_shards_is_an_error_that_names_both():
    with refused(UnfitDatasetError, "4 clients", "2 shards", "8 samples", "7"):
        shards(np.zeros(7, np.int64), 4, 2)


@given(federation=federations(), seed=st.integers(0, 99))
def test_property_iid_sizes_differ_by_one_at_most(federation, seed):
    sizes = [len(part) for part in iid(*federation, seed=seed)]
    assert max(sizes) - min(sizes) <= 1


def test_a_small_alpha_concentrates_labels_and_a_large_one_spreads_them():
    labels = np.repeat(np.arange(10), 200)

    def largest_share(alpha):
        table = counts(labels, dirichlet(labels, 10, alpha))
        return (table.max(axis=0) / table.sum(axis=0)).mean()

    assert largest_share(0.05) > 0.6 > largest_share(1.0) > 0.15 > largest_share(1000)


@pytest.mark.parametrize("alpha", [1e-9, 1e-300, 1e300])
def test_an_extreme_alpha_still_gives_everybody_something(alpha):
    parts = dirichlet(np.repeat(np.arange(3), 20), 25, alpha)
    assert min(map(len, parts)) >= 1
    assert sum(map(len, parts)) == 60


@given(federation=federations(), skew=st.floats(0, 1e6), seed=st.integers(0, 99))
def test_property_quantity_follows_the_power_law_to_within_one_sample(federation, skew, seed):
    labels, clients = federation
    sizes = np.sort([len(part) for part in quantity(labels, clients, skew, seed=seed)])[::-1]
    weights = np.arange(1.0, clients + 1) ** -skew
    wish = 1 + (len(labels) - clients) * weights / weights.sum()
    assert np.abs(sizes - wish).max() < 1 + 1e-9


@pytest.mark.parametrize("wrong", [0, -1, np.nan, np.inf])
def test_alpha_must_be_above_0(wrong):
    with refused(ConfigError, "dirichlet", "alpha", "0", wrong):
        dirichlet(np.zeros(5, np.int64), 2, wrong)


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_skew_must_not_be_below_0(wrong):
    with refused(ConfigError, "quantity", "skew", "0", wrong):
        quantity(np.zeros(5, np.int64), 2, wrong)


LABELS = np.random.default_rng(0).integers(0, 5, 200)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("iid", iid(LABELS, 7, seed=3)),
        ("iid()", iid(LABELS, 7, seed=3)),
        ("shards", shards(LABELS, 7, 2, seed=3)),
        (" shards( 3 ) ", shards(LABELS, 7, 3, seed=3)),
        ("dirichlet(0.3)", dirichlet(LABELS, 7, 0.3, seed=3)),
        ("quantity", quantity(LABELS, 7, 1.0, seed=3)),
        ("quantity(2)", quantity(LABELS, 7, 2.0, seed=3)),
    ],
)
def test_a_word_means_its_function(text, parts):
    assert all(map(np.array_equal, partition(text, LABELS, 7, seed=3), parts))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("dirchlet(0.3)", "dirichlet"),
        ("shard(2)", "shards"),
        ("IID", "iid"),
        ("quantities", "quantity"),
    ],
)
def test_an_unknown_word_gets_the_nearest(text, meant):
    with refused(UnknownNameError, repr(text), repr(meant)):
        parse(text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("iid(3)", ("'iid'",)),
        ("shards(0)", ("whole number", "per client", "1")),
        ("shards(1.5)", ("whole number",)),
        ("shards(two)", ("whole number",)),
        ("shards(inf)", ("whole number",)),
        ("dirichlet", ("alpha", "above 0")),
        ("dirichlet()", ("alpha",)),
        ("dirichlet(0)", ("alpha",)),
        ("dirichlet(-1)", ("alpha",)),
        ("dirichlet(nan)", ("alpha",)),
        ("quantity(-1)", ("skew", "0")),
        ("shards(2", ("whole number",)),
        ("shards(2)(3)", ("whole number",)),
        ("shards(2, 3)", ("whole number",)),
        ("iid(", ("'iid'",)),
        ("", ("dirichlet", "iid", "natural", "quantity", "shards")),
    ],
)
def test_a_wrong_number_says_what_goes_there(text, facts):
    with refused(ConfigError, "partition", repr(text), *facts):
        parse(text)


@given(st.sampled_from(sorted(KINDS)), st.floats(1e-3, 1e3), st.integers(1, 50))
def test_property_a_scheme_reads_back_as_it_is_written(name, number, whole):
    numbers = {"iid": None, "shards": whole, "natural": whole if whole % 2 else None}
    scheme = Scheme(name, numbers.get(name, number))
    assert parse(str(scheme)) == scheme


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=50),
    st.floats(0, 1),
    st.integers(0, 99),
    st.sets(st.integers(0, 49)),
)
def test_property_just_the_fraction_is_wrong_and_only_at_the_indices(
    labels, fraction, seed, chosen
):
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
