"""Shared by all tests: surroundings that are the same everywhere, a small federation, and runs of
earlier versions.
"""

import json
import os
import re
import shutil
import sqlite3
from pathlib import Path

import hypothesis
import pytest

import bara
from bara import Purse, RoundRecord, Session
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.mechanisms import bid_price_first
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

for _name, _examples in (("default", 100), ("thorough", 100_000)):
    hypothesis.settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=_name == "default",
        print_blob=True,
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

ROOT = Path(__file__).parents[1]
PERSONAL = re.compile(
    r"BARA_(?!TEST_|LEDGER_HOSTS)|MLFLOW_|FLWR_|RAY_|PG[A-Z]|XDG_\w+_HOME|MPL"
    r"|PYTHON(PATH|WARNINGS|IOENCODING|OPTIMIZE)|NO_COLOR|FORCE_COLOR|CLICOLOR|PY_COLORS|TTY_|TERMINAL_WIDTH|NETRC|LC_|LANG"
)
"""Variables by which whoever runs the tests could change what they come to; BARA_TEST_* are there
to be set, and BARA_LEDGER_HOSTS names the server that scripts/with_postgres.sh started."""


CIRCLES = {"paths": pytest.mark.path, "e2e": pytest.mark.full}
"""The folders whose tests `make check`, or `make test` too, leaves out."""


def pytest_collection_modifyitems(items):
    """Mark the tests of these folders; everything else is checked unless it carries a mark."""
    for item in items:
        for folder, mark in CIRCLES.items():
            if ROOT / "tests" / folder in item.path.parents:
                item.add_marker(mark)


PARTS = {
    "root": lambda: os.getuid() == 0,
    "PostgreSQL": lambda: "BARA_TEST_POSTGRES" in os.environ,
    "Chromium": lambda: "BARA_TEST_CHROMIUM" in os.environ,
    "LaTeX": lambda: shutil.which("pdflatex") is not None,
}
"""What the mark `debian` may ask for, and whether it is there."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let a test whose part of Debian is missing fail before it begins, and say what it needs."""
    needed = {part for mark in item.iter_markers("debian") for part in mark.args}
    missing = sorted(part for part in needed if not PARTS[part]())
    if missing:
        pytest.fail(
            f"this test needs {' and '.join(missing)}: `make test-all`, as root on Debian, "
            "provides all; `make test` leaves it out",
            pytrace=False,
        )


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory):
    """The same environment for every test and every program it starts, whoever runs the tests, and
    wherever.
    """
    pip = (
        os.environ.get("PIP_CACHE_DIR")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"
    )
    fixed = {
        "HOME": tmp_path_factory.mktemp("home"),  # with no cache, no settings and no models in it
        "PIP_CACHE_DIR": pip,  # only spares downloads
        "COLUMNS": 80,
        "LINES": 25,
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": "localhost,127.0.0.1",
        "no_proxy": "localhost,127.0.0.1",
        "FLWR_TELEMETRY_ENABLED": 0,
        "FLWR_DISABLE_UPDATE_CHECK": 1,
        "RAY_USAGE_STATS_ENABLED": 0,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": 0,
    }
    if ROOT in Path(bara.__file__).parents:
        fixed["PYTHONPATH"] = (
            ROOT / "src"
        )  # programs run the code that is tested, installed from here or not
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if PERSONAL.match(name)]:
            patch.delenv(name)
        for name, value in fixed.items():
            patch.setenv(name, str(value))
        yield


@pytest.fixture
def make_federation():
    """A synthetic federation in one call."""

    def make(clients=8, seed=0, bids="uniform(0.5, 1.5)", failure_rate=0.0, **curve):
        bidders = Bidders(clients, Distribution.parse(bids), seed)
        return SyntheticFederation(bidders, LearningCurve(**curve), seed, failure_rate)

    return make


@pytest.fixture
def play(make_federation):
    """Plays an allocator on a synthetic federation; returns the settled rounds and why it ended."""

    def play(allocator, purse=None, federation=None, mechanism=None):
        session = Session(
            allocator, mechanism or bid_price_first(), federation or make_federation()
        )
        steps = session.rounds(purse or Purse.of(60, 30))
        records = [step for step in steps if isinstance(step, RoundRecord)]
        return records, session.ended

    return play


OLD_RUNS = Path(__file__).parent / "compatibility" / "runs"


@pytest.fixture
def old_run(tmp_path):
    """A run that an earlier version left behind, in a folder of its own."""

    def restore(name):
        folder = tmp_path / name
        shutil.copytree(
            OLD_RUNS / name, folder, ignore=shutil.ignore_patterns("*.sql", "expected.json")
        )
        connection = sqlite3.connect(folder / "ledger.db")
        connection.executescript((OLD_RUNS / name / "ledger.sql").read_text())
        connection.close()
        return folder

    return restore


@pytest.fixture
def same_result():
    """Whether a result is the one that the earlier version came to; another kind of processor may
    round otherwise.
    """

    def same(result, name):
        expected = json.loads((OLD_RUNS / name / "expected.json").read_text())
        assert result.keys() >= expected.keys()
        exact = (
            "allocator",
            "mechanism",
            "dataset",
            "seed",
            "clients",
            "budget",
            "rounds",
            "ended",
        )
        assert [result[key] for key in exact] == [expected[key] for key in exact]
        assert result["payments"] == pytest.approx(expected["payments"], rel=1e-4)
        for column in ("n", "cost", "accuracy"):
            told = [entry[column] for entry in result["history"]]
            assert told == pytest.approx([entry[column] for entry in expected["history"]], abs=0.02)
        return True

    return same
