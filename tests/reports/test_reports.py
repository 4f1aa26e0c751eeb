import io
import re
from dataclasses import replace

import pytest
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bara.cli.tables import Fitted
from bara.reports.charts import Chart, ChartLine, comparison_charts, run_charts
from bara.reports.comparison import Comparison
from bara.reports.html import comparison_report, run_report
from bara.reports.svg import draw
from bara.reports.terminal import comparison_table, run_summary, spark_line
from bara.runs.config import Config
from bara.runs.play import play_run

HOSTILE = '<script>alert("x")</script>'


def result(**changes):
    small = [
        "budget.total=40",
        "budget.max_rounds=12",
        "clients.count=6",
        "federation.engine=synthetic",
    ]
    return replace(play_run(Config.load(None, [*small, "allocator.name=even"])), **changes)


def text(renderable, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_the_page_of_a_run_says_that_corrections_are_not_in_its_payments():
    payments = run_report(result(), "", "bara run").partition("<h2>Payments</h2>")[2]
    assert "Corrections" in payments
    assert "bara ledger" in payments


def test_a_spark_line_spans_low_to_high_and_is_thinned():
    assert spark_line([0.0, 1.0]) == "▁█"
    assert len(spark_line(list(range(1000)), width=50)) == 50
    assert spark_line([]) == ""
    assert spark_line([2, 2]) == "▁▁"


@pytest.mark.parametrize("width", [30, 60, 80])
def test_a_spark_line_has_its_newest_value_at_every_width(width):
    rising = result(history=[{"round": t, "accuracy": t / 200, "n": t} for t in range(201)])
    lines = text(run_summary(rising, {}), width=width).splitlines()
    assert sum(bool(re.search("▇█+ *│", line)) for line in lines) == 2


def test_a_hostile_client_name_shows_as_text_everywhere():
    bad = result(payments={HOSTILE: 5.0, "[bold]x": 1.0})
    page = run_report(bad, "", "bara run")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "[bold]x" in text(run_summary(bad, {}), width=120)


def test_the_comparison_fits_eighty_columns():
    lines = text(
        comparison_table([result(), result(allocator="even:carry_over=true")], [])
    ).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("even:carry_over=true") for line in lines)


def test_a_chart_says_in_words_what_it_shows():
    chart = Chart("Accuracy", "round", "accuracy", (ChartLine("even", [0, 1], [0.1, 0.9]),))
    assert 'aria-label="Accuracy, over round: even from 0.1 to 0.9"' in draw(chart)
    assert "legend" not in draw(chart)


def test_large_amounts_on_an_axis_have_thousands_separators_and_fractions_stay_short():
    lines = (ChartLine("even", [0, 40_000], [0.1, 1_500_000]),)
    drawn = draw(Chart("Spent", "round", "spent", lines))
    assert ">1,500,000</text>" in drawn
    assert "e+" not in drawn
    shares = (ChartLine("even", [0, 1], [0.0, 0.3]),)
    for per_cent in (True, False):
        drawn = draw(Chart("Share", "round", "share", shares, per_cent=per_cent))
        assert max(map(len, re.findall(r">([0-9.,]+)(?: %)?</text>", drawn))) <= 4


def test_several_lines_have_a_legend_bands_and_room_below_zero():
    lines = (
        ChartLine("<one>", [0, 1], [0.5, -0.5], ([0.4, -0.6], [0.6, -0.4])),
        ChartLine("two", [0, 1], [0.1, 0.2]),
    )
    drawn = draw(Chart("Regret", "round", "regret", lines))
    assert "&lt;one&gt;</span>" in drawn
    assert drawn.count("<polygon") == 1
    assert ">-0.75</text>" in drawn or ">-1</text>" in drawn


def test_a_comparison_is_one_page_with_curves_differences_and_the_command():
    runs = [result(allocator=name, seed=seed) for name in ("even", HOSTILE) for seed in (0, 1)]
    page = comparison_report(Comparison(runs, [], "bara compare --seeds 2", "[budget]"))
    assert page.count('role="img"') == 5
    assert "vs first" in page
    assert "bara compare --seeds 2" in page
    assert "<script>" not in page
    assert "http" not in page


def test_a_run_that_ended_early_keeps_its_last_value_in_the_mean():
    long, short = result(), result(seed=1)
    short = replace(short, rounds=3, history=short.history[:4])
    charts = {chart.name: chart for chart in comparison_charts([long, short])}
    (accuracy,) = charts["accuracy-over-rounds"].lines
    assert accuracy.ys[-1] == (long.history[-1]["accuracy"] + short.history[3]["accuracy"]) / 2
    assert accuracy.xs[-1] == long.rounds
    (clients,) = charts["clients-per-round"].lines
    assert clients.ys[-1] == long.history[-1]["n"]  # but it recruits nobody any more


