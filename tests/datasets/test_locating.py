import importlib
import sys

import pytest
from refusals import refused

from bara.datasets import Columns, fetch, load, places, require, verify
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError, UnknownNameError
from bara.runs.config import Config


def test_the_path_comes_before_the_variable_before_the_cache(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("BARA_DATA", str(tmp_path / "variable"))
    assert [place.folder for place in places(tmp_path / "given")] == [
        tmp_path / "given",
        tmp_path / "variable",
        cache,
    ]


@pytest.mark.parametrize("where", ["path", "variable", "cache"])
def test_a_dataset_is_found_in_each_place(fabricate, monkeypatch, data_path, cache, where):
    monkeypatch.setenv("BARA_DATA", str(data_path / "variable"))
    folder = {"path": data_path, "variable": data_path / "variable", "cache": cache}[where]
    written = fabricate.npz(folder, "mnist", fabricate.arrays((28, 28)))
    assert verify("mnist", data_path).path == written


def test_a_missing_dataset_says_which_command_gets_it_and_where_it_was_looked_for(
    monkeypatch, data_path, cache
):
    monkeypatch.setenv("BARA_DATA", "/nowhere/at/all")
    with refused(
        DatasetError,
        "bara data fetch mnist",
        "data.path",
        data_path,
        "$BARA_DATA",
        "/nowhere/at/all",
        cache,
    ):
        require("mnist", data_path)


def test_an_incomplete_dataset_says_what_it_lacks(fabricate, data_path):
    fabricate.idx(data_path / "mnist", fabricate.arrays((28, 28)))
    (data_path / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    with refused(DatasetError, data_path / "mnist", "train-labels-idx1-ubyte") as caught:
        require("mnist", data_path)
    assert "train-images" not in str(caught.value)


def test_an_unknown_name_gets_the_nearest(cache):
    with refused(UnknownNameError, "minst.npz", cache, "'mnist'"):
        require("minst")


@pytest.mark.parametrize("name", ["../mine", "{tmp_path}/mine", "", "a b", ".hidden"])
def test_a_name_cannot_lead_out_of_the_folder(fabricate, data_path, tmp_path, name):
    name = name.format(tmp_path=tmp_path)
    assert fabricate.npz(data_path, name, fabricate.arrays((28, 28))).is_file()
    with refused(UnknownNameError, repr(name)):
        require(name, data_path)


def test_a_path_may_be_the_file_itself(fabricate, data_path):
    written = fabricate.npz(data_path, "anything", fabricate.arrays((28, 28)))
    assert verify("mnist", written).path == written


def test_a_path_that_does_not_exist_is_an_error_even_if_the_dataset_is_elsewhere(
    fabricate, data_path, cache
):
    fabricate.npz(cache, "mnist", fabricate.arrays((28, 28)))
    with refused(UnfitDatasetError, "data.path", data_path / "nowhere"):
        require("mnist", data_path / "nowhere")
    (data_path / "file.txt").touch()
    with refused(UnfitDatasetError, "data.path", data_path / "file.txt", ".npz"):
        require("mnist", data_path / "file.txt")


def test_without_platformdirs_a_path_still_works_and_fetching_says_what_to_install(
    monkeypatch, fabricate, data_path
):
    importlib.import_module("pooch")  # which needs platformdirs itself
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    fabricate.npz(data_path, "mine", fabricate.arrays((28, 28)))
    assert load("mine", data_path)
    with refused(MissingExtraError, "data.path", "$BARA_DATA", "bara-fl[sim]"):
        fetch("mnist")
    assert places() == ()
    with refused(DatasetError, "bara data fetch mnist"):
        require("mnist")


def test_the_cache_is_the_users_own(monkeypatch):
    monkeypatch.undo()
    (place,) = places()
    assert "bara" in place.folder.parts


OWN_PLACES = ["path", "here", "variable", "cache"]


@pytest.mark.parametrize("where", OWN_PLACES)
@pytest.mark.parametrize("name", ["mine", "mine.npz", "mine.csv"])
def test_ones_own_files_are_found_in_the_same_places_whatever_their_form(
    fabricate, monkeypatch, tmp_path, cache, where, name
):
    folders = {one: tmp_path / one for one in OWN_PLACES} | {"cache": cache}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folders["here"])
    monkeypatch.setenv("BARA_DATA", str(folders["variable"]))
    if name == "mine.csv":
        rows = "".join(f"{k},{k % 2}\n" for k in range(20))
        (folders[where] / name).write_text(f"age,ill\n{rows}")
        assert load(name, folders["path"], columns=Columns(target="ill")).classes == 2
    else:
        fabricate.npz(folders[where], "mine", fabricate.arrays((5, 5), classes=4))
        assert load(name, folders["path"]).classes == 4


def test_a_run_remembers_where_it_found_an_archive(fabricate, monkeypatch, tmp_path):
    fabricate.npz(tmp_path / "here", "mine", fabricate.arrays((5, 5), classes=4))
    monkeypatch.chdir(tmp_path / "here")
    keys = ["data.name=mine", "federation.engine=simulator", "clients.count=2"]
    assert Config.load(None, keys).data.path == str(tmp_path / "here")


def test_a_table_that_is_nowhere_says_where_it_was_looked_for(monkeypatch, tmp_path, cache):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BARA_DATA", "/nowhere/at/all")
    with refused(DatasetError, "mine.csv", "here", "$BARA_DATA", "/nowhere/at/all", cache):
        load("mine.csv", columns=Columns(target="ill"))
