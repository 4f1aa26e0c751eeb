import sys

import pytest

from bara.datasets import _loading as locating
from bara.datasets._loading import home, locate, places
from bara.errors import DatasetError, MissingExtraError, UnknownNameError


def test_the_path_comes_before_the_variable_before_the_cache(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("BARA_DATA", str(tmp_path / "variable"))
    assert [place.folder for place in places(tmp_path / "given")] == [
        tmp_path / "given",
        tmp_path / "variable",
        cache,
    ]
    assert home(tmp_path / "given") == tmp_path / "given"
    assert home() == tmp_path / "variable"


@pytest.mark.parametrize("where", ["path", "variable", "cache"])
def test_a_dataset_is_found_in_each_place(fabricate, monkeypatch, data_path, cache, where):
    monkeypatch.setenv("BARA_DATA", str(data_path / "variable"))
    folder = {"path": data_path, "variable": data_path / "variable", "cache": cache}[where]
    written = fabricate.npz(folder, "mnist", fabricate.arrays((28, 28)))
    assert locate("mnist", data_path).path == written


def test_a_missing_dataset_says_which_command_gets_it_and_where_it_was_looked_for(
    monkeypatch, data_path, cache
):
    monkeypatch.setenv("BARA_DATA", "/nowhere/at/all")
    with pytest.raises(DatasetError) as raised:
        locate("mnist", data_path)
    for said in (
        "bara data fetch mnist",
        f"data.path ({data_path})",
        "$BARA_DATA (/nowhere/at/all)",
        f"({cache})",
    ):
        assert said in str(raised.value)


def test_an_incomplete_dataset_says_what_it_lacks(fabricate, data_path):
    fabricate.idx(data_path / "mnist", fabricate.arrays((28, 28)))
    (data_path / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DatasetError, match="mnist lacks train-labels-idx1-ubyte"):
        locate("mnist", data_path)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"no minst\.npz \(looked in .*; did you mean 'mnist'"
    ):
        locate("minst")


@pytest.mark.parametrize("name", ["../mnist", "/etc/passwd", "", "a b", ".hidden"])
def test_a_name_cannot_lead_out_of_the_folder(name):
    with pytest.raises(UnknownNameError, match="cannot be a dataset's name"):
        locate(name)


def test_a_path_may_be_the_file_itself(fabricate, data_path):
    written = fabricate.npz(data_path, "anything", fabricate.arrays((28, 28)))
    assert locate("mnist", written).path == written


def test_a_path_that_does_not_exist_is_an_error_even_if_the_dataset_is_elsewhere(
    fabricate, data_path, cache
):
    fabricate.npz(cache, "mnist", fabricate.arrays((28, 28)))
    with pytest.raises(DatasetError, match=r"data\.path .*nowhere does not exist"):
        locate("mnist", data_path / "nowhere")
    (data_path / "file.txt").touch()
    with pytest.raises(DatasetError, match=r"must be a folder or an \.npz file"):
        locate("mnist", data_path / "file.txt")


def test_without_platformdirs_a_path_still_works_and_fetching_says_what_to_install(
    monkeypatch, fabricate, data_path
):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    fabricate.npz(data_path, "mine", fabricate.arrays((28, 28)))
    assert locate("mine", data_path)
    with pytest.raises(MissingExtraError, match=r"pip install 'bara-fl\[sim\]'"):
        home()
    with pytest.raises(DatasetError, match="looked in no folder"):
        locate("mnist")


def test_the_cache_is_the_users_own(monkeypatch):
    monkeypatch.undo()
    (place,) = locating._cache()
    assert "bara" in place.folder.parts
