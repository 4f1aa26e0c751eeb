"""The tables known by name; the hospitals' files are made here, of the same shape,
for nobody may commit them.
"""

import sys

import numpy as np
import pytest
from refusals import refused
from tests.datasets.test_fetching import serving

from bara.datasets import available, fetch, load, verify
from bara.errors import DatasetError, MissingExtraError

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
FIELDS, AGE, PRESSURE, CHOLESTEROL = 13, 0, 3, 4
"""How many fields a patient has before the diagnosis, and the places of three of them."""


def write_hospital(path, rows, seed):
    """A file as UCI publishes it: no header, question marks for what is missing."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        fields = [str(rng.integers(0, 5)) if rng.random() > 0.1 else "?" for _ in range(FIELDS)]
        fields[AGE] = str(rng.integers(30, 80))
        fields[CHOLESTEROL] = rng.choice(["0", "233", "?"])
        lines.append(",".join([*fields, str(rng.integers(0, 5))]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def hospitals(tmp_path, publish):
    """A folder with four files, which are made the published ones."""
    folder = tmp_path / "heart-disease"
    folder.mkdir()
    paths = [folder / f"processed.{hospital}.data" for hospital in HOSPITALS]
    for seed, path in enumerate(paths):
        write_hospital(path, 40 + 10 * seed, seed)
    files = {path.name: path.read_bytes() for path in paths}
    publish("heart-disease", files, files=files)
    return tmp_path


def test_the_hospitals_are_silos(hospitals):
    data = load("heart-disease", hospitals)
    assert (data.silos, data.task, data.version) == (HOSPITALS, "binary", "version 0")
    assert len(data.y_train) + len(data.y_test) == 40 + 50 + 60 + 70
    assert np.isfinite(data.x_train).all()


@pytest.mark.parametrize("place", [PRESSURE, CHOLESTEROL])
def test_a_blood_pressure_or_cholesterol_of_0_is_missing(hospitals, place):
    before = load("heart-disease", hospitals)
    for path in (hospitals / "heart-disease").iterdir():
        rows = [line.split(",") for line in path.read_text().splitlines()]
        assert any(row[place] == "0" for row in rows)
        for row in rows:
            row[place] = "?" if row[place] == "0" else row[place]
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    after = load("heart-disease", hospitals, verify=False)
    assert np.array_equal(before.x_train, after.x_train)
    assert np.array_equal(before.x_test, after.x_test)


def test_a_changed_file_is_refused_and_reported(hospitals):
    assert verify("heart-disease", hospitals).ok
    (hospitals / "heart-disease/processed.va.data").write_text(
        "63,1,4,140,260,0,1,112,1,3,2,?,?,2\n"
    )
    with refused(DatasetError, "processed.va.data", "bara data fetch heart-disease"):
        load("heart-disease", hospitals)
    report = verify("heart-disease", hospitals)
    assert [check.file for check in report.checks if not check.right] == ["processed.va.data"]


def test_what_is_not_there_says_how_to_get_it(tmp_path):
    with refused(DatasetError, "bara data fetch heart-disease", tmp_path):
        load("heart-disease", tmp_path)


def test_files_that_are_right_are_not_fetched_again(hospitals):
    assert len(fetch("heart-disease", hospitals).kept) == 4
    assert fetch("rand-hie", hospitals).folder is None


def test_the_hospitals_files_are_fetched_checked_and_load(hospitals, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    files = {path.name: path.read_bytes() for path in (hospitals / "heart-disease").iterdir()}
    there = tmp_path / "fetched"
    with serving(files) as server:
        server.faults["processed.va.data"] = "altered"
        with refused(DatasetError, "processed.va.data", there, server.url):
            fetch("heart-disease", there, base_urls=[server.url])
        assert not (there / "heart-disease" / "processed.va.data").exists()
        server.faults.clear()
        assert fetch("heart-disease", there, base_urls=[server.url]).downloaded == (
            "processed.va.data",
        )
    fetched, made = load("heart-disease", there), load("heart-disease", hospitals)
    assert fetched.silos == made.silos == HOSPITALS
    assert np.array_equal(fetched.x_train, made.x_train)


def test_the_rand_experiment_has_six_cities():
    data = load("rand-hie")
    assert len(data.y_train) + len(data.y_test) == 20_190
    assert data.silos == (
        "Charleston",
        "Dayton",
        "Fitchburg",
        "Franklin County",
        "Georgetown County",
        "Seattle",
    )
    assert data.version == "statsmodels"
    assert data.y_train.mean() == pytest.approx(0.6876, abs=0.001)
    assert {one.name: one.status for one in available()}["rand-hie"] == "embedded"


def test_without_statsmodels_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with refused(MissingExtraError, "statsmodels", "bara-fl[silos]"):
        load("rand-hie")
    assert {one.name: one.status for one in available()}["rand-hie"] == "missing"
