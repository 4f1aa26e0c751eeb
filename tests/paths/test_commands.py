"""Every main verb from end to end, within this process but for what a user's own module is for."""

import json
from functools import partial

import programs
import pytest
from typer.testing import CliRunner

from bara.cli import app
from bara.datasets import names

SMALL = [
    "--set",
    "budget.total=40",
    "--set",
    "budget.max_rounds=12",
    "--set",
    "clients.count=6",
    "--set",
    "federation.engine=synthetic",
    "--set",
    "allocator.name=even",
]


@pytest.fixture
def bara(tmp_path, monkeypatch):
    """The program, in a folder of its own, a hundred columns wide, without a process of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words, code=0):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture
def process(tmp_path):
    """The program as a process, which finds the modules in its folder."""
    return partial(programs.bara, cwd=tmp_path, environment={"COLUMNS": "100"})


def test_run_leaves_a_folder_with_configuration_rounds_result_and_report(bara, tmp_path):
    done = bara("run", *SMALL, "--out", "one")
    assert "accuracy" in done.stdout
    assert "report" in done.stdout
    assert "round 12 of 12" in done.stderr
    result = json.loads((tmp_path / "one/result.json").read_text())
    account = json.loads(bara("ledger", "one", "statement", "--json").stdout)
    assert len(account["rounds"]) == 13
    assert account["spent"] == result["spent"]
    report = (tmp_path / "one/report.html").read_text()
    assert "<svg" in report
    assert "http" not in report.replace("http-equiv", "")


def test_the_left_configuration_repeats_the_run(bara, tmp_path):
    bara("run", *SMALL, "--out", "one")
    bara("run", "one/config.toml", "--out", "two")
    assert (tmp_path / "one/result.json").read_text() == (tmp_path / "two/result.json").read_text()


def test_json_is_one_document_with_the_documented_keys_and_nothing_else(bara):
    tree = json.loads(bara("run", *SMALL, "--json").stdout)
    assert set(tree) >= {
        "allocator",
        "mechanism",
        "dataset",
        "seed",
        "clients",
        "budget",
        "spent",
        "rounds",
        "accuracy_final",
        "accuracy_kept",
        "accuracy_last10",
        "accuracy_best",
        "payments",
        "history",
    }
    assert set(tree["history"][0]) == {"round", "n", "cost", "cost_exact", "accuracy", "loss"}


def test_compare_prints_a_table_and_json(bara):
    done = bara("compare", *SMALL, "--allocators", "even,fixed:n=2", "--seeds", "3", "--jobs", "1")
    assert "fixed:n=2" in done.stdout
    assert "3 paired seeds" in done.stdout
    tree = json.loads(
        bara("compare", *SMALL, "--allocators", "even,bara", "--seeds", "2", "--json").stdout
    )
    assert [(r["allocator"], r["seed"]) for r in tree["results"]] == [
        ("even", 0),
        ("even", 1),
        ("bara", 0),
        ("bara", 1),
    ]
    assert "history" not in tree["results"][0]


def test_compare_reports_what_lying_earned(bara):
    done = bara(
        "compare",
        *SMALL,
        "--set",
        "clients.strategic=2",
        "--allocators",
        "even",
        "--seeds",
        "2",
        "--jobs",
        "1",
    )
    assert "lying" in done.stdout


def test_audit_says_what_holds_and_exits_zero(bara):
    done = bara("audit", "bid-price-first", "--trials", "50")
    assert done.stdout.count("holds in 50 trials") == 5


MINE = """
from bara import Menu
from bara.mechanisms import bid_price_first
class FirstPrice:
    claims = frozenset({"individually-rational", "truthful-in-price"})
    def menu(self, bids):
        menu = bid_price_first().menu(bids)
        pay = lambda n, cap: bids.prices[menu.order[:n]]
        return Menu(bids, menu.order, bids.prices[menu.order].cumsum()[:-1], pay)
    def tell(self, record):
        pass
