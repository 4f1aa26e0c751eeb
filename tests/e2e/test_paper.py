"""`bara paper` and `bara report` as users start them: real processes, real files."""

import csv
import json
import os
import signal
import time
from statistics import fmean

import pytest
from programs import bara, started, until

from bara import open as open_run
from bara.paper.exhibits import EXHIBITS
from bara.paper.pages import TABLES
from bara.reports.drawings import FORMATS

pytestmark = pytest.mark.xdist_group("paper")  # the paper is made once for all of them
TINY = ["--data", "digits", "--seeds", "2", "--searched", "3"]
TINY += [
    "--set",
    "budget.max_rounds=6",
    "--set",
    "budget.total=45",
    "--set",
    "data.train_samples=200",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The paper, on digits, made in one go."""
    folder = tmp_path_factory.mktemp("whole")
    done = bara("paper", "all", *TINY, cwd=folder)
    return folder / "paper", done


def test_every_figure_and_table_is_left(whole):
    folder, done = whole
    for name in EXHIBITS:
        kinds = ("md", "tex") if name in TABLES else FORMATS
        for kind in (*kinds, "csv", "parquet"):
            assert (folder / f"{name}.{kind}").stat().st_size > 100, (name, kind)
        assert f"{name}: {EXHIBITS[name].title}" in " ".join(done.stdout.split())
    page = (folder / "paper.html").read_text()
    assert page.count("<svg") == 5
    assert (
        '<td data-column="method">EA</td>' in page.split("<h2>")[1]
    )  # Figure 1 has its table, too
    opening = page.split("<h2>")[0]  # claims beside measurements, before any figure
    assert '<div class="prose">' in opening  # all of them at once: nothing to scroll
    assert opening.count('<td data-column="claimed">') == len(EXHIBITS)
    assert opening.count('<td data-column="measured">') == len(EXHIBITS)
    assert page.count("<b>Measured.</b>") == len(EXHIBITS)
    assert "bara paper all --data digits" in page
    assert "minutes" in done.stderr  # how long it is going to take, before it starts
    assert " of " in done.stderr


def test_the_data_is_the_same_in_both_formats(whole):
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    folder, _ = whole
    table = pyarrow.parquet.read_table(folder / "fig1.parquet")
    assert table.num_rows == 10
    assert table.column_names == pyarrow.csv.read_csv(folder / "fig1.csv").column_names


def test_every_run_is_left_and_the_tables_are_made_of_them(whole):
    folder, _ = whole
    with (folder / "results.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == len(list((folder / "runs").glob("*.json")))
    with (folder / "table1.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            mine = [
                one
                for one in runs
                if (one["setting"], one["allocator"]) == ("table1-digits", row["allocator"])
            ]
            assert sorted(one["seed"] for one in mine) == ["0", "1"]
            assert fmean(float(one["accuracy_final"]) for one in mine) == pytest.approx(
                float(row["final"])
            )


def test_killed_in_the_middle_it_goes_on_and_repeats_nothing(whole, tmp_path):
    """The grid of fig1 and its search, SIGKILLed once some cells
    are there, ends with the same data.
    """
    runs = tmp_path / "paper" / "runs"
    with started("paper", "fig1", "fig3", *TINY, cwd=tmp_path) as first:
        deadline = time.monotonic() + 300
        while (
            len(list(runs.glob("*.json"))) < 4
            and first.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= 4
    done = bara("paper", "fig1", "fig3", *TINY, cwd=tmp_path)
    assert f"26 runs, {len(kept)} done" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for name in ("fig1.csv", "fig3.csv"):
        assert (tmp_path / "paper" / name).read_bytes() == (whole[0] / name).read_bytes()


def test_cells_that_fail_do_not_lose_the_rest(tmp_path):
    """MNIST is damaged; what digits came to is shown all the same, and each failure is named."""
    (tmp_path / "mnist.npz").write_bytes(b"PK torn")
    arguments = ["fig2", *TINY, "--data", "digits,mnist", "--set", "data.verify=false", "--json"]
    here = {"BARA_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = bara("paper", *arguments, cwd=tmp_path, environment=here, code=1)
    tree = json.loads(done.stdout)
    assert [failure["setting"] for failure in tree["failures"]] == ["figures-mnist"] * 6
    assert "mnist.npz" in tree["failures"][0]["error"]
    assert {row["dataset"] for row in tree["exhibits"][0]["rows"]} == {"digits"}


def test_a_dataset_that_is_missing_is_told_before_anything_runs(tmp_path):
    empty = {"BARA_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = bara("paper", "fig2", *TINY, "--data", "mnist", cwd=tmp_path, environment=empty, code=1)
    assert "bara data fetch mnist" in done.stderr
    assert not list(tmp_path.glob("paper/*.csv"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fig9"], "the paper has no figure or table 'fig9'"),
        (["fig1", "--scale", "large"], "--scale must be a number, or full"),
        (["fig1", "--data", "minst"], "no preset uses the dataset 'minst'"),
        (["fig1", "--data", ","], "must name at least one"),
        (["fig1", "--seeds", "0"], "seeds must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_usage_is_told_in_one_line(tmp_path, arguments, told):
    done = bara("paper", *arguments, cwd=tmp_path, code=2)
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_run_has_a_report_with_figures_and_data(tmp_path):
    short = [
        "--set",
        "federation.engine=synthetic",
        "--set",
        "budget.max_rounds=8",
        "--out",
        "demo",
    ]
    bara("run", *short, cwd=tmp_path)
    bara("report", "demo", cwd=tmp_path)
    report = tmp_path / "demo-report"
    assert "expected final accuracy" in (report / "report.html").read_text()
    assert {path.name for path in (report / "figures").iterdir()} == {
        *(f"{name}.{kind}" for name in open_run(tmp_path / "demo").figures for kind in FORMATS),
        *("rounds.csv", "rounds.csv-metadata.json", "rounds.parquet"),
    }


def test_a_comparison_has_a_report_with_figures_and_data(tmp_path):
    short = [
        "--set",
        "federation.engine=synthetic",
        "--set",
        "budget.max_rounds=8",
        "--out",
        "kept",
    ]
    bara("compare", "--allocators", "even,finale", "--seeds", "2", *short, cwd=tmp_path)
    first = (tmp_path / "kept" / "report.html").read_text()
    assert "bara compare --allocators even,finale --seeds 2" in first
    bara("report", "kept", cwd=tmp_path)
    report = tmp_path / "kept-report"
    assert (report / "report.html").read_text() == first
    assert (report / "figures" / "accuracy-over-rounds.pdf").stat().st_size > 100


def test_a_folder_without_either_is_refused(tmp_path):
    assert "no run in '.'" in bara("report", ".", cwd=tmp_path, code=2).stderr


SIGNS = """
from pathlib import Path
from bara.runs.factory import synthetic

def Signs(config):
    Path("begun").touch()
    return synthetic(config)
"""


@pytest.mark.parametrize("out", [["--out", "kept"], []])
def test_ctrl_c_ends_a_comparison_in_one_line_and_keeps_what_is_done(tmp_path, out):
    """As on a terminal, where every process of the group is interrupted."""
    (tmp_path / "signs.py").write_text(SIGNS)
    endless = ["federation.engine=signs:Signs", "budget.max_rounds=100000", "budget.total=9e5"]
    words = ["compare", "--allocators", "even", "--seeds", "4", "--jobs", "2", *out]
    with started(
        *words, changes=endless, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    ) as process:
        until((tmp_path / "begun").exists, process)
        os.killpg(process.pid, signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1].startswith("bara: stopped after 0 of 4 runs: ")
    assert ("kept in kept" in errors) == bool(out)
    assert "Traceback" not in errors
