"""What goes into a paper: figures with their origin, tables as text,
numbers that cannot be read wrongly.
"""

import csv
import json
import re
import subprocess
from dataclasses import replace
from html import unescape
from itertools import pairwise

import matplotlib.pyplot as plt
import pyarrow.parquet
import pytest
from PIL import Image
from refusals import refused

import bara
from bara.errors import ConfigError
from bara.reports.comparison import Comparison, Failure
from bara.reports.comparison_table import comparison_rows, show_estimate
from bara.reports.dots import Dot, DotChart
from bara.reports.drawings import COLUMN, FORMATS, PAGE, drawn
from bara.reports.html import comparison_report
from bara.reports.statistics import FEWEST, Estimate

SMALL = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 8}, "clients": 6}


@pytest.fixture(scope="module")
def found():
    grid = {"clients.bids": ["uniform(1, 2)", "constant(1)"]}
    return bara.compare(
        SMALL,
        allocators=["even", "random"],
        grid=grid,
        seeds=2,
        jobs=1,
        command="bara compare --x 1",
    )


def test_an_estimate_never_leaves_the_scale():
    assert show_estimate(Estimate(0.78, 1.392, 2)) == "78.0 [0, 100]"
    assert show_estimate(Estimate(0.02, 1.392, 2), signed=True) == "+2.0 [-100, +100]"
    assert show_estimate(Estimate(0.95, 0.031, 5)) == "95.0 ± 3.1"
    assert show_estimate(Estimate(0.98, 0.031, 5)) == "98.0 [94.9, 100]"
    assert show_estimate(Estimate(0.02, 0.0742, 5)) == "2.0 [0, 9.4]"
    assert show_estimate(Estimate(-0.0001, 0.02, 5), signed=True) == "+0.0 ± 2.0"


def test_two_seeds_are_tested_by_nobody_and_equal_differences_are_no_significance(found):
    assert "p" not in comparison_rows(found.results)[0]
    one, two = found.results[0], found.results[4]
    seeds = [
        replace(r, seed=seed, accuracy_kept=a)
        for r, a in ((one, 0.5), (two, 0.6))
        for seed in range(FEWEST)
    ]
    assert "p" not in comparison_rows(seeds)[0]


def test_every_file_of_a_figure_says_what_made_it(found, tmp_path):
    found.plot("accuracy-over-rounds").save(tmp_path / "panel")
    with Image.open(tmp_path / "panel.png") as picture:
        assert picture.text["Source"] == "bara compare --x 1"
        assert "[budget]" in picture.text["Description"]
        assert picture.size[0] == round(COLUMN * 300)
    assert "bara compare --x 1" in (tmp_path / "panel.svg").read_text()
    assert b"bara compare --x 1" in (tmp_path / "panel.pdf").read_bytes()


def test_figures_are_one_or_two_columns_wide_in_per_cent_with_the_legend_outside(found):
    one, two = found.plot("accuracy-over-rounds"), found.plot("accuracy-over-rounds", columns=2)
    assert (one.get_figwidth(), two.get_figwidth()) == (COLUMN, PAGE)
    (ax,) = one.axes
    assert ax.get_legend() is None
    assert len(one.legends) == 1
    one.draw_without_rendering()
    assert all(label.get_text().endswith("%") for label in ax.get_yticklabels())
    with refused(ConfigError, "columns", "1", "2", "3"):
        drawn([], columns=3)


def test_what_is_compared_is_drawn_beside_the_levels_as_the_table_has_it(found):
    even = [run for run in found.results if run.varied["clients.bids"] == "constant(1)"]
    shown = replace(found, results=even)
    (_, differences) = shown.plot("accuracy-and-differences").axes
    (dot,) = [line for line in differences.lines if line.get_marker() != "None"]
    head, _, row = comparison_rows(even)
    assert row[head.index("vs first")].startswith(f"{dot.get_xdata()[0]:+.1f}")
    assert differences.get_xlabel().startswith("minus even")
    assert any(set(line.get_xdata()) == {0} for line in differences.lines)


