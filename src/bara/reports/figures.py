"""Figures for print: PNG, SVG and PDF of each, and the data behind it as CSV and Parquet."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bara.errors import MissingExtraError
from bara.experiments.paper.analysis import BASELINE, BOUND, LESS, T_0, ExhibitResult, Row, grouped, standing
from bara.experiments.paper.exhibits import DATASETS
from bara.experiments.results import Result
from bara.files import write_whole
from bara.reports.charts import Chart, Line
from bara.text import csv_text

try:
    import pyarrow as pa
    import pyarrow.parquet
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:
    raise MissingExtraError(f"figures need {error.name}: pip install 'bara-fl[figures]'") from None

INK = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c00", "#555555")
"""Colours that the colour-blind can tell apart (Okabe and Ito), strong enough for lines on white."""
PAPER, OURS = "#00588a", "#c77c00"
"""The two tones of bars: the paper's methods, and others."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 3)))
"""Lines are told apart in grey, too."""
FORMATS = ("png", "svg", "pdf")
_LOOK: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "bara",  # the same figure is the same file
    "pdf.fonttype": 42,
}


def save_rows(rows: Sequence[Row], stem: Path) -> None:
    """The data behind a figure."""
    table = pa.Table.from_pylist(list(rows))
    write_whole(stem.with_suffix(".csv"), [csv_text(table.column_names, map(dict.values, table.to_pylist()))])
    pyarrow.parquet.write_table(table, stem.with_suffix(".parquet"))


def save_all(charts: Mapping[str, Sequence[Chart]], results: Sequence[Result], folder: Path) -> None:
    """Charts by the name of their file, and every round of these runs as data."""
    folder.mkdir(exist_ok=True)
    for name, panels in charts.items():
        save_charts(panels, folder / name)
    keys = ("round", "n", "cost", "accuracy", "loss", "estimate")
    rows = [
        {"setting": run.setting, "allocator": run.allocator, "seed": run.seed, **{key: entry.get(key) for key in keys}}
        for run in results
        for entry in run.history
    ]
    save_rows(rows, folder / "rounds")


def save_charts(charts: Sequence[Chart], stem: Path, title: str = "", note: str = "") -> None:
    """Charts side by side in one figure."""
    with rc_context(_LOOK):
        figure, axes = _panels(len(charts))
        for chart, ax in zip(charts, axes, strict=True):
            _lines(ax, chart)
        _save(figure, axes, stem, title, note)


def save_bars(shown: ExhibitResult, stem: Path) -> None:
    """Final accuracies as bars with their intervals, a panel for each dataset."""
    rows, exhibit = shown.rows, shown.exhibit
    with rc_context(_LOOK):
        datasets = list(dict.fromkeys(row["dataset"] for row in rows))
        figure, axes = _panels(len(datasets))
        for dataset, ax in zip(datasets, axes, strict=True):
            own = [row for row in rows if row["dataset"] == dataset]
            heights = [100 * row["final"] for row in own]
            margins = [100 * (row["final_margin"] or 0) for row in own]
            ax.bar(
                [row["method"] for row in own],
                heights,
                yerr=[[min(m, h) for m, h in zip(margins, heights, strict=True)], margins],
                color=[OURS if row["method"] in exhibit.ours else PAPER for row in own],
                error_kw={"ecolor": "#222222", "capsize": 2.5, "elinewidth": 1},
            )
            ax.set_ylim(0, min(1.15 * max(map(sum, zip(heights, margins, strict=True))), 100))
            for place, height in enumerate(heights):
                ax.annotate(
                    f"{height:.1f}", (place, 0), (0, 4), textcoords="offset points", ha="center", color="w", size=7
                )
            ax.set_title(DATASETS[dataset])
            ax.set_ylabel("final accuracy, %")
            ax.grid(visible=False, axis="x")
            ax.tick_params(axis="x", rotation=40)
            for label in ax.get_xticklabels():
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")
        _save(figure, axes, stem, exhibit.title, f"Dark: the paper's methods; light: others. {shown.size}")


