import contextlib
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.datasets._formats.pickles import read_pickle
from bara.errors import DatasetError

PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 6)


def test_a_python_2_batch_reads_as_numpy_itself_reads_it(fabricate):
    raw = fabricate.python2_pickle({b"data": PIXELS, b"labels": [1, 2], b"batch_label": b"one"})
    with warnings.catch_warnings(action="ignore"):
        theirs = pickle.loads(raw, encoding="bytes")  # noqa: S301
    ours = read_pickle(raw, "file")
    np.testing.assert_array_equal(ours.pop(b"data"), theirs.pop(b"data"))
    assert ours == theirs


@pytest.mark.parametrize("array", [PIXELS, np.asfortranarray(PIXELS)])
def test_a_batch_rewritten_by_python_3_reads_the_same(fabricate, array):
    ours = read_pickle(fabricate.pickle3({"data": array, "labels": [3]}), "file")
    np.testing.assert_array_equal(ours[b"data"], PIXELS)
    assert ours[b"labels"] == [3]


class Hostile:
    def __init__(self, function, *arguments):
        self.asks = function, arguments

    def __reduce__(self):
        return self.asks


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_runs_nothing(tmp_path, protocol):
    marker = tmp_path / "marker"
    for asked in (Hostile(os.system, f"touch {marker}"), Hostile(eval, f"open({str(marker)!r}, 'w')")):
        with pytest.raises(DatasetError, match="file is not a batch of CIFAR that can be read safely: it asks for"):
            read_pickle(pickle.dumps({b"data": asked}, protocol=protocol), "file")
    assert not marker.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"cnumpy\nload\n(S'/etc/hostname'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n(tR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
        b"c__main__\n__dict__\n.",
        b"Pan id\n.",
    ],
)
def test_whatever_else_a_pickle_asks_for_is_refused(raw):
    with pytest.raises(DatasetError, match=r"it asks for|it refers to"):
        read_pickle(raw, "file")


@pytest.mark.parametrize("array", [np.array([len], object), np.arange(4.0), np.array(["a"])])
def test_only_arrays_of_bytes_are_admitted(fabricate, array):
    with pytest.raises(DatasetError, match=r"only unsigned bytes are admitted|does not hold|asks for"):
        read_pickle(fabricate.pickle3({b"data": array}), "file")


@pytest.mark.parametrize("content", [[1], b"abc", None])
def test_a_pickle_that_is_no_dictionary_is_refused(content):
    with pytest.raises(DatasetError, match="not a dictionary"):
        read_pickle(pickle.dumps(content), "file")


@given(st.data())
def test_property_a_damaged_pickle_never_fails_otherwise(fabricate, data):
    raw = bytearray(fabricate.python2_pickle({b"data": PIXELS, b"labels": [1, 2]}))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for damaged in (raw, raw[:cut]):
        with contextlib.suppress(DatasetError):  # and nothing else
            assert isinstance(read_pickle(bytes(damaged), "file"), dict)