def test_differences_are_drawn_from_what_the_table_measures_against(found):
    shown = replace(found, against="random")
    (_, differences) = shown.plot("accuracy-and-differences").axes
    label = " ".join(differences.get_xlabel().split())
    assert label == "minus random, all else equal, points"
    assert "minus random, all else equal, points" in comparison_report(shown)
    one = replace(found, against="random, bids=constant(1)")
    (_, differences) = one.plot("accuracy-and-differences", columns=2).axes
    label = " ".join(differences.get_xlabel().split())
    assert label == "minus random, bids=constant(1), points"


def test_a_curve_ends_where_the_money_ended(found):
    ended = {}
    for run in found.results:
        ended[run.name] = max(run.spent, ended.get(run.name, 0.0))
    (ax,) = found.plot("accuracy-over-money-spent").axes
    assert {line.get_label(): line.get_xdata()[-1] for line in ax.lines} == pytest.approx(ended)


def test_axes_fit_the_data_and_begin_at_zero_on_request(found):
    shown = replace(
        found,
        results=[
            replace(run, history=[entry | {"accuracy": 0.9} for entry in run.history])
            for run in found.results
        ],
    )
    (ax,) = shown.plot("accuracy-over-rounds").axes
    assert ax.get_ylim()[0] > 0.5
    (ax,) = shown.plot("accuracy-over-rounds", zero=True).axes
    assert ax.get_ylim()[0] == 0


def test_neighbours_that_show_the_same_share_one_axis_and_nothing_is_empty(found):
    figure = found.plot()
    titles = {ax.get_title(): ax for ax in figure.axes}
    rounds, money = titles["Accuracy over rounds"], titles["Accuracy over money spent"]
    assert rounds.get_ylim() == money.get_ylim()
    assert (rounds.get_ylabel(), money.get_ylabel()) == ("accuracy", "")
    assert all(ax.lines for ax in figure.axes)


def test_the_legend_names_each_allocator_and_each_variant_once(found):
    (legend,) = found.plot("accuracy-over-rounds").legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["even", "random", "bids=uniform(1, 2)", "bids=constant(1)"]
    styles = [line.get_linestyle() for line in legend.get_lines()]
    assert styles[:2] == ["None", "None"]
    assert len(set(styles[2:])) == 2


def test_a_long_legend_takes_no_room_from_the_axes(found):
    def height(runs):
        figure = replace(found, results=runs).plot("accuracy-over-rounds")
        figure.draw_without_rendering()
        return figure.axes[0].get_window_extent().height

    many = [replace(r, allocator=f"{r.allocator} {k}") for k in range(4) for r in found.results]
    assert height(many) > 0.9 * height(found.results)


def test_lines_are_told_apart_by_colour_and_in_grey(found):
    lines = found.plot("accuracy-over-rounds").axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 4
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 4


def test_no_two_of_many_allocators_with_variants_are_drawn_alike(found):
    many = [replace(r, allocator=f"{r.allocator} {k}") for k in range(7) for r in found.results]
    figure = replace(found, results=many).plot("money-left")
    lines = figure.axes[0].lines
    assert len(lines) == 28
    assert (
        len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}) == 28
    )
    names = figure.legends[0].get_lines()[:14]
    assert len({(line.get_color(), line.get_marker()) for line in names}) == 14


def test_intervals_are_shaded_and_named_unless_they_would_hide_each_other(found):
    few = found.plot("accuracy-over-rounds")
    assert len(few.axes[0].collections) == 4
    assert "95 %" in few.get_supxlabel()
    many = [replace(r, allocator=f"{r.allocator} {k}") for k in range(2) for r in found.results]
    full = replace(found, results=many).plot("accuracy-over-rounds")
    assert not full.axes[0].collections
    assert full.get_supxlabel() == ""


