"""bara in Python: names, classes and objects,
from keyword arguments to frames and figures, as the verbs do it.
"""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn
from typer.testing import CliRunner

import bara
from bara.allocators import Bara, Even
from bara.cli import app
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.errors import ConfigError, InterruptionError, UnknownNameError
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

SMALL = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 10}, "clients": 6}


class Three:
    """Recruits so many clients, always."""

    def __init__(self, n=3):
        self.n = n

    def ask(self, _purse):
        return bara.Offer.recruit(self.n)

    def tell(self, record):
        pass


def changes(tree, prefix=""):
    return [word for key, value in tree.items() for word in ("--set", f"{prefix}{key}={value}")]


FLAT = {
    "federation.engine": "synthetic",
    "budget.total": 40,
    "budget.max_rounds": 10,
    "clients.count": 6,
}


def test_a_run_is_what_the_verb_runs(tmp_path):
    here = bara.run(SMALL, allocator="even", out=tmp_path / "here")
    done = CliRunner().invoke(
        app,
        [
            "run",
            "--json",
            "--out",
            str(tmp_path / "there"),
            *changes(FLAT | {"allocator.name": "even"}),
        ],
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(here.to_json()))
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        path.name for path in (tmp_path / "there").iterdir()
    }


@pytest.mark.parametrize(
    "source",
    [SMALL, bara.Config(**SMALL), "experiment.toml"],
    ids=["mapping", "config", "path as text"],
)
def test_an_experiment_is_a_mapping_a_config_or_a_file(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(bara.Config.load(SMALL).to_toml())
    assert bara.run(source, allocator="even") == bara.run(**SMALL, allocator="even")


def test_nothing_is_left_behind_unless_a_folder_is_given(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert bara.run(SMALL).folder is None
    bara.compare(SMALL, allocators=["even"], seeds=1, jobs=1)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("part", "label"),
    [
        ("even:carry_over=true", "even:carry_over=true"),
        (Even, "even"),
        (Even(carry_over=True), "even:carry_over=true"),
        (Bara, "bara"),
        (Three, f"{__name__}:Three"),
        (Three(2), "Three"),
        (lambda clients: Three(clients - 1), "<lambda>"),
    ],
)
def test_an_allocator_is_a_name_a_class_a_function_or_an_object(part, label):
    result = bara.run(SMALL, allocator=part)
    assert result.allocator.endswith(label.rpartition(":")[2] if ":Three" in label else label)
    assert result.rounds


def test_an_object_is_left_as_it_was_and_runs_twice_alike():
    class Counting(Three):
        told = 0

        def tell(self, _record):
            self.told += 1

    mine = Counting()
    assert bara.run(SMALL, allocator=mine) == bara.run(SMALL, allocator=mine)
    assert mine.told == 0


def test_mechanisms_federations_and_data_may_be_objects_too():
    digits = bara.datasets.load("digits")
    bidders = Bidders(6, Distribution.parse("uniform(0.5, 1.5)"), 1)
    federation = SyntheticFederation(bidders, LearningCurve(a_max=0.7), 1, 0.0)
    result = bara.run(
        budget=40,
        federation=federation,
        mechanism=bara.mechanisms.QualityAuction(reserve=2),
        allocator=Three,
    )
    assert (result.dataset, result.mechanism) == ("SyntheticFederation", "quality:reserve=2")
    trained = bara.run(
        data=digits, budget={"total": 20, "max_rounds": 3}, clients=6, allocator="even"
    )
    named = bara.run(
        data="digits", budget={"total": 20, "max_rounds": 3}, clients=6, allocator="even"
    )
    assert trained.history == named.history


@pytest.mark.path
def test_a_model_a_metric_a_loss_and_a_partition_may_be_objects_too(tmp_path):
    class Small(nn.Module):
        def __init__(self, shape, classes):
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))

        def forward(self, x):
            return self.layers(x)

    def thirds(dataset, _clients, _seed):
        return dict(zip("abc", np.array_split(np.arange(len(dataset.y_train)), 3), strict=True))

    def top_1(scores, targets):
        return (scores.argmax(axis=1) == targets).mean()

    def hinge(scores, targets):
        return nn.functional.multi_margin_loss(scores, targets)

    mine = {
        "data": {"train_samples": 300},
        "budget": {"total": 20, "max_rounds": 2},
        "allocator": "even",
    }
    mine |= {"clients": {"partition": thirds}, "federation": {"workers": 2}}
    mine["training"] = {"model": Small, "metric": top_1, "loss": hinge}
    kept = bara.run(mine, out=tmp_path)
    assert set(kept.payments) <= set("abc")
    assert (kept.metric, kept.measure) == ("object:top_1", "top 1")
    found = bara.compare(mine, allocators=["even"], seeds=2, jobs=2)  # on other processes
    assert found.results[0].accuracy_final == kept.accuracy_final
    assert bara.run(bara.Config.load(mine)).accuracy_final == kept.accuracy_final
    with refused(UnknownNameError, "'thirds'", "object"):
        bara.resume(tmp_path)
    parts = {"training": mine["training"], "clients": mine["clients"]}
    with refused(ConfigError, "partition", "'thirds'", "'top_1'"):
        bara.resume(tmp_path, training=mine["training"], clients={"partition": top_1})
    assert bara.resume(tmp_path, **parts) == kept


