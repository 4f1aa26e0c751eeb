"""What verbs answer and how they end, without a process each; the real program is in e2e."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import click
import programs
import pytest
import typer
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.cli.output import errors as cli_errors
from bara.errors import (
    BaraError,
    ConfigError,
    InterruptionError,
    UnfitDatasetError,
    UnknownNameError,
)
from bara.paper.exhibits import EXHIBITS, PAPERS
from bara.runs.config import shipped
from bara.studies import compare as comparing


def every_error(tree=BaraError):
    """All classes of the tree, its root too."""
    return [
        tree,
        *dict.fromkeys(one for branch in tree.__subclasses__() for one in every_error(branch)),
    ]


VERBS = list(programs.verbs())


def test_the_verbs_are_found_in_groups_too():
    assert {("run",), ("data",), ("data", "show"), ("ledger", "verify")} <= {
        path for path, _ in VERBS
    }


@pytest.mark.parametrize(
    ("path", "command"), VERBS, ids=lambda value: " ".join(value) if type(value) is tuple else ""
)
def test_every_verb_says_what_it_does_and_shows_an_example(path, command):
    assert command.help
    first, *examples = [
        line.strip() for line in (command.epilog or "").splitlines() if line.strip()
    ]
    assert first == "Examples:"
    assert examples
    for example in examples:
        assert example.startswith(f"bara {path[0]}")
        assert set(path) <= set(example.split()) or isinstance(command, click.Group)


SIMULATED = ["run", "--set", "federation.engine=simulator"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([*SIMULATED, "--set", "data.name=digitz"], 2, "no dataset 'digitz'"),
        (
            [*SIMULATED, "--set", "data.name=mnist", "--set", "data.path=absent"],
            2,
            "data.path absent does not exist",
        ),
        (
            [*SIMULATED, "--set", "data.train_samples=99999"],
            2,
            "train_samples must be at most 1400, got 99999",
        ),
        (["data", "show", "--clients", "5000"], 2, "more clients (5000) than samples (1400)"),
        (
            ["data", "show", "--clients", "20", "--partition", "shards(900)"],
            2,
            "need at least 18000 samples",
        ),
        (
            ["audit", "fair:reserve=cheap"],
            2,
            "the reserve price must be a decimal number, got 'cheap'",
        ),
        (["data", "show", "mnist"], 1, "mnist was not found. Get it with: bara data fetch mnist"),
        (
            ["compare", "--set", "data.name=mnist", "--set", "data.path=absent"],
            2,
            "bara: data.path absent does not exist",
        ),
        (
            [
                "compare",
                "--suite",
                "report",
                "--seeds",
                "1",
                "--only",
                "mnist-loose,digits-hundred,fashion-iid",
            ],
            1,
            "); fashion-mnist was not found. Get it with: bara data fetch fashion-mnist (looked in",
        ),
        (["data", "show", "torn", "--path", "torn.npz"], 1, "torn.npz"),
        (["data", "verify", "torn", "--path", "torn.npz"], 1, "torn.npz"),
    ],
)
def test_a_dataset_that_is_missing_or_damaged_fails_the_work_and_one_asked_for_wrongly_is_bad_usage(
    arguments, code, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("torn.npz").write_bytes(b"PK torn")
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit)  # and no error of its own
    assert message in done.output


@pytest.mark.parametrize("error", every_error(), ids=lambda error: error.__name__)
def test_only_what_was_asked_wrongly_exits_with_two(error):
    with pytest.raises(typer.Exit) as ended, cli_errors(debug=False):
        raise error("so it is")
    stopped = 130 if issubclass(error, InterruptionError) else 1
    assert ended.value.exit_code == (2 if issubclass(error, ConfigError) else stopped)


def test_what_is_asked_wrongly_is_a_configuration_an_unknown_name_or_an_unfit_dataset():
    asked = {error for error in every_error() if issubclass(error, ConfigError)}
    assert asked == {ConfigError, UnknownNameError, UnfitDatasetError}


def test_data_show_tells_a_machine_who_holds_what():
    done = CliRunner().invoke(
        app, ["data", "show", "digits", "--clients", "5", "--partition", "iid", "--json"]
    )
    tree = json.loads(done.stdout)
    assert {key: tree[key] for key in ("dataset", "partition", "clients", "seed")} == {
        "dataset": "digits",
        "partition": "iid",
        "clients": 5,
        "seed": 0,
    }
    assert [sum(labels) for labels in tree["labels"]] == [280] * 5


@pytest.mark.parametrize(
    ("asked", "first"),
    [([], "fixed:n=2"), (["--allocators", "even"], "even")],
    ids=["by the file", "by option"],
)
def test_compare_starts_with_the_configurations_own_allocator_unless_others_are_asked_for(
    asked, first, tmp_path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        comparing, "run_grid", lambda grid, *_, **__: (seen.extend(grid), ([], []))[1]
    )
    (tmp_path / "own.toml").write_text(
        '[allocator]\nname = "fixed"\nn = 2\n[federation]\nengine = "synthetic"\n'
    )
    CliRunner().invoke(
        app, ["compare", str(tmp_path / "own.toml"), "--seeds", "1", "--json", *asked]
    )
    labels = [cell.config.allocator.label for cell in seen]
    assert labels[0] == first
    assert len(labels) == (1 if asked else 7)


def test_compare_without_a_configured_allocator_compares_the_usual_ones(monkeypatch):
    seen = []
    monkeypatch.setattr(
        comparing, "run_grid", lambda grid, *_, **__: (seen.extend(grid), ([], []))[1]
    )
    CliRunner().invoke(
        app, ["compare", "--seeds", "1", "--json", "--set", "federation.engine=synthetic"]
    )
    assert tuple(cell.config.allocator.label for cell in seen) == comparing.USUAL


def test_the_help_that_verbs_give_without_importing_them_names_all_there_is():
    verbs = typer.main.get_command(app).commands
    exhibits = next(one for one in verbs["paper"].params if one.name == "names").help
    assert exhibits == f"{', '.join(EXHIBITS)}, or all."
    assert next(one for one in verbs["paper"].params if one.name == "data").default == ",".join(
        PAPERS
    )
    suites = next(one for one in verbs["compare"].params if one.name == "suite").help
    assert suites.endswith(f": {', '.join(shipped('suites'))}.")


def test_a_run_that_is_refused_leaves_nothing_behind_whoever_logs(tmp_path):
    changes = ["--set", "federation.engine=synthetic", "--set", "allocator.name=evn"]
    done = CliRunner().invoke(
        app, ["run", "--out", str(tmp_path / "run"), "--log", "tensorboard", *changes]
    )
    assert (done.exit_code, "did you mean 'even'" in done.output) == (2, True)
    assert not (tmp_path / "run").exists()


def test_a_run_that_another_process_has_is_refused_before_anything_is_logged(tmp_path):
    quick = ["--set", "federation.engine=synthetic", "--set", "budget.max_rounds=3", "--json"]
    assert CliRunner().invoke(app, ["run", "--out", str(tmp_path / "run"), *quick]).exit_code == 0
    hold = "import sys; from pathlib import Path; from bara.ledger.locks import only_process\n"
    hold += "with only_process(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(tmp_path / "run")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        done = CliRunner().invoke(app, ["resume", str(tmp_path / "run"), "--log", "tensorboard"])
        holder.stdin.close()
    assert (done.exit_code, "is being run by process" in done.output) == (1, True)
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_compare_says_who_runs_a_flower_app():
    done = CliRunner().invoke(
        app, ["compare", "--set", "federation.engine=flower-app", "--seeds", "1"]
    )
    assert (done.exit_code, "start or resume it with `flwr run`" in done.output) == (2, True)


def test_what_is_imported_late_is_there_all_the_same():
    assert {"Session", "Bids", "money"} <= set(dir(bara))
    assert bara.records.Bids is bara.Bids
    with refused(AttributeError, "'bara'", "'nothing'"):
        _ = bara.nothing


def test_doctor_says_in_ten_lines_what_is_installed_and_which_data_is_here():
    told = CliRunner().invoke(app, ["doctor"]).output.splitlines()
    assert len(told) <= 10
    facts = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    assert [line.split(maxsplit=1) for line in told] == [[*fact] for fact in facts.items()]
    assert facts["bara"] == bara.__version__
    assert "digits" in facts["data"]
    assert "sim" in facts["extras"].split(", ")


def test_doctor_names_the_extra_that_lacks_a_package(monkeypatch):
    def version(package):
        if package == "uvicorn":
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr("bara.cli.doctor.version", version)
    facts = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    assert facts["lacking"] == "dashboard (uvicorn)"
    assert "dashboard" not in facts["extras"]
