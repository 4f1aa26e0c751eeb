import numpy as np
import pytest
from refusals import refused

from bara.datasets import load, verify
from bara.errors import DatasetError


@pytest.mark.parametrize("inside", ["", "mine"])
def test_an_archive_is_found_and_read(fabricate, data_path, inside):
    arrays = fabricate.arrays((4, 4))
    path = fabricate.npz(data_path / inside, "mine", arrays)
    assert verify("mine", data_path).path == path
    assert fabricate.as_written(load("mine", data_path), arrays)


def test_a_lacking_part_is_named(data_path):
    np.savez(data_path / "mine.npz", x_train=np.zeros(3), y_test=np.zeros(3))
    with refused(DatasetError, data_path / "mine.npz", "lacks y_train, x_test"):
        load("mine", data_path)


def test_a_pickle_inside_is_refused(fabricate, data_path):
    path = fabricate.npz(
        data_path, "mine", fabricate.arrays((4, 4)), y_test=np.array([len], object)
    )
    with refused(DatasetError, path, "plain arrays") as caught:
        load("mine", data_path)
    assert "allow_pickle" not in str(caught.value)


def test_a_truncated_archive_is_named(fabricate, data_path):
    path = fabricate.npz(data_path, "mine", fabricate.arrays((4, 4)))
    path.write_bytes(path.read_bytes()[:-100])
    with refused(DatasetError, path, "numpy archive"):
        load("mine", data_path)


def test_a_corrupted_archive_is_named(fabricate, data_path):
    path = fabricate.npz(data_path, "mine", fabricate.arrays((4, 4)))
    raw = bytearray(path.read_bytes())
    raw[400] ^= 1
    path.write_bytes(raw)
    with refused(DatasetError, path, "numpy archive"):
        load("mine", data_path)


def test_a_single_array_and_an_empty_file_are_refused(data_path):
    with (data_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    (data_path / "empty.npz").touch()
    with refused(DatasetError, data_path / "one.npz", "single array"):
        load("one", data_path)
    with refused(DatasetError, data_path / "empty.npz", "numpy archive"):
        load("empty", data_path)
