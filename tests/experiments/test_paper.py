"""The paper's figures and tables: which runs they are made of, and what becomes of them."""

import math

import pytest

from bara.errors import ConfigError, UnknownNameError
from bara.experiments.paper.analysis import analyse
from bara.experiments.paper.exhibits import EXHIBITS, Scale, exhibits, union
from bara.experiments.results import Result

DIGITS = ["digits"]


def result(allocator, seed, final, rounds=(), setting="figures-digits"):
    """A run that played these (n, estimate) and ended there."""
    history = [{"round": 0, "n": 0, "cost": 0.0, "accuracy": 0.1}]
    history += [
        {"round": t, "n": n, "cost": 1.0, "accuracy": final} | ({} if told is None else {"estimate": told})
        for t, (n, told) in enumerate(rounds, 1)
    ]
    identity = {"mechanism": "bid-price-first", "dataset": "digits", "clients": 20, "budget": 1500.0, "spent": 1.0}
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
        **identity,
    )


def test_all_are_every_figure_and_table():
    assert [one.name for one in exhibits(["all"])] == ["fig1", "fig2", "fig3", "fig4", "table1", "table2", "ablation"]
    assert [one.name for one in exhibits(["fig4", "fig1", "fig4"])] == ["fig4", "fig1"]
    with pytest.raises(UnknownNameError, match="fig3"):
        exhibits(["fig33"])


def test_a_run_that_several_figures_show_is_run_once():
    scale = Scale(seeds=2, searched=3)
    first = scale.cells(EXHIBITS["fig1"], DIGITS)
    shared = union([first, scale.cells(EXHIBITS["fig2"], DIGITS), scale.cells(EXHIBITS["fig4"], DIGITS)])
    assert len(first) == len(shared) == 2 * 8
    assert len(union([first, scale.cells(EXHIBITS["fig3"], DIGITS)])) == 2 * (8 + 3)


def test_the_search_spreads_over_all_n():
    assert Scale(searched=7).numbers(20) == [1, 4, 7, 10, 13, 16, 19]
    assert Scale(searched=19).numbers(20) == list(range(1, 20))
    assert Scale(searched=50).numbers(3) == [1, 2]
    with pytest.raises(ConfigError, match="at least 2"):
        Scale(searched=1)


def test_scale_multiplies_the_samples_and_full_has_all():
    assert Scale().config("figures", "mnist").data.train_samples == 4000
    assert Scale(0.5).config("figures", "mnist").data.train_samples == 2000
    assert Scale(None).config("figures", "mnist").data.train_samples is None
    with pytest.raises(ConfigError, match="above 0"):
        Scale(0)
    with pytest.raises(ConfigError, match="above 0"):
        Scale(math.nan)


def test_a_figure_about_one_dataset_shows_another_where_that_is_not_wanted():
    assert EXHIBITS["fig4"].datasets(["mnist", "fashion-mnist"]) == ["fashion-mnist"]
    assert EXHIBITS["fig4"].datasets(["mnist", "cifar10"]) == ["mnist"]


def test_accuracies_come_with_intervals_and_paired_differences():
    runs = [result("even", seed, 0.5 + seed / 10) for seed in (0, 1, 2)]
    runs += [result("bara", seed, 0.6 + seed / 10 + seed / 100) for seed in (0, 1, 2)]
    shown = analyse(EXHIBITS["fig1"], runs, DIGITS, Scale())
    bara, even = shown.rows
    assert (even["method"], even["less_EA"], even["p"]) == ("EA", None, None)
    assert bara["final"] == pytest.approx(0.71)
    assert bara["less_EA"] == pytest.approx(0.11)
    assert bara["less_EA_margin"] == pytest.approx(0.01 * 4.3027 / 3**0.5, rel=1e-4)
    assert bara["p"] < 0.05
    assert "best BARA (71.0), BARA +11.0 against EA" in shown.measured


def test_regret_by_hand():
    """Alone, n = 1 comes to .5, 10 to .8 (the best), 19 to .6; BARA plays 1, 10, 19 and estimates nothing, .9, .7."""
    alone = [result(f"fixed:n={n}", seed, final) for n, final in ((1, 0.5), (10, 0.8), (19, 0.6)) for seed in (0, 1)]
    played = [result("bara", seed, 0.7, [(1, None), (10, 0.9), (19, 0.7)]) for seed in (0, 1)]
    rows = analyse(EXHIBITS["fig3"], alone + played, DIGITS, Scale(seeds=2, searched=3)).rows
    assert [row["best_n"] for row in rows] == [10, 10, 10]
    assert [row["real"] for row in rows] == pytest.approx([0.3, 0.15, 0.5 / 3])
    assert rows[0]["predicted"] is None
    assert [row["predicted"] for row in rows[1:]] == pytest.approx([-0.1, 0.0])


def test_an_n_that_was_not_tried_alone_counts_in_proportion():
    alone = [result("fixed:n=1", 0, 0.2), result("fixed:n=10", 0, 0.8), result("fixed:n=19", 0, 0.8)]
    rows = analyse(EXHIBITS["fig3"], [*alone, result("bara", 0, 0.7, [(4, 0.8)])], DIGITS, Scale(1.0, 1, 3)).rows
    assert rows[0]["real"] == pytest.approx(0.4)


def test_a_failed_method_leaves_the_others_and_no_run_at_all_says_so():
    shown = analyse(EXHIBITS["fig1"], [result("even", 0, 0.5)], DIGITS, Scale())
    assert [row["method"] for row in shown.rows] == ["EA"]
    assert analyse(EXHIBITS["fig1"], [], DIGITS, Scale()).measured == "No run ended."
    assert analyse(EXHIBITS["fig3"], [result("bara", 0, 0.5, [(1, 0.5)])], DIGITS, Scale()).measured == "No run ended."


def test_tables_have_what_the_paper_reports_beside_what_was_measured():
    runs = [result(allocator, 0, 0.5, setting="table1-mnist") for allocator in ("even", "bara")]
    rows = analyse(EXHIBITS["table1"], runs, ["mnist"], Scale()).rows
    assert [row["paper"] for row in rows] == [84.88, 87.64]


def test_the_size_of_every_run_is_told():
    size = analyse(EXHIBITS["fig3"], [], ["mnist", "digits"], Scale(0.5, seeds=4, changes=("budget.total=9",))).size
    assert "MNIST 2,000 training and 1,000 evaluation samples" in size
    assert "digits all training" in size
    assert "4 seeds; n* among 7 numbers of clients; budget.total=9" in size