def save_map(shown: ExhibitResult, stem: Path) -> None:
    """How far each method is from EA in every regime: a line of panels for each, a panel for each amount of money."""
    methods, money = ([*dict.fromkeys(row[key] for row in shown.rows)] for key in ("method", "money"))
    methods = sorted((one for one in methods if one != BASELINE), key=lambda one: one != BOUND)
    with rc_context({**_LOOK, "axes.grid": False}):
        figure = Figure(figsize=(2.3 * len(money) + 1.2, 1.75 * len(methods) + 1.0), layout="constrained")
        grid = figure.subplots(len(methods), len(money), squeeze=False)
        for (line, method), (column, share) in product(enumerate(methods), enumerate(money)):
            ax = grid[line][column]
            drawn = _tiles(ax, [row for row in shown.rows if row["method"] == method and row["money"] == share])
            ax.set_title(f"{share:g} x the paper's money" if line == 0 else "", fontsize=8.5)
            ax.tick_params(labelbottom=line == len(methods) - 1, labelleft=column == 0, length=0)
            ax.set_ylabel(method if column == 0 else "", fontweight="bold")
        figure.colorbar(drawn, ax=grid.ravel().tolist(), shrink=0.4, label=f"points against {BASELINE}", extend="both")
        figure.supylabel("swing from round to round with 7 clients, points", fontsize=8)
        figure.supxlabel(
            f"learned by round 50 if all take part. Blue: ahead of {BASELINE}; red: behind. Bold: the 95 % interval "
            f"leaves out 0. {shown.size}",
            fontsize=7,
            wrap=True,
        )
        _write(figure, stem, shown.exhibit.title)


def _tiles(ax: Axes, rows: Sequence[Row]) -> Any:
    """Differences in points, earlier curves to the right and larger swings upwards."""
    early, swings = (sorted({row[key] for row in rows}) for key in ("learned", "swing"))
    points = [[math.nan] * len(early) for _ in swings]
    for row in rows:
        x, y = early.index(row["learned"]), swings.index(row["swing"])
        points[y][x] = 100 * row[LESS]
        weight = "bold" if standing(row) else "normal"
        ink = "white" if abs(points[y][x]) > _FAR / 2 else "#222222"
        ax.text(x, y, f"{points[y][x]:+.1f}", ha="center", va="center", size=8, weight=weight, color=ink)
    ax.set_xticks(range(len(early)), [f"{100 * part:.0f} %" for part in early])
    ax.set_yticks(range(len(swings)), [f"{swing:g}" for swing in swings])
    return ax.imshow(points, cmap="RdBu", vmin=-_FAR, vmax=_FAR, origin="lower", aspect="auto")


_FAR = 8.0
"""Differences of so many points and more have the strongest colour."""


def exhibit_charts(shown: ExhibitResult) -> list[Chart]:
    """The panels of the paper's Figures 2, 3 and 4: a dataset each, or a reading of BARA on a dataset."""
    keys = ("dataset",) if shown.exhibit.name == "fig4" else ("dataset", "method")
    return [
        _CHARTS[shown.exhibit.name](", ".join([DATASETS[dataset], *method]), rows)
        for (dataset, *method), rows in grouped(shown.rows, *keys)
    ]


def _clients(title: str, rows: Sequence[Row]) -> Chart:
    lines = [
        Line(f"seed {seed}", [row["round"] for row in of], [row["n"] for row in of], faint=rank > 0)
        for rank, ((seed,), of) in enumerate(grouped(rows, "seed"))
    ]
    return Chart(title, "round", "clients", tuple(lines), marks=((T_0, "T_0"),))


