"""The paper's figures: bars, curves and the map of regimes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bara.paper.analysis import BASELINE, BOUND, LESS, T_0, ExhibitResult, Row, grouped, standing
from bara.paper.exhibits import TITLES
from bara.reports.charts import Chart, ChartLine
from bara.reports.drawings import LOOK, Drawing, draw_lines, drawn, legend_of
from bara.reports.frames import column
from bara.reports.publication import UNKNOWN, Origin

# the drawings come first: their error tells which extra is missing
# isort: split
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.patches import Patch

PAPER, OURS = "#00588a", "#c77c00"
"""The two tones of bars, for the paper's methods and for others."""


def save_charts(
    charts: Sequence[Chart], stem: Path, title: str = "", note: str = "", origin: Origin = UNKNOWN
) -> None:
    """Save charts side by side in one figure; if there are several, also each by itself.

    Args:
        charts: The charts to draw.
        stem: The path of the figure without its suffix.
        title: The text above the figure.
        note: The text below it.
        origin: The command and the configuration behind the figure.
    """
    with rc_context(LOOK):
        figure, axes = _panels(len(charts))
        for chart, ax in zip(charts, axes, strict=True):
            draw_lines(ax, chart)
        _save(figure, axes, stem, title, note, origin)
    if len(charts) > 1:
        for chart in charts:
            drawn([chart], origin=origin).save(stem.with_name(f"{stem.name}-{chart.name}"))


def save_bars(shown: ExhibitResult, stem: Path, origin: Origin = UNKNOWN) -> None:
    """Save final accuracies as bars with their intervals, a panel for each dataset.

    Args:
        shown: The exhibit.
        stem: The path of the figure without its suffix.
        origin: The command and the configuration behind the figure.
    """
    exhibit = shown.exhibit
    datasets = grouped(shown.rows, "dataset")
    with rc_context(LOOK):
        figure, axes = _panels(len(datasets))
        for ((dataset,), rows), ax in zip(datasets, axes, strict=True):
            _bars(ax, rows, exhibit.ours)
            ax.set_title(TITLES[dataset])
        kinds = [Patch(color=PAPER, label="the paper's methods")]
        if any(row["method"] in exhibit.ours for row in shown.rows):
            kinds.append(Patch(facecolor=OURS, hatch="////", edgecolor="white", label="others"))
        figure.legend(handles=kinds, loc="outside right upper", fontsize=8)
        _save(figure, [], stem, exhibit.title, shown.size, origin)