"""


def test_audit_of_a_users_own_mechanism_prints_the_counter_example_and_exits_one(process, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    done = process("audit", "mine:FirstPrice", code=1)
    assert "counter-example: client-" in done.stdout.replace("\n", " ")
    tree = json.loads(process("audit", "mine:FirstPrice", "--json", code=1).stdout)
    found = {finding["name"]: finding["counter_example"] for finding in tree["findings"]}
    assert found["individually-rational"] is None
    assert "gains" in found["truthful-in-price"]


def test_a_users_own_mechanism_and_allocator_run_by_import_path(process, tmp_path):
    (tmp_path / "mine.py").write_text(
        MINE + "class Two:\n    def ask(self, purse):\n        from bara import Offer\n"
        "        return Offer.recruit(2)\n"
        "    def tell(self, record):\n        pass\n"
    )
    tree = json.loads(
        process(
            "run",
            *SMALL,
            "--set",
            "mechanism.name=mine:FirstPrice",
            "--set",
            "allocator.name=mine:Two",
            "--json",
        ).stdout
    )
    assert {entry["n"] for entry in tree["history"][1:]} == {2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "--set", "budget.totl=1"],
            "bara: unknown key 'budget.totl'; did you mean 'budget.total'?",
        ),
        (["run", "--set", "budget.total=0"], "bara: budget.total must be positive, got 0.00"),
        (
            ["run", "--set", "allocator.name=evn"],
            "bara: no allocator is named 'evn'; did you mean 'even'?",
        ),
        (["run", "--set", "allocator.name=nowhere:Thing"], "bara: cannot import 'nowhere'"),
        (
            ["run", "--set", "federation.engine=synthetic", "--set", "federation.a_mx=1"],
            "bara: unknown key 'federation.a_mx'",
        ),
        (["run", "absent.toml"], "bara: there is no configuration file 'absent.toml'"),
        (["compare", "--seeds", "0"], "bara: seeds must be a whole number of at least 1, got 0"),
        (
            ["audit", "bid-price-frist"],
            "bara: no mechanism is named 'bid-price-frist'; did you mean 'bid-price-first'?",
        ),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_code_two(bara, arguments, message):
    done = bara(*arguments, code=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_debug_shows_the_traceback(bara):
    assert "Traceback" in bara("run", "--set", "budget.total=0", "--debug", code=2).stderr


def test_a_folder_that_holds_something_is_not_written_over(bara, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/note").write_text("mine")
    assert (
        "--out must be a new or empty folder" in bara("run", *SMALL, "--out", "full", code=2).stderr
    )


@pytest.mark.parametrize(
    ("clients", "reserve", "trains"),
    [(1, None, False), (1, 2, True), (2, None, True), (5, None, True)],
)
def test_small_federations_run(bara, clients, reserve, trains):
    options = ["--set", f"clients.count={clients}", "--set", "clients.bids=constant(1)"]
    options += ["--set", f"mechanism.reserve={reserve}"] if reserve else []
    tree = json.loads(bara("run", *SMALL, *options, "--json").stdout)
    assert (tree["spent"] > 0) == trains


def test_a_budget_too_small_for_stage_one_ends_early_and_says_so(bara):
    done = bara("run", *SMALL, "--set", "allocator.name=bara", "--set", "budget.total=3")
    assert "cannot pay" in done.stdout.replace("\n", " ")


def test_show_config_prints_toml_and_runs_nothing(bara, tmp_path):
    done = bara("run", *SMALL, "--show-config")
    assert "max_rounds = 12" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_every_verb_has_help_with_an_example(bara):
    listing = bara("--help").stdout
    assert "fig1, fig2, fig3" in bara("paper", "--help").stdout  # the help of an argument
    for verb in [path[0] for path, _ in programs.verbs() if len(path) == 1]:
        assert verb in listing
        text = bara(verb, "--help").stdout
        assert f"bara {verb}" in text
        assert "Example" in text, verb


def test_the_version_is_printed(bara):
    assert bara("--version").stdout.startswith("bara 0.")


def test_data_list_says_what_is_here_and_how_to_get_the_rest(bara, tmp_path):
    text = bara("data", "list", "--path", str(tmp_path)).stdout
    assert "embedded" in text
    assert "bara data fetch mnist" in text
    tree = json.loads(bara("data", "list", "--path", str(tmp_path), "--json").stdout)
    assert {one["name"] for one in tree["datasets"]} == set(names())


def test_data_show_pictures_who_holds_what(bara):
    text = bara("data", "show", "digits", "--clients", "4", "--partition", "shards(1)").stdout
    assert len(text.strip().splitlines()) == 5
    assert "samples" in text


def test_data_verify_reports_a_damaged_file_and_exits_one(bara, tmp_path):
    assert "as published" in bara("data", "verify", "digits").stdout
    (tmp_path / "mnist.npz").write_bytes(b"not a dataset")
    done = bara("data", "verify", "mnist", "--path", str(tmp_path), code=1)
    assert "is not a numpy archive that can be read: it holds no plain arrays" in " ".join(
        done.stdout.split()
    )
    assert "Traceback" not in done.stderr


def test_a_missing_dataset_names_the_command_that_gets_it(bara, tmp_path):
    done = bara(
        "run",
        "--set",
        "data.name=mnist",
        "--set",
        f"data.path={tmp_path}",
        "--set",
        "federation.engine=simulator",
        code=1,
    )
    assert "bara data fetch mnist" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_partition_nobody_knows_is_refused(bara):
    assert (
        "did you mean 'shards'" in bara("run", "--set", "clients.partition=shard(2)", code=2).stderr
    )
