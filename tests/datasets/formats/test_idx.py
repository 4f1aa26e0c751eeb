import gzip

import numpy as np
import pytest

from bara.datasets._formats.idx import find, read_idx
from bara.errors import DatasetError


@pytest.mark.parametrize("inside", ["", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
def test_the_files_are_found_in_every_layout_and_read(fabricate, data_path, inside, zipped, dotted):
    arrays = fabricate.arrays((28, 28))
    fabricate.idx(data_path / inside, arrays, zipped=zipped, dotted=dotted)
    (source,) = find(data_path, "mnist")
    for read, written in zip(source.read(), arrays, strict=True):
        np.testing.assert_array_equal(read, written)


def test_three_of_four_files_are_not_a_dataset(fabricate, data_path):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    (data_path / "t10k-labels-idx1-ubyte.gz").unlink()
    assert not list(find(data_path, "mnist"))


def test_cifar_is_not_looked_for_among_them(fabricate, data_path):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    assert not list(find(data_path, "cifar10"))


def test_bare_files_of_one_dataset_are_not_taken_for_the_other(fabricate, data_path, publish):
    arrays = fabricate.arrays((28, 28))
    fabricate.idx(data_path, arrays)
    publish("mnist", arrays)
    assert list(find(data_path, "mnist"))
    assert not list(find(data_path, "fashion-mnist"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file of unsigned bytes: it starts with nothing"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "it starts with 00000d01"),
        (
            b"\x00\x00\x08\x01\x00\x00\x00\x05abc",
            r"holds 11 bytes; its header announces 13 for shape \(5,\)",
        ),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", r"holds 11 bytes; its header announces 10"),
        (b"\x00\x00\x08\x03\x00", "header announces"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(data_path, content, message):
    (data_path / "file").write_bytes(content)
    with pytest.raises(DatasetError, match=rf"file.*{message}"):
        read_idx(data_path / "file")


@pytest.mark.parametrize("cut", [5, 20])
def test_a_truncated_gzip_file_is_named(data_path, cut):
    whole = gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x05abcde")
    (data_path / "file.gz").write_bytes(whole[:cut])
    with pytest.raises(DatasetError, match=r"file\.gz cannot be read"):
        read_idx(data_path / "file.gz")


def test_a_file_that_is_not_gzip_is_named(data_path):
    (data_path / "file.gz").write_bytes(b"<html>404</html>")
    with pytest.raises(DatasetError, match=r"file\.gz cannot be read: Not a gzipped file"):
        read_idx(data_path / "file.gz")
