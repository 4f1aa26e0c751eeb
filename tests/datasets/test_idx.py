import gzip

import pytest
from refusals import refused

from bara.datasets import available, load
from bara.errors import DatasetError


def found(folder):
    return {line.name: line.path for line in available(folder) if line.status == "found"}


@pytest.mark.parametrize("inside", ["", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
def test_the_files_are_found_in_every_layout_and_read(fabricate, data_path, inside, zipped, dotted):
    arrays = fabricate.arrays((28, 28))
    fabricate.idx(data_path / inside, arrays, zipped=zipped, dotted=dotted)
    assert found(data_path)["mnist"] == data_path / inside
    assert fabricate.as_written(load("mnist", data_path, verify=False), arrays)


def test_three_of_four_files_are_not_a_dataset(fabricate, data_path):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    (data_path / "t10k-labels-idx1-ubyte.gz").unlink()
    assert not found(data_path)


def test_cifar_is_not_looked_for_among_them(fabricate, data_path):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    assert found(data_path).keys() == {"mnist", "fashion-mnist"}


def test_bare_files_of_one_dataset_are_not_taken_for_the_other(fabricate, data_path, publish):
    arrays = fabricate.arrays((28, 28))
    fabricate.idx(data_path, arrays)
    publish("mnist", arrays)
    assert found(data_path).keys() == {"mnist"}


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"", ("IDX", "nothing")),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", ("IDX", "00000d01")),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abc", ("11 bytes", "13", "(5,)")),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", ("11 bytes", "10", "(2,)")),
        (b"\x00\x00\x08\x03\x00", ("5 bytes", "(0, 0, 0)")),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(fabricate, data_path, content, facts):
    fabricate.idx(data_path, fabricate.arrays((28, 28)), zipped=False)
    damaged = data_path / "train-labels-idx1-ubyte"
    damaged.write_bytes(content)
    with refused(DatasetError, damaged, *facts):
        load("mnist", data_path, verify=False)


@pytest.mark.parametrize("cut", [5, 20])
def test_a_truncated_gzip_file_is_named(fabricate, data_path, cut):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    damaged = data_path / "train-labels-idx1-ubyte.gz"
    damaged.write_bytes(gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x05abcde")[:cut])
    with refused(DatasetError, damaged) as caught:
        load("mnist", data_path, verify=False)
    assert isinstance(caught.value.__cause__, EOFError)


def test_a_file_that_is_not_gzip_is_named(fabricate, data_path):
    fabricate.idx(data_path, fabricate.arrays((28, 28)))
    damaged = data_path / "train-labels-idx1-ubyte.gz"
    damaged.write_bytes(b"<html>404</html>")
    with refused(DatasetError, damaged) as caught:
        load("mnist", data_path, verify=False)
    assert isinstance(caught.value.__cause__, gzip.BadGzipFile)
