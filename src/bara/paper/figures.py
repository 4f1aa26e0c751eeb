"""The paper's figures: bars, curves and the map of regimes."""

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from bara.paper.analysis import BASELINE, BOUND, LESS, T_0, ExhibitResult, Row, grouped, standing
from bara.paper.exhibits import TITLES
from bara.reports.charts import Chart, Line
from bara.reports.data_files import UNKNOWN, Origin
from bara.reports.drawings import LOOK, Drawing, draw_lines, drawn  # which tells what is missing

# isort: split
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.patches import Patch

PAPER, OURS = "#00588a", "#c77c00"
"""The two tones of bars: the paper's methods, and others."""


def save_charts(
    charts: Sequence[Chart], stem: Path, title: str = "", note: str = "", origin: Origin = UNKNOWN
) -> None:
    """Charts side by side in one figure; where they are several, each as a file of its own, too."""
    with rc_context(LOOK):
        figure, axes = _panels(len(charts))
        for chart, ax in zip(charts, axes, strict=True):
            draw_lines(ax, chart)
        _save(figure, axes, stem, title, note, origin)
    for chart in charts if len(charts) > 1 else ():
        drawn([chart], origin=origin).save(stem.with_name(f"{stem.name}-{chart.name}"))


def save_bars(shown: ExhibitResult, stem: Path, origin: Origin = UNKNOWN) -> None:
    """Final accuracies as bars with their intervals, a panel for each dataset."""
    rows, exhibit = shown.rows, shown.exhibit
    with rc_context(LOOK):
        datasets = list(dict.fromkeys(row["dataset"] for row in rows))
        figure, axes = _panels(len(datasets))
        for dataset, ax in zip(datasets, axes, strict=True):
            own = [row for row in rows if row["dataset"] == dataset]
            heights = [100 * row["final"] for row in own]
            margins = [
                100 * (math.nan if row["final_margin"] is None else row["final_margin"])
                for row in own
            ]
            colours = [OURS if row["method"] in exhibit.ours else PAPER for row in own]
            ax.bar(
                [row["method"] for row in own],
                heights,
                yerr=[[min(m, h) for m, h in zip(margins, heights, strict=True)], margins],
                color=colours,
                hatch=["////" if row["method"] in exhibit.ours else "" for row in own],
                edgecolor="white",
                linewidth=0,
                error_kw={"ecolor": "#222222", "capsize": 2.5, "elinewidth": 1},
            )
            highest = max(100 * (row["final"] + (row["final_margin"] or 0)) for row in own)
            ax.set_ylim(0, min(1.15 * highest, 100))
            for place, (height, colour) in enumerate(zip(heights, colours, strict=True)):
                ax.annotate(
                    f"{height:.1f}",
                    (place, 0),
                    (0, 4),
                    textcoords="offset points",
                    ha="center",
                    rotation="vertical",
                    color="w",
                    size=7,
                    bbox={
                        "boxstyle": "square,pad=0.1",
                        "facecolor": colour,
                        "linewidth": 0,
                    },  # over hatch and interval
                )
            ax.set_title(TITLES[dataset])
            ax.set_ylabel("final accuracy, %")
            ax.grid(visible=False, axis="x")
            ax.tick_params(axis="x", rotation=40)
            for label in ax.get_xticklabels():
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")
        kinds = [Patch(color=PAPER, label="the paper's methods")]
        if any(row["method"] in exhibit.ours for row in rows):
            kinds.append(Patch(facecolor=OURS, hatch="////", edgecolor="white", label="others"))
        figure.legend(handles=kinds, loc="outside right upper", fontsize=8)
        _save(figure, [], stem, exhibit.title, shown.size, origin)


def save_map(shown: ExhibitResult, stem: Path, origin: Origin = UNKNOWN) -> None:
    """How far each method is from EA in every regime: a line of panels for each, a panel for each amount of money."""
    methods, money = (
        [*dict.fromkeys(row[key] for row in shown.rows)] for key in ("method", "money")
    )
    methods = sorted((one for one in methods if one != BASELINE), key=lambda one: one != BOUND)
    with rc_context({**LOOK, "axes.grid": False}):
        figure = Drawing(
            figsize=(2.3 * len(money) + 1.2, 1.75 * len(methods) + 1.0), layout="constrained"
        )
        grid = figure.subplots(len(methods), len(money), squeeze=False)
        for (line, method), (column, share) in product(enumerate(methods), enumerate(money)):
            ax = grid[line][column]
            drawn = _tiles(
                ax, [row for row in shown.rows if row["method"] == method and row["money"] == share]
            )
            ax.set_title(f"{share:g} x the paper's money" if line == 0 else "", fontsize=8.5)
            ax.tick_params(labelbottom=line == len(methods) - 1, labelleft=column == 0, length=0)
            ax.set_ylabel(method if column == 0 else "", fontweight="bold")
        figure.colorbar(
            drawn,
            ax=grid.ravel().tolist(),
            shrink=0.4,
            label=f"points against {BASELINE}",
            extend="both",
        )
        figure.supylabel("swing from round to round with 7 clients, points", fontsize=8)
        figure.supxlabel(
            f"learned by round 50 if all take part. Blue: ahead of {BASELINE}; red: behind. Bold: the 95 % interval "
            f"leaves out 0. {shown.size}",
            fontsize=7,
            wrap=True,
        )
        figure.suptitle(shown.exhibit.title, fontsize=11)
        figure.origin = origin
        figure.save(stem)


