import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.datasets import dirichlet, iid, parse, partition, quantity, shards
from bara.datasets._schemes import KINDS, Scheme
from bara.errors import ConfigError, UnknownNameError

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
    [("dirchlet(0.3)", "dirichlet"), ("shard(2)", "shards"), ("IID", "iid"), ("quantities", "quantity")],
)
def test_an_unknown_word_gets_the_nearest(text, meant):
    with pytest.raises(UnknownNameError, match=f"did you mean '{meant}'"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("iid(3)", "takes no number"),
        ("shards(0)", "a whole number of shards a client, 1 or more"),
        ("shards(1.5)", "a whole number"),
        ("shards(two)", "a whole number"),
        ("shards(inf)", "a whole number"),
        ("dirichlet", "alpha, a number above 0"),
        ("dirichlet()", "alpha"),
        ("dirichlet(0)", "alpha"),
        ("dirichlet(-1)", "alpha"),
        ("dirichlet(nan)", "alpha"),
        ("quantity(-1)", "the skew, a number of 0 or more"),
        ("shards(2", 'as in "shards\\(2\\)"'),
        ("shards(2)(3)", "as in"),
        ("", "as in"),
    ],
)
def test_a_wrong_number_says_what_goes_there(text, rule):
    with pytest.raises(ConfigError, match=rule):
        parse(text)


@given(st.sampled_from(sorted(KINDS)), st.floats(1e-3, 1e3), st.integers(1, 50))
def test_property_a_scheme_reads_back_as_it_is_written(name, number, whole):
    numbers = {"iid": None, "shards": whole}
    scheme = Scheme(name, numbers.get(name, number))
    assert parse(str(scheme)) == scheme
