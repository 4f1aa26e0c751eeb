"""The paper's figures and tables: which runs they are made of, and what becomes of them."""

import math
import statistics

import pytest
from refusals import refused

from bara.errors import ConfigError, UnknownNameError
from bara.paper.analysis import analyse, standing
from bara.paper.exhibits import BARA, EXHIBITS, PAPERS, UNBOUND, UNLIMITED, Scale, exhibits, union
from bara.paper.regimes import REGIMES, Regime
from bara.reports.result import Result
from bara.reports.statistics import significance
from bara.runs.play import play_run

DIGITS = ["digits"]


def result(allocator, seed, final, rounds=(), setting="figures-digits", share=None):
    """A run that played these (n, estimate) and ended there."""
    history = [{"round": 0, "n": 0, "cost": 0.0, "accuracy": 0.1}]
    history += [
        {"round": t, "n": n, "cost": 1.0, "accuracy": final}
        | ({} if told is None else {"estimate": told})
        for t, (n, told) in enumerate(rounds, 1)
    ]
    identity = {
        "mechanism": "bid-price-first",
        "dataset": "digits",
        "clients": 20,
        "budget": 1500.0,
        "spent": 1.0,
    }
    return Result(
        allocator=allocator,
        seed=seed,
        rounds=len(history) - 1,
        ended="",
        accuracy_final=final,
        accuracy_last10=final,
        accuracy_best=final,
        history=history,
        setting=setting,
        share=share,
        **identity,
    )


def test_all_are_every_figure_and_table():
    figures, others = (
        ["fig1", "fig2", "fig3", "fig4"],
        ["table1", "table2", "ablation", "regimes", "border"],
    )
    assert [one.name for one in exhibits(["all"])] == figures + others
    assert [one.name for one in exhibits(["fig4", "fig1", "fig4"])] == ["fig4", "fig1"]
    with refused(UnknownNameError, "'fig33'", "'fig3'"):
        exhibits(["fig33"])


def test_a_run_that_several_figures_show_is_run_once():
    scale = Scale(seeds=2, searched=3)
    first = scale.cells(EXHIBITS["fig1"], DIGITS)
    shared = union(
        [first, scale.cells(EXHIBITS["fig2"], DIGITS), scale.cells(EXHIBITS["fig4"], DIGITS)]
    )
    assert len(first) == len(shared) == 2 * 10
    assert len(union([first, scale.cells(EXHIBITS["fig3"], DIGITS)])) == 2 * (10 + 3)


def test_a_deadline_in_the_shares_alone_leaves_everybody_else_without_one():
    scale = Scale(seeds=1, changes=UNBOUND)
    runs = {}
    for cell in scale.cells(EXHIBITS["fig1"].unbound(), ["digits"]):
        runs[cell.config.allocator.label] = cell.config
    assert {config.budget.max_rounds for config in runs.values()} == {1000}
    with_shares = [label for label in runs if "horizon=" in label]
    assert {"even:horizon=200", "even:horizon=300", "even:horizon=400"} < set(with_shares)
    assert all(label.split(":")[0] in ("even", "increasing", "decreasing") for label in with_shares)
    assert {"bara:preset=paper", "random", "planner"} < runs.keys()


def test_the_search_spreads_over_all_n():
    assert Scale(searched=7).numbers(20) == [1, 4, 7, 10, 13, 16, 19]
    assert Scale(searched=19).numbers(20) == list(range(1, 20))
    assert Scale(searched=50).numbers(3) == [1, 2]
    with refused(ConfigError, "best n", "2", "1"):
        Scale(searched=1)


def test_scale_multiplies_the_samples_and_full_has_all():
    assert Scale().config("figures", "mnist").data.train_samples == 4000
    assert Scale(0.5).config("figures", "mnist").data.train_samples == 2000
    assert Scale(None).config("figures", "mnist").data.train_samples is None
    with refused(ConfigError, "--scale full", "digits"):
        Scale(None).config("figures", "digits")
    with refused(ConfigError, "--scale", "0"):
        Scale(0)
    with refused(ConfigError, "--scale", "nan"):
        Scale(math.nan)