def test_a_model_that_is_there_already_begins_with_its_weights():
    small = {
        "data": {"train_samples": 300},
        "budget": {"total": 20, "max_rounds": 1},
        "allocator": "even",
    }
    mine = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    one, two = (bara.run(small, clients=4, training={"model": mine}, seed=seed) for seed in (0, 0))
    assert one == two
    with torch.no_grad():
        mine[1].weight.zero_()
        mine[1].bias.zero_()
    zero = bara.run(small, clients=4, training={"model": mine})
    assert zero.history[0]["loss"] == pytest.approx(math.log(10), rel=1e-6)


def test_a_kept_run_of_an_object_says_that_it_is_resumed_with_it(tmp_path):
    def stop(step):
        if isinstance(step, bara.RoundRecord) and step.round == 4:
            raise bara.errors.RunStoppedError("stopped here")

    with refused(
        bara.errors.RunStoppedError, f"bara.resume('{tmp_path / 'run'}', allocator=...)"
    ) as stopped:
        bara.run(SMALL, allocator=Three(2), out=tmp_path / "run", observe=stop)
    assert stopped.value.so_far.rounds == 4
    assert bara.open(tmp_path / "run").rounds == 4
    done = CliRunner().invoke(app, ["resume", str(tmp_path / "run")])
    assert (
        done.exit_code,
        "hand it over again, as in bara.resume(DIR, allocator=...)" in done.output,
    ) == (2, True)
    with refused(ConfigError, "'Three'", "'even'"):
        bara.resume(tmp_path / "run", allocator=Even)
    resumed = bara.resume(tmp_path / "run", allocator=Three(2))
    assert resumed == bara.run(SMALL, allocator=Three(2))
    assert bara.open(tmp_path / "run") == resumed


def test_a_run_is_opened_from_its_ledger_alone(tmp_path):
    result = bara.run(SMALL, allocator="even", out=tmp_path / "run")
    for place in (tmp_path / "run" / "ledger.db", f"sqlite:///{tmp_path / 'run' / 'ledger.db'}"):
        assert bara.open(place).history == result.history
    with refused(ConfigError, "run", "comparison", f"'{tmp_path / 'elsewhere'}'"):
        bara.open(tmp_path / "elsewhere")


