import io
import tarfile

import numpy as np
import pytest

from bara.datasets._formats import cifar
from bara.datasets._formats.cifar import find
from bara.errors import DatasetError


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
@pytest.mark.parametrize("inside", ["", "own"])
@pytest.mark.parametrize("form", ["cifar_folder", "cifar_archive"])
def test_both_forms_of_both_datasets_are_found_and_read(fabricate, data_path, name, classes, inside, form):
    arrays = fabricate.arrays((32, 32, 3), classes, train=15, test=5)
    path = getattr(fabricate, form)(data_path / (name if inside else ""), name, arrays)
    (source,) = find(data_path, name)
    assert source.path == path
    assert set(source.files.values()) == {path}
    for read, written in zip(source.read(), arrays, strict=True):
        np.testing.assert_array_equal(read, written)


def test_no_other_dataset_is_looked_for(fabricate, data_path):
    fabricate.cifar_folder(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
    assert not list(find(data_path, "cifar100"))
    assert not list(find(data_path, "mnist"))


def test_a_lacking_batch_is_named(fabricate, data_path):
    folder = fabricate.cifar_folder(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
    (folder / "data_batch_3").unlink()
    (source,) = find(data_path, "cifar10")
    with pytest.raises(DatasetError, match=r"cifar-10-batches-py lacks data_batch_3"):
        source.read()


@pytest.mark.parametrize("kept", [0, 30, 0.5, 0.99])
def test_a_truncated_archive_is_named(fabricate, data_path, kept):
    path = fabricate.cifar_archive(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=10, test=1))
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
    folder = fabricate.cifar_folder(data_path, "cifar10", fabricate.arrays((32, 32, 3), train=5, test=1))
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
