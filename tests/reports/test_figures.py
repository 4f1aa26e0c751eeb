"""The paper's figures: what their panels show, and that the map is drawn."""

import pytest

from bara.paper.analysis import described
from bara.paper.exhibits import EXHIBITS, Scale
from bara.paper.figures import exhibit_charts, save_bars, save_charts, save_map
from bara.paper.pages import exhibit_markdown, table_rows
from bara.paper.regimes import REGIMES
from bara.reports.drawings import INK, Drawing


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
    assert {panel.marks for panel in panels} == {((40, "T_0"),)}


def test_no_two_seeds_of_figure_two_are_drawn_alike(tmp_path, monkeypatch):
    from matplotlib.axes import Axes  # noqa: PLC0415

    drawn, plot = [], Axes.plot
    monkeypatch.setattr(
        Axes,
        "plot",
        lambda ax, *args, **look: drawn.append(look["color"]) or plot(ax, *args, **look),
    )
    monkeypatch.setattr(Drawing, "save", lambda *_: None)  # what is drawn is enough to know
    save_charts(
        exhibit_charts(shown("fig2", clients_rows(["BARA (ours)"], seeds=len(INK)))),
        tmp_path / "fig2",
    )
    assert len(set(drawn)) == len(INK)


def test_figure_three_says_where_seeds_end_and_keeps_to_regrets_that_there_can_be():
    (panel,) = exhibit_charts(shown("fig3", regret_rows()))
    assert panel.marks == ((61, "1 of 2"),)
    assert panel.between == (-1.0, 1.0)
    assert panel.lines[1].xs[-1] == 80


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


def test_a_single_seed_has_no_interval(tmp_path, monkeypatch):
    from matplotlib.axes import Axes  # noqa: PLC0415

    drawn, bar = [], Axes.bar
    monkeypatch.setattr(
        Axes, "bar", lambda ax, *args, **look: drawn.append(look["yerr"]) or bar(ax, *args, **look)
    )
    monkeypatch.setattr(Drawing, "save", lambda *_: None)
    row = {
        "dataset": "digits",
        "method": "EA",
        "allocator": "even",
        "less_EA": None,
        "less_EA_margin": None,
        "p": None,
    }
    row |= {
        "last10": 0.5,
        "last10_margin": None,
        "spent": 1.0,
        "rounds": 1,
        "paper": None,
        "seeds": 1,
    }
    rows = [row | {"final": 0.5, "final_margin": margin} for margin in (None, 0.1)]
    save_bars(shown("fig1", rows), tmp_path / "fig1")
    nothing = pytest.approx(float("nan"), nan_ok=True)
    assert drawn == [[[nothing, 10], [nothing, 10]]]
