import pytest
from refusals import refused

from bara import MECHANISMS, Capabilities, Session
from bara.allocators import Even
from bara.errors import ConfigError
from bara.records import RoundRecord
from bara.reports.comparison import Failure
from bara.reports.statistics import estimate, paired
from bara.runs.config import Config
from bara.runs.factory import build_federation
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.studies.grid import cells, outcomes

SMALL = [
    "budget.total=40",
    "budget.max_rounds=12",
    "clients.count=6",
    "federation.engine=synthetic",
]


def config(*changes):
    return Config.load(None, [*SMALL, "allocator.name=even", *changes])


def test_a_result_adds_up():
    result = play_run(config())
    assert result.spent == pytest.approx(sum(result.payments.values()))
    assert result.spent == pytest.approx(sum(entry["cost"] for entry in result.history))
    assert result.accuracy_final == result.history[-1]["accuracy"]
    assert result.accuracy_last10 == pytest.approx(
        sum(e["accuracy"] for e in result.history[-10:]) / 10
    )
    assert result.accuracy_best == max(entry["accuracy"] for entry in result.history)
    assert (result.rounds, result.history[0]["round"], result.ended) == (
        12,
        0,
        "the deadline is reached",
    )


def test_the_same_configuration_gives_the_same_result_and_another_seed_another():
    assert play_run(config()) == play_run(config())
    assert play_run(config("seed=1")) != play_run(config())


def test_what_lying_earned_is_measured_against_the_truthful_twin():
    """What the first two clients were paid beyond their costs,
    which are what the truthful twin bids.
    """
    overbidding, truthful = config("clients.strategic=2", "clients.strategy=overbid(0.2)"), config()
    costs = build_federation(truthful).bids

    def profit(settings):
        records = []
        play_run(
            settings, lambda step: records.append(step) if isinstance(step, RoundRecord) else None
        )
        return sum(
            paid - costs(record.round).prices[costs(record.round).clients.index(client)]
            for record in records
            for client, paid in record.payments.items()
            if client in ("client-0", "client-1")
        )

    lying = play_run(overbidding).lying
    assert lying["profit"] == pytest.approx(profit(overbidding) / 1e6)
    assert lying["truthful_profit"] == pytest.approx(profit(truthful) / 1e6)
    assert lying["gain"] == pytest.approx((profit(overbidding) - profit(truthful)) / 1e6)
    assert lying["gain"] != 0
    assert play_run(truthful).lying is None


def test_strategic_clients_of_a_run_that_asks_have_a_twin_that_does_not(tmp_path):
    asking = config(
        "clients.strategic=2",
        "budget.target=0.11",
        "budget.otherwise=ask",
        "allocator.name=planner",
        "federation.delta=0",
    )
    with RunFolder.new(tmp_path / "run", asking) as folder:
        assert play_run(asking, folder=folder).lying is not None


def test_overbidding_loses_money_under_a_truthful_mechanism():
    gains = [
        play_run(config("clients.strategic=1", "clients.strategy=overbid(0.5)", f"seed={s}")).lying[
            "gain"
        ]
        for s in range(5)
    ]
    assert sum(gains) < 0


def test_a_comparison_runs_every_allocator_with_every_seed():
    grid = cells(config(), ["even", "fixed:n=2"], 3)
    results = list(outcomes(grid, jobs=1))
    assert {(r.allocator, r.seed) for r in results} == {
        (a, s) for a in ("even", "fixed:n=2") for s in range(3)
    }
    assert {r.seed: r for r in results if r.allocator == "even"}[1] == play_run(config("seed=1"))


def test_a_comparison_goes_on_where_it_stopped(tmp_path):
    grid = cells(config(), ["even", "random"], 3)
    first = outcomes(grid, tmp_path, jobs=1)
    done = [next(first), next(first)]
    first.close()

    def refuse_repeats(settings):
        played.append((settings.allocator.label, settings.seed))
        return play_run(settings)

    played = []
    again = list(outcomes(grid, tmp_path, jobs=1, play=refuse_repeats))
    assert len(again) == 6
    assert len(played) <= 4
    assert all((r.allocator, r.seed) not in played for r in done)
    assert sorted(again, key=str) == sorted(outcomes(grid, jobs=1), key=str)


