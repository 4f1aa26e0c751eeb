"""Folders that an earlier version left behind open, verify, go on to the same end, and are shown.

`runs/` holds runs killed in the middle (promised, settled, trained, saved), as `bara run` of
version 0.1.0.dev0 left them, each with the result of the same run when it was not disturbed;
`comparison/` is a `--out` of `bara compare`. That of a Flower app goes on in tests/flower; that on
Flower's simulation engine, which is no more, is only read.
"""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bara.cli import app

pytestmark = pytest.mark.path  # whole runs

HERE = Path(__file__).parent
EVERY = sorted(path.name for path in (HERE / "runs").iterdir())


def bara(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("name", EVERY)
def test_its_books_are_whole_and_tell_who_was_paid(name, old_run):
    folder = old_run(name)
    assert json.loads(bara("ledger", folder, "verify", "--json"))["ok"]
    told = json.loads(bara("ledger", folder, "statement", "--json"))
    assert 0 < told["spent"] == pytest.approx(sum(client["paid"] for client in told["clients"]))


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("flower")])
def test_it_goes_on_to_the_end_it_would_have_had(name, old_run, same_result):
    folder = old_run(name)
    assert same_result(json.loads(bara("resume", folder, "--json")), name)
    assert json.loads(bara("ledger", folder, "verify", "--json"))["ok"]
    assert "open" in bara("report", folder, "--out", folder.parent / "report")


def test_a_run_on_the_engine_that_is_no_more_is_reported_but_does_not_go_on(old_run):
    folder = old_run("flower")
    refused = CliRunner().invoke(app, ["resume", str(folder)])
    assert refused.exit_code == 2
    words = " ".join(refused.stderr.split())
    assert "the engine 'flower'" in words
    assert "bara 0.2" in words
    assert "the simulator" in words
    assert "`bara ledger` and `bara dashboard`" in words
    assert json.loads(bara("ledger", folder, "verify", "--json"))["ok"]
    # Had it ended, its result would still be shown.
    shutil.copy(HERE / "runs" / "flower" / "expected.json", folder / "result.json")
    assert "open" in bara("report", folder, "--out", folder.parent / "report")


def test_its_configuration_can_be_run_again(old_run, tmp_path, same_result):
    config = old_run("synthetic") / "config.toml"
    assert same_result(
        json.loads(bara("run", config, "--out", tmp_path / "again", "--json")), "synthetic"
    )


def test_a_comparison_is_reported_from_what_it_left(tmp_path):
    shutil.copytree(HERE / "comparison", tmp_path / "comparison")
    assert "open" in bara("report", tmp_path / "comparison", "--out", tmp_path / "report")
    assert "fixed:n=2" in (tmp_path / "report" / "report.html").read_text()