def test_the_axis_of_a_chart_on_a_page_fits_its_values_and_the_legend_shows_dashes():
    lines = tuple(ChartLine(f"line {k}", [0, 1], [0.81, 0.84 + k / 100]) for k in range(3))
    drawn = draw(Chart("Accuracy", "round", "accuracy", lines, per_cent=True))
    assert ">80 %</text>" in drawn
    assert ">0 %</text>" not in drawn
    for look in ("c0 d0", "c1 d1", "c2 d2"):
        assert drawn.count(f'<polyline class="{look}"') == 2  # the line, and its key


def test_a_value_that_never_changes_has_an_axis():
    level = ChartLine("level", [0, 1], [0.5, 0.5])
    assert ">50 %</text>" in draw(Chart("Accuracy", "round", "", (level,), per_cent=True))


@pytest.mark.parametrize("ys", [[19, 19], [0, 0], [-3, -3], [1500, 1500.5]])
def test_no_two_ticks_of_an_axis_have_the_same_label(ys):
    drawn = draw(Chart("Clients", "round", "", (ChartLine("n", [0, 1], ys),)))
    labels = re.findall(r'text-anchor="end">([^<]+)</text>', drawn)[:-1]  # the last is the round
    assert len(set(labels)) == len(labels) > 1


def test_what_is_compared_is_on_the_page_as_dots_around_zero():
    runs = [
        replace(result(allocator=name, seed=seed), accuracy_kept=reached)
        for name, reached in (("even", 0.5), ("planner", 0.6))
        for seed in (0, 1)
    ]
    page = comparison_report(Comparison(runs))
    assert "planner 60.0 %, difference +10.0 points" in page
    assert page.count('class="zero"') == 1
    assert page.count("<circle") == 3  # two accuracies, one difference


def test_what_the_allocator_believed_is_part_of_the_report():
    small = [
        "budget.total=40",
        "budget.max_rounds=12",
        "clients.count=6",
        "federation.engine=synthetic",
    ]
    planned = play_run(Config.load(None, [*small, "allocator.name=planner"]))
    assert "90 %" in run_charts(planned)[0].lines[1].name
    guessed = play_run(Config.load(None, [*small, "allocator.name=bara"]))
    assert "What the allocator believed at the end" in [
        chart.title for chart in run_charts(guessed)
    ]


def test_a_run_of_one_round_has_a_report():
    one = result()
    assert "<svg" in run_report(result(history=one.history[:1], rounds=0), "", "bara run")


def test_a_run_that_could_not_pay_its_first_round_is_part_of_a_comparison():
    empty = result(allocator="poor")
    empty = replace(empty, history=empty.history[:1])
    page = comparison_report(Comparison([result(), empty]))
    assert page.count('role="img"') == 5
    assert "poor" in page


def test_in_eighty_columns_a_long_name_is_folded_and_no_number_is_cut():
    long = "bara:estimator=curve:horizon=left:normalise=false"
    shown = text(
        comparison_table([result(seed=s, allocator=a) for a in ("even", long) for s in (0, 1)], [])
    )
    assert "…" not in shown
    assert long in "".join(
        line.split(" ")[1] for line in shown.splitlines() if line.startswith(" ")
    )


def test_where_a_table_has_no_room_its_cells_stand_one_below_the_other_and_no_number_is_cut():
    rows = comparison_table(
        [result(seed=s, allocator=a) for a in ("even", "planner") for s in (0, 1)], []
    )
    shown = text(rows, width=40)
    assert "  rounds: 12" in shown.splitlines()
    assert [line for line in shown.splitlines() if line in ("even", "planner")] == [
        "even",
        "planner",
    ]
    assert "rounds" in text(rows, width=80).splitlines()[1]


@pytest.mark.parametrize("count", range(1, 7))
def test_a_table_shows_every_number_at_every_width(count):
    heads = ["client", "won", "asked, EUR", "promised, EUR", "paid, EUR", "why not"][:count]
    cells = ["client-00", "7", "12.34", "9,876.50", "8,765.43", "unanswered"][:count]
    for width in range(20, 90):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for head in heads:
            table.add_column(head, no_wrap=head != "why not")
        table.add_row(*cells)
        assert {*cells} <= {*text(Fitted(table), width=width).split()}, width


def test_a_comparison_a_report_and_a_result_are_in_the_currency_of_the_budget():
    euros = result(currency="EUR", spent=31020.9433, budget=40000.0, payments={"north": 1234.5})
    assert " 31,020.94 EUR " in text(comparison_table([euros, euros], []))
    assert "for 31,020.94 EUR in" in repr(euros)
    assert '<td data-column="paid">1,234.50 EUR</td>' in run_report(euros, "", "bara run")
