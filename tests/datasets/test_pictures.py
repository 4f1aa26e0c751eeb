import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bara.datasets import counts, iid, picture, shards


@given(st.lists(st.integers(0, 6), min_size=4, max_size=60), st.integers(1, 4))
def test_property_counts_add_up_to_what_each_holds_and_what_there_is(labels, clients):
    labels = np.array(labels)
    parts = iid(labels, clients)
    table = counts(labels, parts, classes=7)
    assert table.sum(axis=1).tolist() == [len(part) for part in parts]
    assert table.sum(axis=0).tolist() == np.bincount(labels, minlength=7).tolist()


def test_a_client_without_samples_is_a_row_of_noughts():
    assert counts(np.array([0, 1]), [np.array([0, 1]), np.array([], int)]).tolist() == [
        [1, 1],
        [0, 0],
    ]


def test_darker_means_more_and_a_single_sample_shows():
    labels = np.array([0] * 100 + [1])
    lines = picture(labels, [np.arange(100), np.array([100])]).splitlines()
    assert lines[0].split() == ["client", "0", "1", "samples"]
    assert lines[1].split() == ["0", "██", "100"]
    assert lines[2].split() == ["1", "░░", "1"]


def test_every_row_is_as_wide_as_the_header():
    for classes in (2, 10, 20, 21, 100):
        labels = np.repeat(np.arange(classes), 30)
        for style in ("shades", "counts"):
            widths = {
                len(line) for line in picture(labels, shards(labels, 12), style=style).splitlines()
            }
            assert len(widths) == 1


def test_columns_stand_under_their_labels():
    labels = np.repeat(np.arange(25), 4)
    header, *rows = picture(labels, [np.flatnonzero(labels == 20)]).splitlines()
    assert header.index("20") == rows[0].index("█")


def test_a_large_federation_is_cut_and_the_rest_added_up():
    lines = picture(np.zeros(1000, int), iid(np.zeros(1000), 100), rows=10).splitlines()
    assert len(lines) == 12
    assert lines[-1].strip() == "... and 90 more clients with 900 samples"