@pytest.mark.path
def test_what_main_defines_is_compared_on_other_processes_and_known_again(tmp_path):
    """As a notebook's classes are: of `__main__`, which no import path leads to."""
    script = textwrap.dedent(f"""
        import bara, sys
        def double(n):
            return 2 * n
        class Mine:
            def ask(self, purse):
                return bara.Offer.recruit(double(2))
            def tell(self, record):
                pass
        allocators = {{"mine": Mine(), "class": Mine, "even": "even"}}
        found = bara.compare({SMALL!r}, allocators=allocators, seeds=2, jobs=2,
                             out={str(tmp_path / "out")!r})
        assert not found.failures, found.failures
        print(*sorted({{result.allocator for result in found.results if result.spent}}))
    """)
    (tmp_path / "first.py").write_text(script)
    (tmp_path / "second.py").write_text("# elsewhere, in another session\n" + script)
    (tmp_path / "third.py").write_text(script.replace("2 * n", "n + 1"))
    written = []
    for name in ("first.py", "second.py"):
        done = subprocess.run(
            [sys.executable, tmp_path / name], capture_output=True, text=True, check=False
        )
        assert done.stdout == "class even mine\n", done.stderr
        written.append(
            {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("?" * 16 + ".json")}
        )
    assert written[0] == written[1]
    done = subprocess.run(
        [sys.executable, tmp_path / "third.py"], capture_output=True, text=True, check=False
    )
    assert "made by other code" in done.stderr


def test_what_cannot_be_sent_to_other_processes_is_told_in_one_line():
    class Holding(Three):
        stream = (n for n in range(3))

    with refused(ConfigError, "processes", "'generator'", "jobs=1"):
        bara.compare(SMALL, allocators=[Holding], seeds=2, jobs=2)
    mine = Three()
    mine.stream = Holding.stream
    with refused(ConfigError, "allocator 'Three'", "'generator'", "class"):
        bara.run(SMALL, allocator=mine)


def test_two_objects_of_one_name_are_refused():
    with refused(ConfigError, "allocators", "'Three'", "{'one': ..., 'other': ...}"):
        bara.compare(SMALL, allocators=[Three(1), Three(2)], seeds=1)


def test_mechanisms_and_any_key_are_varied_and_tables_and_figures_tell_them_apart():
    found = bara.compare(
        SMALL,
        allocators=["even", "random"],
        mechanisms=["bid-price-first", "proportional-share"],
        grid={"clients.bids": ["uniform(1, 2)", "constant(1)"]},
        seeds=2,
        jobs=1,
    )
    frame = found.to_frame()
    assert len(frame) == 16
    assert set(frame["mechanism"]) == {"bid-price-first", "proportional-share"}
    assert set(frame["clients.bids"]) == {"uniform(1, 2)", "constant(1)"}
    head = found.to_markdown().splitlines()[0]
    assert head.startswith("| allocator | mechanism | bids | final |")
    lines = bara.reports.charts.charts_of(found)[1].lines
    assert len({line.look for line in lines}) == 8
    assert {line.look.colour for line in lines} == {0, 1}  # a colour for each allocator


def test_the_command_line_varies_with_set_what_python_varies_with_grid():
    words = [
        "compare",
        "--json",
        "--jobs",
        "1",
        "--seeds",
        "1",
        "--allocators",
        "even",
        *changes(FLAT),
    ]
    words += [
        "--mechanisms",
        "bid-price-first,fair",
        "--set",
        "clients.bids=uniform(1, 2),constant(1)",
    ]
    tree = json.loads(CliRunner().invoke(app, words).stdout)
    grid = {"clients.bids": ["uniform(1, 2)", "constant(1)"]}
    here = bara.compare(
        SMALL,
        allocators=["even"],
        mechanisms=["bid-price-first", "fair"],
        grid=grid,
        seeds=1,
        jobs=1,
    )
    assert tree == json.loads(json.dumps(here.to_json()))


