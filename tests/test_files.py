import pytest

from bara.files import replacing


@pytest.mark.parametrize("durable", [True, False])
def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path, durable):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path, durable=durable) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def half():
    yield b"half"
    raise ZeroDivisionError


def test_what_fails_halfway_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.writelines(half())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