def _regrets(title: str, rows: Sequence[Row]) -> Chart:
    names = {"predicted": "by what it predicts (the paper's)", "real": "by what each n really comes to"}
    lines = tuple(_mean_line(names[key], rows, key) for key in names)
    fewer = [(of[0]["round"], f"{seeds} of {rows[0]['seeds']}") for (seeds,), of in grouped(rows, "seeds")[1:]]
    return Chart(f"{title}, n* = {rows[0]['best_n']}", "round", "Reg_t / t", lines, tuple(fewer), (-1.0, 1.0))


def _accuracies(title: str, rows: Sequence[Row]) -> Chart:
    methods = dict.fromkeys(row["method"] for row in rows)
    lines = [_mean_line(method, [row for row in rows if row["method"] == method], "accuracy") for method in methods]
    return Chart(title, "round", "accuracy", tuple(Line(line.name, line.xs, line.ys) for line in lines))


def _mean_line(name: str, rows: Sequence[Row], key: str) -> Line:
    known = [row for row in rows if row[key] is not None]
    margins = [row[f"{key}_margin"] or 0.0 for row in known]
    ys = [row[key] for row in known]
    band = [y - m for y, m in zip(ys, margins, strict=True)], [y + m for y, m in zip(ys, margins, strict=True)]
    return Line(name, [row["round"] for row in known], ys, band)


_CHARTS = {"fig2": _clients, "fig3": _regrets, "fig4": _accuracies}


_FEW = 3
"""So many lines have their legend within the first panel; a legend beside the panels takes their width."""


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    columns = 1 if count == 1 else 3 if count % 3 == 0 else 2  # in threes: readings of BARA, a line for each dataset
    lines = -(-count // columns)
    figure = Figure(figsize=({1: 5.4, 2: 7.2, 3: 10.2}[columns], 2.9 * lines + 0.6), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel().tolist()
    for spare in grid[count:]:
        spare.set_visible(False)
    return figure, grid[:count]


def _lines(ax: Axes, chart: Chart) -> None:
    for number, line in enumerate(chart.lines):
        colour = INK[number % len(INK)]
        style: Any = "-" if line.faint else STYLES[(number + number // len(INK)) % len(STYLES)]
        look: Any = {"linewidth": 0.8, "alpha": 0.6, "zorder": 1} if line.faint else {"linewidth": 1.3, "zorder": 2}
        ax.plot(line.xs, line.ys, color=colour, linestyle=style, label=line.name, **look)
        if line.band:
            ax.fill_between(line.xs, *line.band, color=colour, alpha=0.15, linewidth=0)
    for place, name in chart.marks:
        ax.axvline(place, color="#222222", linestyle=":", linewidth=0.9, zorder=3)
        ax.annotate(name, (place, 1), (2, -7), ("data", "axes fraction"), textcoords="offset points", size=6.5)
    if chart.between:
        ax.axhline(0, color="#222222", linewidth=0.9, zorder=1.5)
        ax.set_ylim(chart.between)
    ax.set_title(chart.title, fontsize=8.5)
    ax.set_xlabel(chart.x_name)
    ax.set_ylabel(chart.y_name)
    if all(isinstance(y, int) for line in chart.lines for y in line.ys):
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def _save(figure: Figure, axes: Sequence[Axes], stem: Path, title: str, note: str) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    if len(handles) > _FEW:  # above or below it would lie on the title or the note
        figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    elif len(handles) > 1:
        axes[0].legend(handles, labels, loc="best", fontsize=6.5)
    if note:
        figure.supxlabel(note, fontsize=6.5, color="#444444", wrap=True)
    _write(figure, stem, title)


def _write(figure: Figure, stem: Path, title: str) -> None:
    if title:
        figure.suptitle(title, fontsize=11)
    for form in FORMATS:
        stamp = {"svg": "Date", "pdf": "CreationDate"}.get(form)
        figure.savefig(stem.with_suffix(f".{form}"), dpi=200, metadata={stamp: None} if stamp else None)