@pytest.mark.parametrize("family", ["figures", "table1", "table2"])
def test_the_papers_own_size_has_its_networks_under_privacy_with_group_norm(family):
    full = {name: Scale(None).config(family, name).training.model for name in PAPERS}
    cifar = "cifar-cnn-private" if family == "table2" else "cifar-cnn"
    assert full == {"mnist": "mlp", "fashion-mnist": "cnn", "cifar10": cifar, "cifar100": cifar}
    for exhibit in EXHIBITS.values():
        assert Scale(None, seeds=1).cells(exhibit, list(PAPERS))


def test_a_figure_about_one_dataset_shows_another_where_that_is_not_wanted():
    assert EXHIBITS["fig4"].datasets(["mnist", "fashion-mnist"]) == ["fashion-mnist"]
    assert EXHIBITS["fig4"].datasets(["mnist", "cifar10"]) == ["mnist"]


def test_wherever_bara_is_shown_it_is_shown_in_three_readings():
    for name, exhibit in EXHIBITS.items():
        assert exhibit.methods.items() >= BARA.items(), name


def test_accuracies_come_with_intervals_and_paired_differences():
    runs = [result("even", seed, 0.5 + seed / 10) for seed in (0, 1, 2)]
    runs += [result("bara", seed, 0.6 + seed / 10 + seed / 100) for seed in (0, 1, 2)]
    shown = analyse(EXHIBITS["fig1"], runs, DIGITS, Scale())
    bara, even = shown.rows
    assert (even["method"], even["less_EA"], even["p"]) == ("EA", None, None)
    assert bara["final"] == pytest.approx(0.71)
    assert bara["less_EA"] == pytest.approx(0.11)
    assert bara["less_EA_margin"] == pytest.approx(0.01 * 4.3027 / 3**0.5, rel=1e-4)
    assert bara["p"] is None  # three seeds: an interval, no test
    assert shown.measured == "digits: best BARA (ours) (71.0), against EA: BARA (ours) +11.0 ± 2.5."


def test_from_five_seeds_on_there_is_a_p_value():
    runs = [result("even", seed, 0.5) for seed in range(5)]
    runs += [result("bara", seed, 0.6 + seed / 100) for seed in range(5)]
    shown = analyse(EXHIBITS["fig1"], runs, DIGITS, Scale(seeds=5))
    assert shown.rows[0]["p"] < 0.001
    assert "(p = 7" in shown.measured


def test_regret_by_hand():
    """Alone, n = 1 comes to .5, 10 to .8 (the best), 19 to .6.

    BARA plays 1, 10, 19 and estimates nothing, .9, .7.
    """
    alone = [
        result(f"fixed:n={n}", seed, final)
        for n, final in ((1, 0.5), (10, 0.8), (19, 0.6))
        for seed in (0, 1)
    ]
    played = [result("bara", seed, 0.7, [(1, None), (10, 0.9), (19, 0.7)]) for seed in (0, 1)]
    rows = analyse(EXHIBITS["fig3"], alone + played, DIGITS, Scale(seeds=2, searched=3)).rows
    assert [row["best_n"] for row in rows] == [10, 10, 10]
    assert [row["real"] for row in rows] == pytest.approx([0.3, 0.15, 0.5 / 3])
    assert rows[0]["predicted"] is None
    assert [row["predicted"] for row in rows[1:]] == pytest.approx([-0.1, 0.0])


def test_a_seed_that_ends_early_leaves_the_others_and_the_number_is_told():
    """Seed 0 plays two rounds at n = 1, which comes to .5 alone.

    Seed 1 a third, at n = 10, the best: .8.
    """
    alone = [
        result(f"fixed:n={n}", seed, final)
        for n, final in ((1, 0.5), (10, 0.8), (19, 0.6))
        for seed in (0, 1)
    ]
    played = [
        result("bara", 0, 0.7, [(1, 0.8)] * 2),
        result("bara", 1, 0.7, [(1, 0.8), (1, 0.8), (10, 0.8)]),
    ]
    shown = analyse(EXHIBITS["fig3"], alone + played, DIGITS, Scale(seeds=2, searched=3))
    assert [row["seeds"] for row in shown.rows] == [2, 2, 1]
    assert [row["real"] for row in shown.rows] == pytest.approx([0.3, 0.3, 0.2])
    assert "at t = 2, the last round of all 2 seeds" in shown.measured