def test_one_failed_run_does_not_lose_the_others():
    def sometimes(settings):
        if settings.seed == 1:
            raise KeyError("this one breaks")
        return play_run(settings)

    done = list(outcomes(cells(config(), ["even"], 3), jobs=1, play=sometimes))
    (failed,) = (outcome for outcome in done if isinstance(outcome, Failure))
    assert (failed.allocator, failed.seed) == ("even", 1)
    assert failed.error.startswith("KeyError: 'this one breaks'")
    assert len(done) == 3


@pytest.mark.parametrize(
    ("allocators", "seeds", "facts"),
    [
        (["evn"], 1, ("'evn'", "'even'")),
        ([], 1, ("allocator", "compare", "at least one")),
        (["even"], 0, ("seeds", "1", "0")),
        (["even"], 2.5, ("seeds", "2.5")),
        (["even:x=1"], 1, ("'even'", "'x'", "carry_over")),
        (
            ["fractions:Fraction"],
            1,
            ("'fractions:Fraction'", "ask", "tell"),
        ),
    ],
)
def test_a_comparison_is_checked_before_anything_runs(allocators, seeds, facts):
    with refused(ConfigError, *facts):
        cells(config(), allocators, seeds)


def test_intervals_by_hand():
    """Values 1, 2, 3: mean 2, deviation 1, t(0.975, 2) = 4.302653: margin 4.302653 / sqrt(3)."""
    value = estimate([1, 2, 3])
    assert (value.mean, value.count) == (2, 3)
    assert value.margin == pytest.approx(4.302652729 / 3**0.5)
    assert estimate([5]).margin is None


def test_differences_pair_by_seed():
    difference = paired({0: 3.0, 1: 5.0, 2: 9.0}, {1: 4.0, 0: 1.0})
    assert (difference.mean, difference.count) == (1.5, 2)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_a_damaged_result_is_run_again(tmp_path):
    grid = cells(config(), ["even"], 1)
    first = list(outcomes(grid, tmp_path, jobs=1))
    next(tmp_path.glob("*.json")).write_text("{")
    assert list(outcomes(grid, tmp_path, jobs=1)) == first


def test_the_same_allocator_twice_is_compared_once():
    assert len(cells(config(), ["even", "even"], 2)) == 2


def test_a_place_that_cannot_keep_results_is_named_before_anything_runs(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    with refused(ConfigError, "results", place):
        list(outcomes(cells(config(), ["even"], 1), place, play=None))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("clients.late_rate=1", "clients.late_rate"),
        ("clients.poisoners=2", "clients.poisoners"),
        ("data.name=mnist", "data"),
        ("training.model=cnn", "training"),
    ],
)
def test_the_synthetic_federation_refuses_what_it_would_ignore(change, named):
    with refused(ConfigError, named, "synthetic", "federation.engine=simulator"):
        play_run(config(change))


@pytest.mark.parametrize("lacks", [{}, {"evidence": "it measures nothing"}])
def test_privacy_is_never_promised_by_saying_nothing_of_it(lacks, make_federation):
    federation = make_federation()
    federation.capabilities = Capabilities(lacks=lacks)
    with refused(ConfigError, "FLMarket", "SyntheticFederation", "Capabilities(protects=True)"):
        Session(Even(), MECHANISMS.build("fl-market"), federation)
    federation.capabilities = Capabilities(protects=True, lacks=lacks)
    Session(Even(), MECHANISMS.build("fl-market"), federation)


def test_what_is_lacking_must_be_something_that_can_be_required():
    with refused(ConfigError, "capabilities", "columns", "evidence", "'evidense'"):
        Capabilities(lacks={"evidense": "it measures nothing"})


def test_training_keys_are_checked_for_engines_of_ours_alone():
    with refused(ConfigError, "training.local_epochs", "fedsgd", "5"):
        Config.load(None, ["federation.engine=simulator", "training.local_epochs=5"])
    assert (
        Config.load(
            None, ["federation.engine=my.own:engine", "training.local_epochs=5"]
        ).training.local_epochs
        == 5
    )