def _tiles(ax: Axes, rows: Sequence[Row]) -> Any:
    """Differences in points, earlier curves to the right and larger swings upwards."""
    early, swings = (sorted({row[key] for row in rows}) for key in ("learned", "swing"))
    points = [[math.nan] * len(early) for _ in swings]
    for row in rows:
        x, y = early.index(row["learned"]), swings.index(row["swing"])
        points[y][x] = 100 * row[LESS]
        weight = "bold" if standing(row) else "normal"
        ink = "white" if abs(points[y][x]) > _FAR / 2 else "#222222"
        ax.text(
            x, y, f"{points[y][x]:+.1f}", ha="center", va="center", size=8, weight=weight, color=ink
        )
    ax.set_xticks(range(len(early)), [f"{100 * part:.0f} %" for part in early])
    ax.set_yticks(range(len(swings)), [f"{swing:g}" for swing in swings])
    return ax.imshow(points, cmap="RdBu", vmin=-_FAR, vmax=_FAR, origin="lower", aspect="auto")


_FAR = 8.0
"""Differences of so many points and more have the strongest colour."""


def exhibit_charts(shown: ExhibitResult) -> list[Chart]:
    """The panels of the paper's Figures 2, 3 and 4: a dataset each, or a reading of BARA on a dataset."""
    keys = ("dataset",) if shown.exhibit.name == "fig4" else ("dataset", "method")
    return [
        _CHARTS[shown.exhibit.name](", ".join([TITLES[dataset], *method]), rows)
        for (dataset, *method), rows in grouped(shown.rows, *keys)
    ]


def _clients(title: str, rows: Sequence[Row]) -> Chart:
    lines = [
        Line(f"seed {seed}", [row["round"] for row in of], [row["n"] for row in of], faint=rank > 0)
        for rank, ((seed,), of) in enumerate(grouped(rows, "seed"))
    ]
    return Chart(title, "round", "clients", tuple(lines), marks=((T_0, "T_0"),))


REGRETS = 1.0
"""How far the axis of regrets goes: an accuracy is a fraction. What the letter extrapolates can be of any size."""


def _regrets(title: str, rows: Sequence[Row]) -> Chart:
    names = {
        "predicted": "by what it predicts (the paper's)",
        "real": "by what each n really comes to",
    }
    lines = [_mean_line(names[key], rows, key) for key in names]
    if median(map(abs, lines[0].ys)) > REGRETS:
        lines[0] = Line(lines[0].name, [], [])
        title = f"{title}\npredicting beyond every scale"
    fewer = [
        (of[0]["round"], f"{seeds} of {rows[0]['seeds']}")
        for (seeds,), of in grouped(rows, "seeds")[1:]
    ]
    return Chart(
        f"{title}, n* = {rows[0]['best_n']}",
        "round",
        "Reg_t / t",
        tuple(lines),
        tuple(fewer),
        (-REGRETS, REGRETS),
    )


def _accuracies(title: str, rows: Sequence[Row]) -> Chart:
    methods = dict.fromkeys(row["method"] for row in rows)
    lines = [
        _mean_line(method, [row for row in rows if row["method"] == method], "accuracy")
        for method in methods
    ]
    plain = tuple(Line(line.name, line.xs, line.ys) for line in lines)
    return Chart(title, "round", "accuracy", plain, per_cent=True)


def _mean_line(name: str, rows: Sequence[Row], key: str) -> Line:
    known = [row for row in rows if row[key] is not None]
    margins = [row[f"{key}_margin"] or 0.0 for row in known]
    ys = [row[key] for row in known]
    band = (
        [y - m for y, m in zip(ys, margins, strict=True)],
        [y + m for y, m in zip(ys, margins, strict=True)],
    )
    return Line(name, [row["round"] for row in known], ys, band)


_CHARTS = {"fig2": _clients, "fig3": _regrets, "fig4": _accuracies}


def _panels(count: int) -> tuple[Drawing, list[Axes]]:
    columns = (
        1 if count == 1 else 3 if count % 3 == 0 else 2
    )  # in threes: readings of BARA, a line for each dataset
    lines = -(-count // columns)
    figure = Drawing(
        figsize=({1: 5.4, 2: 7.2, 3: 10.2}[columns], 2.9 * lines + 0.6), layout="constrained"
    )
    grid = figure.subplots(lines, columns, squeeze=False).ravel().tolist()
    for spare in grid[count:]:
        spare.set_visible(False)
    return figure, grid[:count]


def _save(
    figure: Drawing, axes: Sequence[Axes], stem: Path, title: str, note: str, origin: Origin
) -> None:
    names = {
        text: line
        for ax in axes
        for line, text in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if len(names) > 1:  # above or below it would lie on the title or the note
        figure.legend(names.values(), names.keys(), loc="outside right upper", fontsize=8)
    if note:
        figure.supxlabel(note, fontsize=6.5, color="#444444", wrap=True)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.origin = origin
    figure.save(stem)
