"""The paper's figures: dots, curves and the map of regimes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bara.paper.analysis import (
    BASELINE,
    BOUND,
    LESS,
    T_0,
    ExhibitResult,
    Row,
    grouped,
    mean_curve,
    standing,
)
from bara.paper.exhibits import TITLES
from bara.reports.charts import SHADES, Chart, ChartLine
from bara.reports.dots import Dot, DotChart
from bara.reports.drawings import LOOK, PAGE, Drawing, drawn
from bara.reports.frames import column
from bara.reports.publication import UNKNOWN, Origin
from bara.reports.statistics import Estimate

# the drawings come first: their error tells which extra is missing
# isort: split
from matplotlib import rc_context
from matplotlib.axes import Axes

KINDS = ("the paper's methods", "others")
"""The kinds of methods that a figure of accuracies tells apart."""


def save_charts(
    charts: Sequence[Chart | DotChart],
    stem: Path,
    title: str = "",
    note: str = "",
    origin: Origin = UNKNOWN,
) -> None:
    """Save charts as one figure of a page's width, and each by itself in one of a column's.

    Args:
        charts: The charts to draw.
        stem: The path of the figure without its suffix.
        title: The title in the files' metadata.
        note: The text below the figure.
        origin: The command and the configuration behind the figure.
    """
    # the three readings of BARA stand side by side, a line for each dataset
    across = 3 if len(charts) % 3 == 0 else 2
    figure = drawn(charts, 2, origin, across=across, shares=True, title=title, note=note)
    figure.save(stem)
    for chart in charts:
        drawn([chart], origin=origin).save(stem.with_name(f"{stem.name}-{chart.name}"))


def exhibit_dots(shown: ExhibitResult) -> list[DotChart]:
    """Return an exhibit's final accuracies and differences from EA, a chart for each dataset."""
    charts = []
    others = shown.exhibit.ours | {BOUND}
    has_others = any(row["method"] in others for row in shown.rows)
    for (dataset,), rows in grouped(shown.rows, "dataset"):
        dots = []
        for row in rows:
            level = Estimate(row["final"], row["final_margin"], row["seeds"])
            less = row[LESS]
            if less is not None:
                less = Estimate(less, row[f"{LESS}_margin"], row["seeds"])
            kind = 1 if row["method"] in others else 0
            dots.append(Dot(row["method"], level, less, kind))
        charts.append(
            DotChart(
                TITLES[dataset],
                "final accuracy, %",
                f"minus {BASELINE}, points",
                tuple(dots),
                KINDS if has_others else (),
            )
        )
    return charts


def save_map(shown: ExhibitResult, stem: Path, origin: Origin = UNKNOWN) -> None:
    """Save the map of regimes: each method's lead over EA in every regime.

    A line of panels is a method, a column of panels an amount of money.

    Args:
        shown: The exhibit.
        stem: The path of the figure without its suffix.
        origin: The command and the configuration behind the figure.
    """
    money = list(dict.fromkeys(column(shown.rows, "money")))
    by_panel = dict(grouped(shown.rows, "method", "money"))
    methods = [one for one in dict.fromkeys(column(shown.rows, "method")) if one != BASELINE]
    methods.sort(key=lambda one: one != BOUND)  # the bound first, the others in their order
    with rc_context({**LOOK, "axes.grid": False}):
        figsize = (PAGE, 1.35 * len(methods) + 1.0)
        figure = Drawing(figsize=figsize, layout="constrained")
        grid = figure.subplots(len(methods), len(money), squeeze=False)
        for (line, method), (place, share) in product(enumerate(methods), enumerate(money)):
            ax = grid[line][place]
            tiles = _tiles(ax, by_panel.get((method, share), []))
            is_first = place == 0
            is_lowest = line == len(methods) - 1
            if line == 0:
                ax.set_title(f"{share:g} x the paper's money", fontsize=8.5)
            ax.tick_params(labelbottom=is_lowest, labelleft=is_first, length=0)
            if is_first:
                ax.set_ylabel(method, fontweight="bold")
        figure.colorbar(
            tiles,
            ax=grid.ravel().tolist(),
            shrink=0.4,
            label=f"points against {BASELINE}",
            extend="both",
        )
        figure.supylabel("swing from round to round with 7 clients, points", fontsize=8)
        figure.supxlabel(
            "learned by round 50 if all take part\n"
            f"Blue: ahead of {BASELINE}; red: behind. Bold: the 95 % interval leaves out 0.\n"
            f"{shown.size}",
            fontsize=7,
        )
        figure.title = shown.exhibit.title
        figure.origin = origin
        figure.save(stem)