def test_the_best_n_without_the_budget_is_searched_for_where_it_is_asked_for():
    """With one budget n = 1 is best; without one n = 19 is, which then plays all rounds."""
    scale = Scale(seeds=1, searched=2, unlimited=True)
    grid = scale.cells(EXHIBITS["fig3"], DIGITS)
    assert len(grid) == 3 + 2 + 2
    assert len(union([grid])) == len(grid)
    assert max(cell.config.purse().total for cell in grid) == 1000 * min(
        cell.config.purse().total for cell in grid
    )
    runs = [
        result("fixed:n=1", 0, 0.7),
        result("fixed:n=19", 0, 0.5),
        result("bara", 0, 0.7, [(1, 0.6)]),
    ]
    runs += [
        result(f"fixed:n={n}", 0, final, share=UNLIMITED) for n, final in ((1, 0.7), (19, 0.9))
    ]
    (row,) = analyse(EXHIBITS["fig3"], runs, DIGITS, scale).rows
    assert (row["best_n"], row["predicted"], row["real"]) == (
        19,
        pytest.approx(0.3),
        pytest.approx(0.2),
    )


def played(setting, finals):
    """A run of each allocator for every seed, with the final accuracy of each."""
    return [
        result(name, seed, final, setting=setting)
        for name, of in finals.items()
        for seed, final in enumerate(of)
    ]


def test_a_regime_has_everybodys_distance_from_even_allocation_and_the_bound():
    """Of the n tried after stage 1 the one of the highest mean
    is the bound, whichever seed it wins.
    """
    regime = next(iter(REGIMES))
    finals = {
        "even": [0.5, 0.6],
        "bara": [0.4, 0.5],
        "explored:n=1": [0.1, 0.9],
        "explored:n=19": [0.6, 0.7],
    }
    rows = analyse(
        EXHIBITS["regimes"], played(f"regimes-{regime}", finals), [], Scale(searched=2)
    ).rows
    by_method = {row["method"]: row for row in rows}
    assert by_method.keys() == {"EA", "BARA (ours)", "bound"}
    assert by_method["bound"]["allocator"] == "explored:n=19"
    assert by_method["bound"]["less_EA"] == pytest.approx(0.1)
    assert {standing(row) for row in rows if row["method"] == "BARA (ours)"} == {-1}
    assert (rows[0]["swing"], rows[0]["money"]) == (REGIMES[regime].swing, REGIMES[regime].money)


def test_on_real_data_the_bound_stands_beside_the_readings_too():
    finals = {
        "even": [0.5, 0.6],
        "bara": [0.4, 0.5],
        "explored:n=1": [0.1, 0.9],
        "explored:n=19": [0.6, 0.7],
    }
    shown = analyse(EXHIBITS["border"], played("border-early", finals), [], Scale(searched=2))
    assert {row["method"]: row["allocator"] for row in shown.rows}["bound"] == "explored:n=19"
    assert shown.measured.startswith(
        "digits, an early curve that swings, half the money: best bound (65.0)"
    )


def test_how_often_n_changes_is_counted_from_the_first_round_of_stage_two():
    """39 rounds of stage 1 alternate and do not count.

    Then n = 7, 7, 8, 8, 8: one change in four steps.
    """
    regime = next(iter(REGIMES))
    rounds = [(1 + t % 2, None) for t in range(39)] + [(n, None) for n in (7, 7, 8, 8, 8)]
    runs = [result(name, 0, 0.5, rounds, setting=f"regimes-{regime}") for name in ("even", "bara")]
    rows = analyse(EXHIBITS["regimes"], runs, [], Scale()).rows
    assert [row["n_changes"] for row in rows] == [0.25, 0.25]


def test_every_reading_comes_with_how_often_its_n_changes():
    """In a step of three after stage 1 n changes once."""
    rounds = [(1, None)] * 39 + [(n, None) for n in (7, 7, 7, 9)]
    runs = [result("bara", 0, 0.5, rounds, setting="figures-mnist")]
    (row,) = analyse(EXHIBITS["ablation"], runs, ["mnist"], Scale()).rows
    assert row["n_changes"] == pytest.approx(1 / 3)


