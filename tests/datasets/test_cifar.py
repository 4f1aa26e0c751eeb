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
from refusals import refused

from bara.datasets import _cifar as cifar
from bara.datasets import available, load, verify
from bara.datasets._cifar import read_pickle
from bara.errors import DatasetError


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
@pytest.mark.parametrize("inside", ["", "own"])
@pytest.mark.parametrize("form", ["cifar_folder", "cifar_archive"])
def test_both_forms_of_both_datasets_are_found_and_read(
    fabricate, data_path, name, classes, inside, form
):
    arrays = fabricate.arrays((32, 32, 3), classes, train=15, test=5)
    path = getattr(fabricate, form)(data_path / (name if inside else ""), name, arrays)
    assert verify(name, data_path).path == path
    assert fabricate.as_written(load(name, data_path, verify=False), arrays)


def test_no_other_dataset_is_looked_for(fabricate, data_path):
    fabricate.cifar_folder(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
    found = {line.name for line in available(data_path) if line.status == "found"}
    assert found == {"cifar10"}


def test_a_lacking_batch_is_named(fabricate, data_path):
    folder = fabricate.cifar_folder(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1)
    )
    (folder / "data_batch_3").unlink()
    with refused(DatasetError, folder, "data_batch_3") as caught:
        load("cifar10", data_path)
    assert str(caught.value).count("data_batch_") == 1


@pytest.mark.parametrize("kept", [0, 30, 0.5, 0.99])
def test_a_truncated_archive_is_named(fabricate, data_path, kept):
    path = fabricate.cifar_archive(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=10, test=1)
    )
    raw = path.read_bytes()
    path.write_bytes(raw[: int(kept * len(raw)) if kept < 1 else kept])
    with refused(DatasetError, path):
        load("cifar10", data_path, verify=False)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ({b"labels": [1]}, ("'data'", "3072")),
        ({b"labels": [1], b"data": np.zeros((1, 100), np.uint8)}, ("'data'", "3072")),
        ({b"fine_labels": [1], b"data": np.zeros((1, 3072), np.uint8)}, ("'labels'", "255")),
    ],
)
def test_a_batch_without_images_or_labels_is_named(fabricate, data_path, content, facts):
    folder = fabricate.cifar_folder(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1)
    )
    (folder / "data_batch_2").write_bytes(fabricate.python2_pickle(content))
    with refused(DatasetError, folder, "data_batch_2", *facts):
        load("cifar10", data_path)


def test_an_archive_writes_nothing_wherever_its_members_point(data_path, tmp_path):
    path = data_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("../escaped")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    with refused(DatasetError, path, "data_batch_1", "test_batch"):
        load("cifar10", data_path)
    assert not (tmp_path / "escaped").exists()


def test_a_batch_that_is_too_large_is_not_unpacked(fabricate, data_path, monkeypatch):
    path = fabricate.cifar_archive(
        data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1)
    )
    monkeypatch.setattr(cifar, "LARGEST_BATCH", 100)
    with refused(DatasetError, path, "data_batch_1", "test_batch"):
        load("cifar10", data_path)


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
    for function, argument in (
        (os.system, f"touch {marker}"),
        (eval, f"open({str(marker)!r}, 'w')"),
    ):
        raw = pickle.dumps({b"data": Hostile(function, argument)}, protocol=protocol)
        with refused(DatasetError, "file", f".{function.__name__}"):
            read_pickle(raw, "file")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("raw", "asked"),
    [
        (b"cnumpy\nload\n(S'/etc/hostname'\ntR.", "numpy.load"),
        (b"cnumpy.core.multiarray\nscalar\n(tR.", "numpy.core.multiarray.scalar"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.", "numpy.ndarray.dump"),
        (b"c__main__\n__dict__\n.", "__main__.__dict__"),
        (b"Pan id\n.", "outside the file"),
    ],
)
def test_whatever_else_a_pickle_asks_for_is_refused(raw, asked):
    with refused(DatasetError, "file", asked):
        read_pickle(raw, "file")


@pytest.mark.parametrize(
    ("array", "kind"),
    [(np.array([len], object), "'O8'"), (np.arange(4.0), "'f8'"), (np.array(["a"]), "'U1'")],
)
def test_only_arrays_of_bytes_are_admitted(fabricate, array, kind):
    with refused(DatasetError, "file", kind):
        read_pickle(fabricate.pickle3({b"data": array}), "file")


@pytest.mark.parametrize(
    ("content", "kind"), [([1], "list"), (b"abc", "bytes"), (None, "NoneType")]
)
def test_a_pickle_that_is_no_dictionary_is_refused(content, kind):
    with refused(DatasetError, "file", kind, "dictionary"):
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
