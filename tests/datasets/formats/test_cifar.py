import contextlib
import io
import os
import pickle
import tarfile
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.datasets._formats import cifar
from bara.datasets._formats.cifar import find, read_pickle
from bara.errors import DatasetError


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
@pytest.mark.parametrize("inside", ["", "own"])
@pytest.mark.parametrize("form", ["cifar_folder", "cifar_archive"])
def test_both_forms_of_both_datasets_are_found_and_read(
    fabricate, data_path, name, classes, inside, form
):
    arrays = fabricate.arrays((32, 32, 3), classes, train=15, test=5)
    path = getattr(fabricate, form)(data_path / (name if inside else ""), name, arrays)
    (source,) = find(data_path, name)
    assert source.path == path
    for read, written in zip(source.read(), arrays, strict=True):
        np.testing.assert_array_equal(read, written)


def test_no_other_dataset_is_looked_for(fabricate, data_path):
    fabricate.cifar_folder(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
    assert not list(find(data_path, "cifar100"))
    assert not list(find(data_path, "mnist"))


def test_a_lacking_batch_is_named(fabricate, data_path):
    folder = fabricate.cifar_folder(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1)
    )
    (folder / "data_batch_3").unlink()
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match=r"cifar-10-batches-py lacks data_batch_3"):
        source.read()


@pytest.mark.parametrize("kept", [0, 30, 0.5, 0.99])
def test_a_truncated_archive_is_named(fabricate, data_path, kept):
    path = fabricate.cifar_archive(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=10, test=1)
    )
    raw = path.read_bytes()
    path.write_bytes(raw[: int(kept * len(raw)) if kept < 1 else kept])
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match=r"cifar-10-python\.tar\.gz (cannot be read|lacks)"):
        source.read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({b"labels": [1]}, "'data' must be an array of rows of 3072 bytes"),
        ({b"labels": [1], b"data": np.zeros((1, 100), np.uint8)}, "'data' must be"),
        ({b"fine_labels": [1], b"data": np.zeros((1, 3072), np.uint8)}, "'labels' must be a list"),
    ],
)
def test_a_batch_without_images_or_labels_is_named(fabricate, data_path, content, message):
    folder = fabricate.cifar_folder(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1)
    )
    (folder / "data_batch_2").write_bytes(fabricate.python2_pickle(content))
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match=f"data_batch_2: {message}"):
        source.read()


def test_an_archive_writes_nothing_wherever_its_members_point(data_path, tmp_path):
    path = data_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("../escaped")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match="lacks data_batch_1"):
        source.read()
    assert not (tmp_path / "escaped").exists()


def test_a_batch_that_is_too_large_is_not_unpacked(fabricate, data_path, monkeypatch):
    fabricate.cifar_archive(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
    monkeypatch.setattr(cifar, "LARGEST_BATCH", 100)
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match="lacks data_batch_1"):
        source.read()


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
    for asked in (
        Hostile(os.system, f"touch {marker}"),
        Hostile(eval, f"open({str(marker)!r}, 'w')"),
    ):
        with pytest.raises(
            DatasetError, match="file is not a batch of CIFAR that can be read safely: it asks for"
        ):
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
    with pytest.raises(
        DatasetError, match=r"only unsigned bytes are admitted|does not hold|asks for"
    ):
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