def _bars(ax: Axes, rows: Sequence[Row], ours: frozenset[str]) -> None:
    """Draw a bar with its interval and its number for each row, the paper's methods unhatched."""
    heights = []
    above = []
    below = []
    ends = []
    colours = []
    hatches = []
    for row in rows:
        height = 100 * row["final"]
        margin = math.nan if row["final_margin"] is None else 100 * row["final_margin"]
        heights.append(height)
        above.append(margin)
        below.append(min(margin, height))
        ends.append(100 * (row["final"] + (row["final_margin"] or 0)))
        is_ours = row["method"] in ours
        colours.append(OURS if is_ours else PAPER)
        hatches.append("////" if is_ours else "")
    ax.bar(
        column(rows, "method"),
        heights,
        yerr=[below, above],
        color=colours,
        hatch=hatches,
        edgecolor="white",
        linewidth=0,
        error_kw={"ecolor": "#222222", "capsize": 2.5, "elinewidth": 1},
    )
    ax.set_ylim(0, min(1.15 * max(ends), 100))
    for place, (height, colour) in enumerate(zip(heights, colours, strict=True)):
        # a box in the bar's colour keeps the number readable over hatch and interval
        box = {"boxstyle": "square,pad=0.1", "facecolor": colour, "linewidth": 0}
        ax.annotate(
            f"{height:.1f}",
            (place, 0),
            (0, 4),
            textcoords="offset points",
            ha="center",
            rotation="vertical",
            color="w",
            size=7,
            bbox=box,
        )
    ax.set_ylabel("final accuracy, %")
    ax.grid(visible=False, axis="x")
    ax.tick_params(axis="x", rotation=40)
    for label in ax.get_xticklabels():
        label.set_horizontalalignment("right")
        label.set_rotation_mode("anchor")


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
        figsize = (2.3 * len(money) + 1.2, 1.75 * len(methods) + 1.0)
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
            f"learned by round 50 if all take part. Blue: ahead of {BASELINE}; red: behind. "
            f"Bold: the 95 % interval leaves out 0. {shown.size}",
            fontsize=7,
            wrap=True,
        )
        figure.suptitle(shown.exhibit.title, fontsize=11)
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

    A panel of Figure 4 is a dataset, one of Figures 2 and 3 a reading of BARA on a dataset.
    """
    keys = ("dataset",) if shown.exhibit.name == "fig4" else ("dataset", "method")
    make_chart = _CHARTS[shown.exhibit.name]
    charts = []
    for (dataset, *method), rows in grouped(shown.rows, *keys):
        title = ", ".join([TITLES[dataset], *method])
        charts.append(make_chart(title, rows))
    return charts


def _clients(title: str, rows: Sequence[Row]) -> Chart:
    lines: list[ChartLine] = []
    for (seed,), own in grouped(rows, "seed"):
        faint = bool(lines)  # all seeds but the first
        lines.append(ChartLine(f"seed {seed}", column(own, "round"), column(own, "n"), faint=faint))
    return Chart(title, "round", "clients", tuple(lines), marks=((T_0, "T_0"),))


REGRETS = 1.0
"""The limit of the axis of regrets, as accuracies are fractions.

The letter of the text extrapolates, and its predictions can be of any size.
"""


def _regrets(title: str, rows: Sequence[Row]) -> Chart:
    predicted = _mean_line("by what it predicts (the paper's)", rows, "predicted")
    real = _mean_line("by what each n really comes to", rows, "real")
    if median(map(abs, predicted.ys)) > REGRETS:
        predicted = ChartLine(predicted.name, [], [])
        title = f"{title}\npredicting beyond every scale"
    fewer = []
    for (seeds,), own in grouped(rows, "seeds")[1:]:
        first = own[0]["round"]
        fewer.append((first, f"{seeds} of {rows[0]['seeds']}"))
    return Chart(
        f"{title}, n* = {rows[0]['best_n']}",
        "round",
        "Reg_t / t",
        (predicted, real),
        tuple(fewer),
        (-REGRETS, REGRETS),
    )


def _accuracies(title: str, rows: Sequence[Row]) -> Chart:
    lines = []
    for (method,), own in grouped(rows, "method"):
        line = _mean_line(method, own, "accuracy")
        lines.append(replace(line, band=None))
    return Chart(title, "round", "accuracy", tuple(lines), per_cent=True)


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


_CHARTS = {"fig2": _clients, "fig3": _regrets, "fig4": _accuracies}


def _panels(count: int) -> tuple[Drawing, list[Axes]]:
    """Return a figure with the given number of panels, in one, two or three columns."""
    if count == 1:
        columns = 1
    elif count % 3 == 0:  # the three readings of BARA, a line for each dataset
        columns = 3
    else:
        columns = 2
    lines = -(-count // columns)
    width = {1: 5.4, 2: 7.2, 3: 10.2}[columns]
    figure = Drawing(figsize=(width, 2.9 * lines + 0.6), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel().tolist()
    for spare in grid[count:]:
        spare.set_visible(False)
    return figure, grid[:count]


def _save(
    figure: Drawing, axes: Sequence[Axes], stem: Path, title: str, note: str, origin: Origin
) -> None:
    """Save a figure with one legend for all axes, a title above and a note below."""
    names = legend_of(axes)
    if len(names) > 1:  # above or below it would lie on the title or the note
        figure.legend(names.values(), names.keys(), loc="outside right upper", fontsize=8)
    if note:
        figure.supxlabel(note, fontsize=6.5, color="#444444", wrap=True)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.origin = origin
    figure.save(stem)
