import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from refusals import refused

from bara import plugins
from bara.datasets import Dataset, available, load, names, require, verify
from bara.errors import ConfigError, DatasetError, UnknownNameError

REAL = os.environ.get("BARA_TEST_DATA")


@pytest.fixture
def mnist(fabricate, publish):
    """A tiny dataset that passes for MNIST."""
    arrays = fabricate.arrays((28, 28))
    publish("mnist", arrays)
    return arrays


def test_a_published_dataset_loads_verified(fabricate, mnist, data_path):
    fabricate.npz(data_path, "mnist", mnist)
    data = load("mnist", data_path)
    assert (data.name, data.classes, data.version) == ("mnist", 10, "version 0")
    np.testing.assert_array_equal(data.x_train, mnist.x_train)


def test_labels_of_any_integer_type_are_the_same_dataset(fabricate, mnist, data_path):
    fabricate.npz(data_path, "mnist", replace(mnist, y_train=mnist.y_train.astype(np.int32)))
    assert load("mnist", data_path).version == "version 0"


@pytest.mark.parametrize("part", ["x_train", "y_train", "x_test", "y_test"])
def test_one_wrong_byte_is_an_error_that_names_file_and_part(fabricate, mnist, data_path, part):
    wrong = getattr(mnist, part).copy()
    wrong.flat[3] ^= 1
    path = fabricate.npz(data_path, "mnist", replace(mnist, **{part: wrong}))
    with refused(DatasetError, "mnist", part, path, "bara data fetch mnist", "verify=False"):
        load("mnist", data_path)
    assert load("mnist", data_path, verify=False).version == ""


def test_the_mismatch_names_the_very_idx_file(fabricate, mnist, data_path):
    fabricate.idx(data_path / "mnist", replace(mnist, x_test=mnist.x_test[::-1]))
    with refused(DatasetError, "x_test", data_path / "mnist" / "t10k-images-idx3-ubyte.gz"):
        load("mnist", data_path)


def test_a_partial_version_is_accepted_and_named(fabricate, data_path, publish):
    whole = fabricate.arrays((32, 32, 3), 100, train=200)
    part = replace(whole, x_train=whole.x_train[:120], y_train=whole.y_train[:120])
    publish("cifar100", whole, part)
    fabricate.npz(data_path, "cifar100", part)
    assert load("cifar100", data_path).version == "version 1"
    fabricate.npz(
        data_path, "cifar100", replace(part, x_train=part.x_train[:119], y_train=part.y_train[:119])
    )
    with refused(DatasetError, "x_train", "bara data fetch cifar100"):
        load("cifar100", data_path)


def test_images_and_labels_of_different_versions_are_not_mixed(fabricate, data_path, publish):
    one, two = (
        fabricate.arrays((32, 32, 3), 100, train=200),
        fabricate.arrays((32, 32, 3), 100, train=200, seed=1),
    )
    publish("cifar100", one, two)
    fabricate.npz(data_path, "cifar100", replace(one, x_test=two.x_test))
    with refused(DatasetError, "x_test", "bara data fetch cifar100"):
        load("cifar100", data_path)


def test_the_same_pixels_in_another_shape_are_not_the_dataset(fabricate, mnist, data_path):
    flat = replace(
        mnist, x_train=mnist.x_train.reshape(40, 784), x_test=mnist.x_test.reshape(20, 784)
    )
    fabricate.npz(data_path, "mnist", flat)
    with refused(DatasetError, "x_train", data_path / "mnist.npz", "(784,)", "(28, 28)"):
        load("mnist", data_path)


def test_any_npz_is_a_dataset_by_its_name(fabricate, data_path):
    fabricate.npz(data_path, "mine", fabricate.arrays((5, 5), classes=4))
    data = load("mine", data_path)
    assert (data.name, data.classes, data.shape) == ("mine", 4, (5, 5))


def test_labels_out_of_range_are_an_error(fabricate, data_path):
    arrays = fabricate.arrays((28, 28))
    fabricate.npz(data_path, "mnist", replace(arrays, y_train=arrays.y_train + 3))
    with refused(DatasetError, "mnist", "y_train[7]", "10", "9"):
        load("mnist", data_path, verify=False)


@pytest.fixture
def module(monkeypatch, tmp_path):
    """A module of the user's own."""
    (tmp_path / "my_own_data.py").write_text(
        "import numpy as np\n"
        "from bara.datasets import Dataset\n"
        "x, y = np.zeros((4, 2, 2), np.uint8), np.array([0, 1, 0, 1])\n"
        "def make(): return Dataset('mine', x, y, x, y, 2)\n"
        "def wrong(): return x\n"
        "def fails(): raise RuntimeError('no disk')\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_own_data", None)


@pytest.mark.usefixtures("module")
def test_a_users_own_dataset_loads_by_import_path():
    assert isinstance(load("my_own_data:make"), Dataset)


@pytest.mark.usefixtures("module")
def test_a_users_own_dataset_loads_by_entry_point(monkeypatch):
    point = EntryPoint("theirs", "my_own_data:make", "bara.datasets")
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [point] if group == point.group else []
    )
    assert load("theirs").name == "mine"


@pytest.mark.usefixtures("module")
def test_a_users_own_dataset_can_be_verified():
    report = verify("my_own_data:make")
    assert (report.ok, report.format, report.train_counts) == (True, "function", (2, 2))
    assert "no disk" in verify("my_own_data:fails").problems[0]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "error", "facts"),
    [
        ("my_own_data:wrong", DatasetError, ("ndarray", "bara.datasets.Dataset")),
        ("my_own_data:fails", DatasetError, ("RuntimeError", "no disk")),
        ("my_own_data:number", ConfigError, ("int", "function")),
        ("my_own_data:nothing", UnknownNameError, ("'my_own_data'", "'nothing'")),
        ("no_such_module:make", UnknownNameError, ("'no_such_module'",)),
    ],
)
def test_a_users_own_dataset_that_cannot_be_had_says_why(name, error, facts):
    with refused(error, name, *facts):
        load(name)


def test_importing_the_room_imports_no_heavy_library():
    code = (
        "import sys, bara.datasets; "
        "heavy = {'sklearn', 'pooch', 'torch', 'requests', 'platformdirs', 'pandas'} & "
        "set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


if REAL:  # $BARA_TEST_DATA names a folder of real datasets

    @pytest.mark.parametrize(
        "name",
        [one.name for one in available(REAL) if one.status == "found" and one.name in names()],
    )
    def test_the_real_datasets_are_as_published(name):
        assert load(name, REAL).version


@pytest.mark.usefixtures("data_path")
def test_what_is_there_in_any_form_is_not_missed_and_what_is_not_is_named(
    fabricate, mnist, tmp_path
):
    for name in ("digits", "rand-hie", "mine.csv", "package.module:function"):
        require(name)
    file = fabricate.npz(tmp_path, "elsewhere", mnist)
    require("mnist", file)
    with refused(DatasetError, "bara data fetch mnist"):
        require("mnist")
    with refused(DatasetError, "bara data fetch heart-disease", tmp_path):
        require("heart-disease", tmp_path)
    with refused(UnknownNameError, "'mnits'", "'mnist'"):
        require("mnits")
