import numpy as np
import pytest

from bara.datasets._formats.npz import find, read_npz
from bara.errors import DatasetError


@pytest.mark.parametrize("inside", ["", "mine"])
def test_an_archive_is_found_and_read(fabricate, data_path, inside):
    arrays = fabricate.arrays((4, 4))
    path = fabricate.npz(data_path / inside, "mine", arrays)
    (source,) = find(data_path, "mine")
    assert source.path == path
    for read, written in zip(source.read(), arrays, strict=True):
        np.testing.assert_array_equal(read, written)


def test_a_lacking_part_is_named(data_path):
    np.savez(data_path / "mine.npz", x_train=np.zeros(3), y_test=np.zeros(3))
    with pytest.raises(DatasetError, match=r"mine\.npz lacks y_train, x_test"):
        read_npz(data_path / "mine.npz")


def test_a_pickle_inside_is_refused(fabricate, data_path):
    path = fabricate.npz(
        data_path, "mine", fabricate.arrays((4, 4)), y_test=np.array([len], object)
    )
    with pytest.raises(
        DatasetError, match=r"mine\.npz is not a numpy archive .* it holds no plain arrays"
    ):
        read_npz(path)


def test_a_truncated_archive_is_named(fabricate, data_path):
    path = fabricate.npz(data_path, "mine", fabricate.arrays((4, 4)))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DatasetError, match=r"mine\.npz is not a numpy archive that can be read"):
        read_npz(path)


def test_a_corrupted_archive_is_named(fabricate, data_path):
    path = fabricate.npz(data_path, "mine", fabricate.arrays((4, 4)))
    raw = bytearray(path.read_bytes())
    raw[400] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DatasetError, match=r"mine\.npz is not a numpy archive that can be read"):
        read_npz(path)


def test_a_single_array_and_an_empty_file_are_refused(data_path):
    with (data_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    (data_path / "empty.npz").touch()
    with pytest.raises(DatasetError, match="holds a single array"):
        read_npz(data_path / "one.npz")
    with pytest.raises(DatasetError, match=r"empty\.npz is not a numpy archive"):
        read_npz(data_path / "empty.npz")