def test_a_second_comparison_joins_the_first_or_is_refused(tmp_path):
    common = {"seeds": 2, "jobs": 1, "out": tmp_path}
    first = bara.compare(SMALL, allocators=["even"], command="one", **common)
    again = bara.compare(SMALL, allocators=["random"], command="two", **common)
    assert again.results[:2] == first.results
    assert [r.allocator for r in bara.open(tmp_path).results] == [
        "even",
        "even",
        "random",
        "random",
    ]
    assert bara.open(tmp_path).command == "one\ntwo"
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 5
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with refused(
        ConfigError, f"'{tmp_path}'", "budget.total = 40.0", "--set budget.total=40.0,30.0"
    ):
        bara.compare(SMALL, budget={"total": 30}, allocators=["even"], **common)
    with refused(ConfigError, f"'{tmp_path}'", "kind"):
        bara.compare(suite="report", only=["digits-shards"], allocators=["even"], **common)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    varied = bara.compare(SMALL, grid={"budget.total": [30.0, 40.0]}, allocators=["even"], **common)
    assert [(r.allocator, r.varied["budget.total"]) for r in varied.results[::2]] == [
        ("even", 40.0),
        ("random", 40.0),
        ("even", 30.0),
    ]


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        ({"allocators": "even"}, ("list", "'even'")),
        ({"grid": {"seed": [1, 2]}}, ("seeds", "varied")),
        ({"grid": {"budget.total": []}}, ("budget.total", "[]")),
        (
            {"grid": {"mechanism.name": ["fair"]}, "mechanisms": ["fair"]},
            ("mechanisms", "mechanism.name"),
        ),
        ({"grid": {"training.memry": ["off"]}}, ("'training.memry'", "'training.memory'")),
        ({"allocators": ["evn"]}, ("'evn'", "'even'")),
        ({"budgets": [0, 1]}, ("budgets", "0, 1")),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(asked, facts):
    with refused(ConfigError, *facts):
        bara.compare(SMALL, seeds=1, **asked)


def test_where_every_run_fails_the_first_error_is_told():
    class Broken(Three):
        def ask(self, _purse):
            raise ZeroDivisionError("no way")

    with refused(bara.BaraError, "(2)", "Broken", "seed 0", "ZeroDivisionError: no way"):
        bara.compare(SMALL, allocators=[Broken], seeds=2, jobs=1)


def test_ctrl_c_ends_a_run_after_its_round_and_keeps_what_is_done():
    def press(step):
        if isinstance(step, bara.AwardedRound) and step.purse.round == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with refused(InterruptionError, "round 3") as stopped:
        bara.run(SMALL, allocator="even", observe=press)
    assert stopped.value.so_far.rounds == 3


@pytest.fixture
def heard():
    """Ctrl-C as a program hears it that has not said otherwise.

    What other tests started may have.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.default_int_handler)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_a_comparison_and_keeps_what_is_done(tmp_path):
    class Pressing(Three):
        def tell(self, record):
            if os.environ.get("PRESS") and record.round == 3:
                os.kill(os.getpid(), signal.SIGINT)

    common = {"allocators": ["even", Pressing], "seeds": 1, "jobs": 1, "out": tmp_path}
    os.environ["PRESS"] = "1"
    try:
        with refused(InterruptionError, "1 of 2", tmp_path) as stopped:
            bara.compare(SMALL, **common)
    finally:
        del os.environ["PRESS"]
    assert [result.allocator for result in stopped.value.so_far.results] == ["even"]
    assert [result.allocator for result in bara.open(tmp_path).results] == ["even"]
    assert len(bara.compare(SMALL, **common).results) == 2


def test_a_key_of_a_config_that_is_wrong_is_named():
    with refused(ConfigError, "'budget.totl'", "'budget.total'"):
        bara.Config(budget={"totl": 3})
    with refused(UnknownNameError, "'accuracy-over-round'", "'accuracy-over-rounds'"):
        bara.run(SMALL).plot("accuracy-over-round")
