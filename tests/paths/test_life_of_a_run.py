"""A run as its operator lives it: killed, resumed, looked at, verified and paid out."""

import json

import httpx
import pytest
from programs import bara, result, started
from waiting import LONG

SIMULATED = ["data.train_samples=300", "budget.total=40", "budget.max_rounds=8", "clients.count=6"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of two runs: one undisturbed, one killed after a promise and resumed."""
    folder = tmp_path_factory.mktemp("runs")
    bara("run", "--out", folder / "whole", changes=SIMULATED)
    killed = {"BARA_FAULT": "promised@4"}
    bara("run", "--out", folder / "killed", changes=SIMULATED, code=-9, environment=killed)
    done = bara("resume", folder / "killed")
    assert "round 8 of 8" in done.stderr
    return folder


def test_a_run_that_was_killed_ends_as_the_one_that_was_not(runs):
    assert result(runs / "killed") == result(runs / "whole")


def test_the_books_hold_what_was_paid_and_verify(runs):
    account = json.loads(bara("ledger", runs / "killed", "statement", "--json").stdout)
    assert account["spent"] == result(runs / "killed")["spent"]
    assert len(account["rounds"]) == 9
    bara("ledger", runs / "killed", "verify", "--replay")


def test_the_dashboard_shows_every_run_without_a_browser(runs):
    with started("dashboard", runs, "--port", "0") as process:
        address = process.stdout.readline().strip()
        page = httpx.get(address, timeout=LONG).text
        shown = httpx.get(f"{address}index.json", timeout=LONG).text
    assert 'href="/index.json"' in page
    assert "whole" in shown
    assert "killed" in shown
