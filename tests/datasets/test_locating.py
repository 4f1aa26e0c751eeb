import importlib
import sys

import pytest
from refusals import refused

from bara.datasets import fetch, load, places, require, verify
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError, UnknownNameError


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