LONG = [
    "even, mechanism=bid-price-first",
    "even:carry_over=true, bids=uniform(0.5, 1.5)",
    "thesis.allocators.bandit:Thompson:speed=0.5, mechanism=thesis.auctions.quality:ReliableFirst",
    "increasing, bids=uniform(0.5, 1.5)",
]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("reach", [0.004, 0.18, 0.98])
def test_no_text_of_a_chart_of_dots_is_cut_or_lies_on_another(columns, reach):
    dots = []
    for place, name in enumerate(LONG):
        difference = Estimate(-reach / 5, reach, 3) if place else None
        dots.append(Dot(name, Estimate(0.5, reach / 2, 3), difference))
    against = "less bid-price-first, all else equal, points"
    figure = drawn(
        [DotChart("Accuracy and differences", "accuracy, %", against, tuple(dots))], columns
    )
    figure.draw_without_rendering()
    last = figure.axes[0].get_yticklabels()[-1].get_text()
    assert "uniform(0.5, 1.5)" in last.replace("\u00a0", " ")  # no value is folded
    for ax in figure.axes:
        low, high = ax.get_xlim()
        shown = [
            tick.label1 for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high
        ]
        assert len(shown) >= 2
        places = [label.get_window_extent() for label in shown]
        assert all(left.x1 < right.x0 for left, right in pairwise(places))
        for text in (*shown, *ax.get_yticklabels(), ax.title, ax.xaxis.label):
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1


def test_rounds_are_counted_in_whole_numbers(found):
    short = [replace(run, history=run.history[:3]) for run in found.results]
    figure = replace(found, results=short).plot("accuracy-over-rounds")
    assert all(place == int(place) for place in figure.axes[0].get_xticks())


@pytest.mark.parametrize("columns", [1, 2])
def test_no_name_in_a_legend_is_cut(found, columns):
    runs = [
        replace(run, allocator=f"{run.allocator}, {LONG[2]}", varied={}) for run in found.results
    ]
    figure = replace(found, results=runs).plot("money-left", columns=columns)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= 0
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert legend.get_window_extent().y0 >= figure.axes[0].get_window_extent().y1


def test_a_figure_goes_into_axes_of_ones_own(found):
    figure, ax = plt.subplots()
    assert found.plot("money-left", ax=ax) is ax
    assert len(ax.lines) == 4
    plt.close(figure)
    with refused(ConfigError, "axes", "accuracy-over-rounds", "money-left"):
        found.plot(ax=ax)