def _tiles(ax: Axes, rows: Sequence[Row]) -> Any:
    """Draw differences in points, earlier curves to the right and larger swings upwards."""
    early = sorted(set(column(rows, "learned")))
    swings = sorted(set(column(rows, "swing")))
    tiles = np.full((len(swings), len(early)), math.nan)
    for row in rows:
        x = early.index(row["learned"])
        y = swings.index(row["swing"])
        points = 100 * row[LESS]
        tiles[y, x] = points
        weight = "bold" if standing(row) else "normal"
        ink = "white" if abs(points) > _FAR / 2 else "#222222"
        ax.text(x, y, f"{points:+.1f}", ha="center", va="center", size=8, weight=weight, color=ink)
    ax.set_xticks(range(len(early)), [f"{100 * learned:.0f} %" for learned in early])
    ax.set_yticks(range(len(swings)), [f"{swing:g}" for swing in swings])
    return ax.imshow(tiles, cmap="RdBu", vmin=-_FAR, vmax=_FAR, origin="lower", aspect="auto")


_FAR = 8.0
"""The difference in points from which on colours are strongest."""


def exhibit_charts(shown: ExhibitResult) -> list[Chart]:
    """Return the panels of the paper's Figure 2, 3 or 4.

    A panel is a reading of BARA on a dataset in Figures 2 and 3, a method beside EA in Figure 4.
    """
    charts = []
    if shown.exhibit.name == "fig4":
        for (dataset,), rows in grouped(shown.rows, "dataset"):
            charts += _accuracies(TITLES[dataset], rows)
        return charts
    make_chart = _clients if shown.exhibit.name == "fig2" else _regrets
    for (dataset, method), rows in grouped(shown.rows, "dataset", "method"):
        charts.append(make_chart(f"{TITLES[dataset]}, {method}", rows))
    return _within_one_range(charts) if shown.exhibit.name == "fig3" else charts


def _clients(title: str, rows: Sequence[Row]) -> Chart:
    lines: list[ChartLine] = []
    for (seed,), own in grouped(rows, "seed"):
        faint = bool(lines)  # all seeds but the first
        lines.append(ChartLine(f"seed {seed}", column(own, "round"), column(own, "n"), faint=faint))
    return Chart(title, "round", "clients", tuple(lines), marks=((T_0, "$T_0$"),))


REGRETS = 1.0
"""The limit of the axis of regrets, as accuracies are fractions.

The letter of the text extrapolates, and its predictions can be of any size.
"""


def _regrets(title: str, rows: Sequence[Row]) -> Chart:
    predicted = _mean_line("by what it predicts (the paper's)", rows, "predicted")
    real = _mean_line("by what each n really comes to", rows, "real")
    told = f"n* = {rows[0]['best_n']}"
    if median(map(abs, predicted.ys)) > REGRETS:
        predicted = ChartLine(predicted.name, [], [])
        told += "; predicts beyond every scale"
    marks = []
    for _, own in grouped(rows, "seeds")[1:2]:
        marks.append((own[0]["round"], f"fewer than {rows[0]['seeds']} seeds"))
    return Chart(
        f"{title}\n{told}",
        "round",
        "$Reg_t / t$",
        (predicted, real),
        tuple(marks),
        zero_line=True,
        note=SHADES,
    )


def _within_one_range(charts: Sequence[Chart]) -> list[Chart]:
    """Return charts of regrets with the range of their lines, which intervals may leave."""
    heights = [0.0]
    for chart in charts:
        for line in chart.lines:
            heights += line.ys
    low = max(min(heights), -REGRETS)
    high = min(max(heights), REGRETS)
    room = 0.1 * (high - low)
    return [replace(chart, between=(low - room, high + room)) for chart in charts]


def _accuracies(title: str, rows: Sequence[Row]) -> list[Chart]:
    """Return a panel for each method of a dataset, with the baseline in every one."""
    lines = {}
    for (method,), own in grouped(rows, "method"):
        accuracy = mean_curve(own)
        lines[method] = ChartLine(method, range(len(accuracy)), accuracy)
    behind = [lines.pop(BASELINE)] if BASELINE in lines and len(lines) > 1 else []
    charts = []
    for method, line in lines.items():
        shown = (*behind, replace(line, name="the method in the title"))
        charts.append(Chart(f"{title}, {method}", "round", "accuracy", shown, per_cent=True))
    return charts


def _mean_line(name: str, rows: Sequence[Row], key: str) -> ChartLine:
    """Return the line of a mean with its interval, over the rounds in which the mean is known."""
    known = [row for row in rows if row[key] is not None]
    low = []
    high = []
    for row in known:
        margin = row[f"{key}_margin"] or 0.0
        low.append(row[key] - margin)
        high.append(row[key] + margin)
    return ChartLine(name, column(known, "round"), column(known, key), (low, high))
