"""The paper's figures: what their panels show, and that the map is drawn."""

from itertools import product

import pytest

from bara.paper.analysis import described
from bara.paper.exhibits import EXHIBITS, Scale
from bara.paper.figures import KINDS, exhibit_charts, exhibit_dots, save_charts, save_map
from bara.paper.pages import exhibit_latex, exhibit_markdown, table_rows
from bara.paper.regimes import REGIMES
from bara.reports.drawings import COLUMN, INK, PAGE, Drawing, drawn


def shown(name, rows, datasets=("digits",)):
    return described(EXHIBITS[name], rows, list(datasets), Scale())


def clients_rows(methods=("BARA (letter)", "BARA (ours)"), seeds=3):
    return [
        {"dataset": "digits", "method": method, "seed": seed, "round": t, "n": 1 + (t + seed) % 5}
        for method in methods
        for seed in range(seeds)
        for t in range(1, 60)
    ]


def regret_rows(lengths=(60, 80)):
    return [
        {
            "dataset": "digits",
            "method": "BARA (ours)",
            "round": t,
            "predicted": -1e51,
            "predicted_margin": None,
            "real": 0.1,
            "real_margin": 0.01,
            "seeds": sum(t <= length for length in lengths),
            "best_n": 7,
            "best_accuracy": 0.8,
        }
        for t in range(1, max(lengths) + 1)
    ]


def regime_rows(less=0.03, margin=0.01):
    common = {"final": 0.5, "final_margin": 0.1, "p": None, "rounds": 200, "seeds": 8}
    return [
        {
            "learned": one.learned,
            "swing": one.swing,
            "money": one.money,
            "dataset": name,
            "method": method,
        }
        | {
            "less_EA": None if method == "EA" else less,
            "less_EA_margin": None if method == "EA" else margin,
        }
        | common
        for name, one in REGIMES.items()
        for method in ("EA", "BARA (ours)", "bound")
    ]


def test_figure_two_has_a_panel_for_each_reading_and_marks_the_first_round_of_stage_two():
    panels = exhibit_charts(shown("fig2", clients_rows()))
    assert [panel.title for panel in panels] == ["digits, BARA (letter)", "digits, BARA (ours)"]
    assert {panel.marks for panel in panels} == {((40, "$T_0$"),)}


def test_no_two_seeds_of_figure_two_are_drawn_alike(tmp_path, monkeypatch):
    from matplotlib.axes import Axes  # noqa: PLC0415

    inks, plot = [], Axes.plot
    monkeypatch.setattr(
        Axes,
        "plot",
        lambda ax, *args, **look: inks.append(look["color"]) or plot(ax, *args, **look),
    )
    monkeypatch.setattr(Drawing, "save", lambda *_: None)  # what is drawn is enough to know
    save_charts(
        exhibit_charts(shown("fig2", clients_rows(["BARA (ours)"], seeds=len(INK)))),
        tmp_path / "fig2",
    )
    assert len(set(inks)) == len(INK)


def test_figure_three_says_where_seeds_end_and_keeps_to_regrets_that_there_can_be():
    (panel,) = exhibit_charts(shown("fig3", regret_rows()))
    assert panel.marks == ((61, "fewer than 2 seeds"),)
    assert panel.between == pytest.approx((-0.01, 0.11))  # those that there are, and zero
    assert panel.lines[0].ys == []
    assert panel.name == "digits-bara-ours"  # a document includes the same file whatever was found
    assert panel.lines[1].xs[-1] == 80


def curve_rows(methods=("EA", "MIA", "planner")):
    """Two seeds for each method, the second of which ends in round 9."""
    rows = []
    for method, (seed, rounds) in product(methods, enumerate((50, 10))):
        for t in range(rounds):
            row = {"dataset": "digits", "method": method, "seed": seed, "round": t}
            rows.append({**row, "accuracy": 0.1 + t / 100})
    return rows


def test_figure_four_has_a_panel_for_each_method_with_even_allocation_in_it():
    panels = exhibit_charts(shown("fig4", curve_rows()))
    assert [panel.title for panel in panels] == ["digits, MIA", "digits, planner"]
    assert [[line.name for line in panel.lines] for panel in panels] == [
        ["EA", "the method in the title"]
    ] * 2
    (alone,) = exhibit_charts(shown("fig4", curve_rows(["EA"])))
    (line,) = alone.lines
    assert line.ys[9] == pytest.approx(0.19)
    assert line.ys[49] == pytest.approx((0.59 + 0.19) / 2)  # an ended run counts as it ended


def saved_figure(charts, tmp_path, monkeypatch):
    """The figure of all charts as it is saved, laid out."""
    saved = []
    monkeypatch.setattr(Drawing, "save", lambda figure, _: saved.append(figure))
    save_charts(charts, tmp_path / "figure", "The title", "The size of its runs. " * 12)
    saved[0].draw_without_rendering()
    return saved[0]


@pytest.mark.parametrize("name", ["fig2", "fig3", "fig4"])
def test_panels_share_one_axis_and_the_legend_lies_above_them_within_a_pages_width(
    name, tmp_path, monkeypatch
):
    rows = {
        "fig2": clients_rows(["BARA (letter)", "BARA (intended)", "BARA (ours)"]),
        "fig3": regret_rows() + [row | {"method": "BARA (letter)"} for row in regret_rows()],
        "fig4": curve_rows(["EA", "MIA", "MDA", "planner"]),
    }[name]
    figure = saved_figure(exhibit_charts(shown(name, rows)), tmp_path, monkeypatch)
    assert figure.get_figwidth() == PAGE
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    assert [bool(ax.get_ylabel()) for ax in figure.axes].count(True) == 1
    (legend,) = figure.legends
    titles = [ax.title.get_window_extent().y1 for ax in figure.axes]
    box = legend.get_window_extent()
    assert box.y0 >= max(titles)
    for text in (box, figure._supxlabel.get_window_extent()):
        assert text.x0 >= 0
        assert text.x1 <= figure.bbox.x1
    axes = [ax.get_window_extent() for ax in figure.axes]
    assert max(box.x1 for box in axes) > 0.95 * figure.bbox.x1  # nothing stands beside them