def test_a_report_has_tables_for_documents_a_file_for_each_panel_and_rounds_with_real_types(
    found, tmp_path
):
    found.save(tmp_path)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {f"{name}.{kind}" for name in found.figures for kind in FORMATS} <= names
    assert (tmp_path / "table.tex").read_text() == found.to_latex()
    assert (
        tmp_path / "table.md"
    ).read_text() == f"{found.to_markdown()}\n<!--\n{found.config}-->\n"
    table = pyarrow.parquet.read_table(tmp_path / "figures" / "rounds.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert "null" not in types.values()
    assert (types["setting"], types["allocator"], types["seed"], types["loss"]) == (
        "string",
        "string",
        "int64",
        "double",
    )
    assert table.schema.metadata[b"command"] == b"bara compare --x 1"
    with (tmp_path / "figures" / "rounds.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == table.num_rows == sum(len(result.history) for result in found.results)
    assert all(
        row["allocator"] and row["mechanism"] and row["seed"] and row["clients.bids"]
        for row in rows
    )
    for name in ("results.csv", "figures/rounds.csv"):
        path = tmp_path / name
        told = json.loads(path.with_name(f"{path.name}-metadata.json").read_text())
        assert (told["url"], told["dc:source"], told["dc:description"]) == (
            path.name,
            found.command,
            found.config,
        )
        with path.open() as file:
            assert next(csv.reader(file)) == [
                column["name"] for column in told["tableSchema"]["columns"]
            ]


def test_a_difference_is_against_the_first_allocator_with_the_same_of_all_else(found):
    reached = {
        "even": {"uniform(1, 2)": 0.5, "constant(1)": 0.7},
        "random": {"uniform(1, 2)": 0.4, "constant(1)": 0.8},
    }
    seen = [
        replace(r, accuracy_kept=reached[r.allocator][r.varied["clients.bids"]])
        for r in found.results
    ]
    head, *rows = comparison_rows(seen)
    told = {(row[0], row[1]): row[head.index("vs first")] for row in rows}
    assert told == {
        ("even", "uniform(1, 2)"): "",
        ("random", "uniform(1, 2)"): "-10.0 ± 0.0",
        ("even", "constant(1)"): "",
        ("random", "constant(1)"): "+10.0 ± 0.0",
    }
    assert "&quot;vs first&quot; is against even" in comparison_report(found)
    head, *rows = comparison_rows([r for r in seen if r.allocator == "even"])
    assert [row[head.index("vs first")] for row in rows] == ["", "+20.0 ± 0.0"]


def test_the_allocator_bara_is_told_from_the_program_and_from_the_paper(found):
    said = "BARA, the paper's algorithm, as this program reads it"
    named = [
        replace(run, allocator=run.allocator.replace("random", "bara:preset=paper"))
        for run in found.results
    ]
    shown = replace(found, results=named)
    for text in (shown.to_markdown(), shown.to_latex(), unescape(comparison_report(shown))):
        assert said in text
    assert said not in found.to_markdown()


def test_a_contestant_whose_runs_failed_is_missed_wherever_the_table_goes(found):
    failed = [Failure("mine", seed, "<quality> is 0.0") for seed in range(3)]
    shown = replace(found, failures=failed)
    texts = [shown.to_markdown(), shown.to_latex()]
    texts += [unescape(comparison_report(shown)), unescape(shown._repr_html_())]
    for text in texts:
        assert "mine, seed 0 (<quality> is 0.0), and 2 more" in text
    assert all(line.startswith("%") for line in texts[1].splitlines() if "mine" in line)
    assert "mine" not in found.to_markdown()


def test_latex_is_escaped_bold_where_best_and_says_what_made_it(found):
    text = replace(
        found, results=[replace(r, allocator="a_b & 5%") for r in found.results]
    ).to_latex()
    assert text.startswith("% bara compare --x 1\n")
    assert (
        r"\begin{tabular}{lrrrrr}" in text
    )  # the bids, which vary, and no column for the allocator, which does not
    assert r"$\pm$" in text
    assert text.count(r"\textbf{") >= 1
    several = replace(
        found, results=[replace(r, allocator=f"{r.allocator}_b & 5%") for r in found.results]
    ).to_latex()
    assert r"even\_b \& 5\%" in several


AWKWARD = ["<b> & 5%", "[1, 2]", "*", "a_b^c~d\\e{f}", "x|y > #1 $2", "-3 −4 ≤ “q”\r\\end"]
"""Names that mean something to LaTeX, or do at the start of a row, or end a comment."""


def awkward(found):
    runs = []
    for name in AWKWARD:
        runs += [replace(run, allocator=name, varied={}) for run in found.results[:2]]
    return replace(found, results=runs, command="bara compare --allocators '\r\\end{document}'")


def test_no_name_means_anything_to_latex(found):
    text = awkward(found).to_latex()
    assert "\r" not in text
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) == 1 + len(AWKWARD)
    for row in rows:
        plain = re.sub(r"\\text\w+\{\}|\\textbf|\$(?:\\\w+|[-<>|])\$|\\[&%#_{}$]", "", row[:-3])
        assert not re.search(r"[\\#%$^~_<>|]", plain), row
        assert plain.count("&") == rows[0].count("&")
    assert not any(row.startswith(("[", "*")) for row in rows)


@pytest.mark.full
@pytest.mark.debian("LaTeX")
def test_latex_compiles(found, tmp_path):
    text = awkward(found).to_latex()
    head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
    end = "\\typeout{it came to its end}\\end{document}\n"
    (tmp_path / "table.tex").write_text(f"{head}{text}{end}")
    command = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "it came to its end" in done.stdout


def test_a_table_says_in_every_cell_which_column_it_is_of_for_narrow_screens(found):
    page = comparison_report(found)
    head, *_ = comparison_rows(found.results)
    assert all(f'<td data-column="{name}">' in page for name in head)
    assert re.search(r"@media \(max-width: 40rem\)", page)


def test_reprs_are_short_and_html_is_escaped(found):
    assert (
        repr(found)
        == "<Comparison: 8 runs: even, random; bids: uniform(1, 2), constant(1); 2 seeds>"
    )
    assert "\n" not in repr(found.results[0])
    assert len(repr(found.results[0])) < 160
    hostile = Comparison(
        [replace(r, allocator="<script>") for r in found.results], [Failure("<b>", 1, "no")]
    )
    assert "<script>" not in hostile._repr_html_() + hostile.results[0]._repr_html_()