def test_the_map_corrects_for_the_number_of_its_regimes():
    """Two intervals just leave out zero, and mean nothing among three; a clear one stays."""
    doubtful = [0.511, 0.52, 0.53, 0.54, 0.5]
    clear = [0.4, 0.41, 0.39, 0.4, 0.42]
    assert 0.025 < significance([value - 0.5 for value in doubtful]) < 0.05
    runs = []
    for regime, bara in zip(REGIMES, (doubtful, doubtful, clear), strict=False):
        runs += played(f"regimes-{regime}", {"even": [0.5] * 5, "bara": bara})
    measured = analyse(EXHIBITS["regimes"], runs, [], Scale(seeds=2)).measured
    assert "ahead of EA in 2, behind in 1 of 3" in measured
    assert "corrected for 3 regimes, ahead in 0, behind in 1" in measured


def test_the_map_says_in_how_many_regimes_each_is_ahead_and_behind():
    first, second, *_ = REGIMES
    runs = played(f"regimes-{first}", {"even": [0.5, 0.6], "bara": [0.4, 0.5]})
    runs += played(f"regimes-{second}", {"even": [0.5, 0.6], "bara": [0.5, 0.7]})
    shown = analyse(EXHIBITS["regimes"], runs, [], Scale(seeds=2))
    assert (
        shown.measured == "BARA (ours): ahead of EA in 0, behind in 1 of 2 (-10.0 to +5.0 points)."
    )
    assert "27 regimes" in shown.size
    assert "8 seeds each" in shown.size


def test_regimes_are_the_papers_market_and_take_changes_of_keys_that_they_have():
    scale = Scale(changes=("budget.total=60", "clients.count=6", "data.train_samples=9"))
    configs = {name: scale.config("regimes", name) for name in REGIMES}
    assert {config.budget.total for config in configs.values()} == {30, 60, 120}
    assert {config.clients.count for config in configs.values()} == {6}
    assert {config.mechanism.name for config in configs.values()} == {"bid-price-first"}
    assert {Scale().config("regimes", name).budget.total for name in REGIMES} == {750, 1500, 3000}
    curves = {tuple(config.federation.options.items()) for config in configs.values()}
    assert len(curves) == 9


@pytest.mark.parametrize("swing", [1, 2, 5])
def test_the_swing_of_a_regime_is_what_seven_clients_make(swing):
    """Rounds far out on the curve, where it has stopped rising, differ by noise alone:
    a deviation of swing points.
    """
    config = Scale(changes=("budget.total=1e6", "budget.max_rounds=3000")).config(
        "regimes", Regime(2.0, swing, 1).name
    )
    accuracy = [
        entry["accuracy"]
        for entry in play_run(config.with_allocator("fixed:n=7", 0)).history[1000:]
    ]
    assert 100 * statistics.pstdev(accuracy) == pytest.approx(swing, rel=0.15)


def test_an_n_that_was_not_tried_alone_counts_in_proportion():
    alone = [
        result("fixed:n=1", 0, 0.2),
        result("fixed:n=10", 0, 0.8),
        result("fixed:n=19", 0, 0.8),
    ]
    rows = analyse(
        EXHIBITS["fig3"], [*alone, result("bara", 0, 0.7, [(4, 0.8)])], DIGITS, Scale(1.0, 1, 3)
    ).rows
    assert rows[0]["real"] == pytest.approx(0.4)


def test_a_failed_method_leaves_the_others_and_no_run_at_all_says_so():
    shown = analyse(EXHIBITS["fig1"], [result("even", 0, 0.5)], DIGITS, Scale())
    assert [row["method"] for row in shown.rows] == ["EA"]
    assert analyse(EXHIBITS["fig1"], [], DIGITS, Scale()).measured == "No run ended."
    assert (
        analyse(EXHIBITS["fig3"], [result("bara", 0, 0.5, [(1, 0.5)])], DIGITS, Scale()).measured
        == "No run ended."
    )


def test_tables_have_what_the_paper_reports_beside_what_was_measured():
    runs = [
        result(allocator, 0, 0.5, setting="table1-mnist")
        for allocator in ("even", "bara", "planner")
    ]
    rows = analyse(EXHIBITS["table1"], runs, ["mnist"], Scale()).rows
    assert [row["paper"] for row in rows] == [84.88, 87.64, None]


def test_the_size_of_every_run_is_told():
    size = analyse(
        EXHIBITS["fig3"], [], ["mnist", "digits"], Scale(0.5, seeds=4, changes=("budget.total=9",))
    ).size
    assert "MNIST 2,000 training and 1,000 evaluation samples" in size
    assert "digits all training" in size
    assert "4 seeds; n* among 7 numbers of clients; budget.total=9" in size
