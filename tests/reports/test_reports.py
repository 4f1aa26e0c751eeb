import io
from dataclasses import replace

from rich.console import Console

from bara.experiments import Config, run
from bara.reports.html import chart, run_report
from bara.reports.terminal import comparison_table, run_summary, spark_line

HOSTILE = '<script>alert("x")</script>'


def result(**changes):
    small = ["budget.total=40", "budget.max_rounds=12", "clients.count=6", "federation.engine=synthetic"]
    return replace(run(Config.load(None, [*small, "allocator.name=even"])), **changes)


def text(renderable, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_a_spark_line_spans_low_to_high_and_is_thinned():
    assert spark_line([0.0, 1.0]) == "▁█"
    assert len(spark_line(list(range(1000)), width=50)) == 50
    assert spark_line([]) == ""
    assert spark_line([2, 2]) == "▁▁"


def test_a_hostile_client_name_shows_as_text_everywhere():
    bad = result(payments={HOSTILE: 5.0, "[bold]x": 1.0})
    page = run_report(bad, "", "bara run")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "[bold]x" in text(run_summary(bad, {}), width=120)


def test_the_comparison_fits_eighty_columns():
    lines = text(comparison_table([result(), result(allocator="even:carry_over=true")], [])).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("even:carry_over=true") for line in lines)


def test_a_chart_says_in_words_what_it_shows():
    assert 'aria-label="Accuracy: from 0.1 to 0.9, over round"' in chart("Accuracy", [0, 1], [0.1, 0.9], "round")


def test_a_run_of_one_round_has_a_report():
    one = result()
    assert "<svg" in run_report(result(history=one.history[:1], rounds=0), "", "bara run")