def test_the_map_is_drawn_and_its_table_is_left_to_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr("bara.reports.drawings.FORMATS", ("svg",))  # the one that can be read again
    one = shown("regimes", regime_rows(), REGIMES)
    save_map(one, tmp_path / "regimes")
    drawing = (tmp_path / "regimes.svg").read_text()
    assert drawing.count("+3.0") == 2 * len(REGIMES)
    assert drawing.index("bound") < drawing.index(
        "BARA (ours)"
    )  # what can be had at all comes first
    assert "| dataset |" not in exhibit_markdown(one)
    assert "ahead of EA in 27, behind in 0 of 27" in exhibit_markdown(one)


@pytest.mark.parametrize(("p", "column"), [(None, False), (0.04, True)])
def test_a_table_has_p_values_only_where_there_are_some(p, column):
    row = {"dataset": "digits", "method": "EA", "last10": 0.5, "last10_margin": 0.1, "paper": None}
    row |= {
        "final": 0.5,
        "final_margin": 0.1,
        "less_EA": None,
        "less_EA_margin": None,
        "rounds": 9,
        "seeds": 3,
    }
    head, *_ = table_rows(shown("ablation", [row | {"p": p}]))
    assert ("p" in head) == column


@pytest.mark.parametrize(("reported", "column"), [(None, False), (84.88, True)])
def test_a_table_has_the_papers_own_numbers_only_where_there_are_some(reported, column):
    rows = [row | {"paper": reported} for row in accuracy_rows()]
    head, *_ = table_rows(shown("table1", rows))
    assert ("paper" in head) == column


def accuracy_rows(*, margin=0.1, others=("planner",)):
    common = {"dataset": "digits", "p": None, "rounds": 9, "seeds": 3, "paper": None}
    common |= {"final": 0.5, "final_margin": margin, "last10": 0.5, "last10_margin": margin}
    return [
        common
        | {
            "method": method,
            "less_EA": None if method == "EA" else 0.03,
            "less_EA_margin": None if method == "EA" else margin,
        }
        for method in ("EA", "MIA", *others)
    ]


def test_a_table_of_the_paper_is_latex_below_its_claim():
    made = exhibit_latex(shown("table1", accuracy_rows()), "bara paper table1")
    above, _, below = made.partition("\\begin{tabular}")
    assert "% bara paper table1\n" in above
    assert "% Claimed: " in above
    assert all(line.startswith("% ") for line in above.splitlines())
    assert r"digits & EA & 50.0 $\pm$ 10.0 &" in below


def test_neither_our_methods_nor_the_bound_count_as_the_papers():
    (chart,) = exhibit_dots(shown("border", accuracy_rows(others=("planner", "bound"))))
    assert [KINDS[dot.kind] for dot in chart.dots] == [KINDS[0], KINDS[0], KINDS[1], KINDS[1]]


def test_accuracies_are_dots_with_intervals_beside_differences_from_even_allocation():
    (chart,) = exhibit_dots(shown("fig1", accuracy_rows()))
    levels, differences = drawn([chart], columns=2).axes
    dots = [line for line in differences.lines if line.get_marker() != "None"]
    assert [line.get_xdata()[0] for line in dots] == [3.0, 3.0]
    assert [line.get_ydata()[0] for line in dots] == [1, 2]  # none for EA itself
    assert any(set(line.get_xdata()) == {0} for line in differences.lines)
    assert levels.lines[0].get_xdata() == pytest.approx([40, 60])
    assert levels.get_xlim()[0] > 0  # the axis fits the dots


def test_a_single_seed_has_no_interval():
    (chart,) = exhibit_dots(shown("fig1", accuracy_rows(margin=None)))
    figure = drawn([chart], columns=2)
    levels, _ = figure.axes
    assert all(len(set(line.get_xdata())) == 1 for line in levels.lines)
    assert figure.get_supxlabel() == ""


@pytest.mark.parametrize("name", ["fig1", "fig3"])
def test_a_figure_with_intervals_says_of_how_many_per_cent(name, tmp_path, monkeypatch):
    one = shown(name, accuracy_rows() if name == "fig1" else regret_rows())
    charts = exhibit_dots(one) if name == "fig1" else exhibit_charts(one)
    assert "95 %" in saved_figure(charts, tmp_path, monkeypatch).get_supxlabel()


def test_an_exhibit_of_one_dataset_has_a_figure_of_one_column_too(tmp_path, monkeypatch):
    saved = {}
    monkeypatch.setattr(Drawing, "save", lambda figure, stem: saved.update({stem.name: figure}))
    save_charts(exhibit_dots(shown("fig1", accuracy_rows())), tmp_path / "fig1")
    assert {name: one.get_figwidth() for name, one in saved.items()} == {
        "fig1": PAGE,
        "fig1-digits": COLUMN,
    }


def test_the_papers_methods_and_others_are_told_apart_in_grey_and_only_where_there_are_both():
    (chart,) = exhibit_dots(shown("fig1", accuracy_rows()))
    figure = drawn([chart])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(KINDS)
    keys = {line.get_marker() for line in legend.get_lines()}
    drawn_markers = {line.get_marker() for line in figure.axes[0].lines} - {"None"}
    assert keys == drawn_markers
    assert len(keys) == 2
    (alone,) = exhibit_dots(shown("fig1", accuracy_rows(others=())))
    assert drawn([alone]).legends == []
