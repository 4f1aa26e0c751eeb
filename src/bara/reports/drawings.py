"""Figures for print and for notebooks.

Charts become PNG, SVG and PDF, and the data behind them CSV and Parquet.
"""

import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bara import __version__
from bara.errors import ConfigError, MissingExtraError, UnknownNameError
from bara.files import make_own_folder, replacing
from bara.reports.charts import Chart, ChartLine, charts_of
from bara.reports.comparison import Comparison
from bara.reports.dots import Dot, DotChart
from bara.reports.frames import Row, round_rows, type_of
from bara.reports.publication import UNKNOWN, Origin, origin_of, write_csv
from bara.reports.result import Result
from bara.reports.statistics import Estimate
from bara.text import nearest

try:
    import pyarrow as pa
    import pyarrow.parquet
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator, PercentFormatter
except ModuleNotFoundError as error:
    raise MissingExtraError(f"figures need {error.name}: pip install 'bara-fl[figures]'") from None

INK = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c00", "#555555")
"""Line colours that the colour-blind can tell apart (Okabe and Ito), strong enough on white."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 3)))
"""Dash patterns, which tell lines apart in grey."""
MARKS = ("o", "s", "^", "D", "v", "x", "P", "*")
"""Markers for lines whose dashes already stand for something else."""
FORMATS = ("png", "svg", "pdf")
LOOK: Any = {
    "font.size": 8,
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


def _metadata(origin: Origin, form: str, title: str) -> dict[str, str | None]:
    """Return a figure's metadata in one format, without a date: the same figure, the same file."""
    creator = f"bara {__version__}"
    both = f"{origin.command}\n\n{origin.config}".strip()
    forms: dict[str, dict[str, str | None]] = {
        "png": {
            "Title": title,
            "Software": creator,
            "Source": origin.command,
            "Description": origin.config,
        },
        "svg": {
            "Title": title,
            "Creator": creator,
            "Source": origin.command,
            "Description": both,
            "Date": None,
        },
        "pdf": {
            "Title": title,
            "Creator": creator,
            "Subject": origin.command,
            "Keywords": both,
            "CreationDate": None,
        },
    }
    return forms[form]


class Drawing(Figure):
    """A figure that notebooks show and that saves itself in every format.

    Attributes:
        title: The title in the files' metadata.
        origin: The command and the configuration behind the figure.
    """

    title = ""
    origin = UNKNOWN

    def save(self, stem: str | Path) -> None:
        """Write PNG, SVG and PDF to the stem with each format's suffix."""
        stem = Path(stem)
        for form in FORMATS:
            path = stem.with_name(f"{stem.name}.{form}")
            metadata = _metadata(self.origin, form, self.title)
            with replacing(path, durable=False) as file:
                self.savefig(file, format=form, dpi=300, metadata=metadata)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=150)
        return content.getvalue()


COLUMN, PAGE = 3.4, 7.0
"""The widths in inches of one column and of both on a two-column page."""


def plot(
    shown: Result | Comparison,
    name: str | None = None,
    *,
    columns: int = 1,
    ax: Axes | None = None,
    zero: bool = False,
) -> Any:
    """Draw a figure of a run's or a comparison's report; see `Comparison.plot`."""
    charts = [replace(chart, from_zero=zero) for chart in charts_of(shown)]
    names = [chart.name for chart in charts]
    if name is not None:
        if name not in names:
            raise UnknownNameError(f"there is no figure {name!r}; {nearest(name, names)}")
        charts = [chart for chart in charts if chart.name == name]
    if ax is None:
        return drawn(charts, columns, origin_of(shown))
    if len(charts) > 1:
        raise ConfigError(f"axes can hold only one figure; name one of {', '.join(names)}")
    (chart,) = charts
    if isinstance(chart, DotChart):
        draw_differences(ax, chart)
    else:
        draw_lines(ax, chart)
    entries = legend_entries(charts)
    if entries:
        ax.legend(entries.values(), entries.keys())
    return ax


def drawn(
    charts: Sequence[Chart | DotChart],
    columns: int = 1,
    origin: Origin = UNKNOWN,
    *,
    across: int = 2,
    shares: bool = False,
    title: str = "",
    note: str = "",
) -> Drawing:
    """Draw charts in one figure, below one legend for all of them.

    Args:
        charts: The charts to draw; a dot chart has a line of its own.
        columns: The width of the figure in columns of a page, 1 or 2; charts side by side take
            both.
        origin: The command and the configuration behind the charts.
        across: How many charts stand side by side.
        shares: True for charts of the same quantities, which then have the same axes. Without it,
            neighbours share the vertical axis if it shows the same.
        title: The title in the files' metadata; the charts' own unless given.
        note: The text below the figure.
    """
    if columns not in {1, 2}:
        raise ConfigError(f"a figure must be 1 or 2 columns wide, got {columns}")
    lines = _in_lines(charts, across)
    width = COLUMN if columns == 1 and len(charts) == 1 else PAGE
    with rc_context(LOOK):
        figure = Drawing(figsize=(width, 1), layout="constrained")
        figure.origin = origin
        figure.title = title or ", ".join(chart.title for chart in charts)
        heights = [_height(line, width) for line in lines]
        if shares and heights:
            heights[-1] += 0.35  # for the names of the horizontal axes, which only it has
        grid = figure.add_gridspec(max(len(lines), 1), 1, height_ratios=heights or [1])
        axes: dict[str, Axes] = {}  # by what they show
        for number, line in enumerate(lines):
            if not shares:
                axes = {}
            cells = grid[number].subgridspec(1, sum(map(_panels, line)))
            for place, chart in enumerate(line):
                if isinstance(chart, DotChart):
                    _draw_dots(figure, cells, chart, width)
                    continue
                other = axes.get(chart.y_name)
                ax = figure.add_subplot(
                    cells[place], sharey=other, sharex=other if shares else None
                )
                draw_lines(ax, chart)
                if other is not None and place > 0:
                    ax.tick_params(labelleft=False)
                    ax.set_ylabel("")
                if shares and number < len(lines) - 1:
                    ax.tick_params(labelbottom=False)
                    ax.set_xlabel("")
                axes.setdefault(chart.y_name, ax)
        height = sum(heights) + _add_legend(figure, charts, width)
        every_note = [chart.note for chart in charts]
        notes = dict.fromkeys(filter(None, [*every_note, note]))
        if notes:
            folded = textwrap.wrap(" ".join(notes), int(19 * width))
            figure.supxlabel("\n".join(folded), fontsize=6.5, color="#444444")
            height += 0.12 * len(folded)
        figure.set_size_inches(width, height)
    return figure


def _in_lines(charts: Sequence[Chart | DotChart], across: int) -> list[list[Chart | DotChart]]:
    """Divide charts among the lines of a figure; a dot chart stands alone in one."""
    lines: list[list[Chart | DotChart]] = []
    has_room = False
    for chart in charts:
        is_alone = isinstance(chart, DotChart)
        if not has_room or is_alone:
            lines.append([])
        lines[-1].append(chart)
        has_room = not is_alone and len(lines[-1]) < across
    return lines


def _panels(chart: Chart | DotChart) -> int:
    return 2 if isinstance(chart, DotChart) and chart.has_differences else 1


def _height(line: Sequence[Chart | DotChart], width: float) -> float:
    """Return the height in inches of a line of charts."""
    if isinstance(line[0], DotChart):
        labels = [_row_name(dot.name, width) for dot in line[0].dots]
        apart = 0.1 * max(label.count("\n") for label in labels)
        below = 0.12 * _axis_name(line[0].difference_name, width).count("\n")
        return 0.75 + below + (0.17 + apart) * len(labels)
    if width == COLUMN:
        return 2.5
    return {1: 3.3, 2: 2.5}.get(len(line), 1.8)


def _add_legend(figure: Drawing, charts: Sequence[Chart | DotChart], width: float) -> float:
    """Add the legend above a figure, in room of its own, and return its height in inches."""
    entries = legend_entries(charts)
    if not entries:
        return 0.0
    most = int((72 * width - 36) / 3.7)
    names = [_folded(name, most).replace("\u00a0", " ") for name in entries]
    widest = (36 + 3.7 * min(max(map(len, entries)), most)) / 72
    beside = max(int(width / widest), 1)
    figure.legend(
        entries.values(),
        names,
        loc="outside upper center",
        ncols=beside,
        fontsize=7,
        handlelength=3.2,
        columnspacing=1.0,
    )
    folds = sum(name.count("\n") for name in names)
    return 0.1 + 0.15 * (-(-len(entries) // beside) + folds)


def legend_entries(charts: Sequence[Chart | DotChart]) -> dict[str, Line2D]:
    """Return a handle for each name that a legend of the charts must explain, each name once.

    A chart with a single line needs none: its title and axes say what it shows. Where colour and
    dashes stand for two things, each of these has a handle.
    """
    colours: dict[str, Line2D] = {}
    dashes: dict[str, Line2D] = {}
    for chart in charts:
        if isinstance(chart, DotChart):
            for number, kind in enumerate(chart.kinds):
                look: Any = {"color": INK[number], "marker": MARKS[number], "linestyle": ""}
                colours[kind] = Line2D([], [], markersize=4, **look)
        elif len(chart.lines) > 1:
            for number, line in enumerate(chart.lines):
                look = _look_of(number, line)
                if line.look is None:
                    colours[line.name] = Line2D([], [], **look)
                else:
                    colours[line.look.colour_name] = Line2D([], [], **look | {"linestyle": ""})
                    plain: Any = {
                        "linestyle": look["linestyle"],
                        "color": "#444444",
                        "linewidth": 1.3,
                    }
                    dashes[line.look.dashes_name] = Line2D([], [], **plain)
    return colours | dashes


def save_rows(rows: Sequence[Row], stem: Path, origin: Origin = UNKNOWN) -> None:
    """Write the data behind a figure as CSV and Parquet.

    Every column has one type, even where it holds no value at all.

    Args:
        rows: The data, with the same columns in every row.
        stem: The path of both files without their suffix.
        origin: The command and the configuration behind the data.
    """
    types = {}
    for name in rows[0] if rows else ():
        types[name] = _ARROW[type_of(name, rows)]
    plain = []
    for row in rows:
        values = dict(row)
        for name, value in row.items():
            if types[name] == pa.string() and value is not None:
                values[name] = str(value)
        plain.append(values)
    metadata = None
    if origin != UNKNOWN:
        metadata = {"command": origin.command, "config": origin.config}
    table = pa.Table.from_pylist(plain, pa.schema(list(types.items()), metadata=metadata))
    write_csv(plain, stem.with_suffix(".csv"), origin)
    with replacing(stem.with_suffix(".parquet"), durable=False) as file:
        pyarrow.parquet.write_table(table, file)


_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def save_figures(
    shown: Result | Comparison, folder: Path, columns: int = 1, origin: Origin = UNKNOWN
) -> None:
    """Write each figure of a report to files of its own, and every round as data.

    Args:
        shown: The run or the comparison.
        folder: The folder to write to, which is made if it is missing.
        columns: The width of each figure in columns of a page, 1 or 2.
        origin: The command and the configuration behind the figures; by default what the run or
            the comparison itself states.
    """
    make_own_folder(folder)
    if origin == UNKNOWN:
        origin = origin_of(shown)
    for chart in charts_of(shown):
        drawn([chart], columns, origin).save(folder / chart.name)
    results = [shown] if isinstance(shown, Result) else shown.results
    save_rows(round_rows(results), folder / "rounds", origin)


def _look_of(number: int, line: ChartLine) -> dict[str, Any]:
    """Return the look of the line with a number, which grey print still tells from the others."""
    colour, dashes = number, number + number // len(INK)
    look: dict[str, Any] = {"linewidth": 1.3}
    if line.faint:
        look = {"linewidth": 0.8, "alpha": 0.7}
    if line.look is not None:  # in grey, markers stand for what the colour stands for
        colour, dashes, *_ = line.look
        look |= {"marker": MARKS[(colour + colour // len(INK)) % len(MARKS)], "markersize": 3}
    return look | {"color": INK[colour % len(INK)], "linestyle": STYLES[dashes % len(STYLES)]}


def draw_lines(ax: Axes, chart: Chart) -> None:
    """Draw the lines, bands and marks of a chart; grey print still tells the lines apart."""
    for number, line in enumerate(chart.lines):
        _draw_line(ax, line, _look_of(number, line))
    _draw_marks(ax, chart)
    if chart.has_log_x:
        _scale_by_logarithm(ax, chart)
    if chart.zero_line:
        ax.axhline(0, color="#222222", linewidth=0.9, zorder=1.5)
    if chart.between:
        ax.set_ylim(chart.between)
    if chart.from_zero:
        ax.set_ylim(min(ax.get_ylim()[0], 0.0) if chart.zero_line else 0.0)
    ax.set_title(chart.title, fontsize=8.5, pad=11 if chart.marks else 5)
    ax.set_xlabel(chart.x_name)
    ax.set_ylabel(chart.y_name)
    if chart.per_cent:
        ax.yaxis.set_major_formatter(PercentFormatter(1))
    heights: list[float] = []
    for line in chart.lines:
        heights += line.ys
    if all(isinstance(height, int) for height in heights):
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if chart.x_name == "round":
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))


def _draw_line(ax: Axes, line: ChartLine, look: dict[str, Any]) -> None:
    """Draw a line with its band and its dot."""
    if line.look is not None:
        look["markevery"] = max(len(line.xs) // 8, 1)
    ax.plot(line.xs, line.ys, label=line.name, zorder=1 if line.faint else 2, **look)
    if line.band:
        ax.fill_between(line.xs, *line.band, color=look["color"], alpha=0.15, linewidth=0)
    if line.dot is not None:
        place = (line.xs[line.dot], line.ys[line.dot])
        ax.plot(*place, color=look["color"], marker="o", markersize=6)


def _scale_by_logarithm(ax: Axes, chart: Chart) -> None:
    """Make the horizontal axis logarithmic, with ticks at the points, at most eight."""
    xs: set[float] = set()
    for line in chart.lines:
        xs.update(line.xs)
    places = sorted(xs)
    apart = -(-len(places) // 8)
    shown = places[::apart]
    ax.set_xscale("log")
    ax.set_xticks(shown, [f"{place:,.10g}" for place in shown])
    ax.minorticks_off()


def _draw_marks(ax: Axes, chart: Chart) -> None:
    """Draw the marks of a chart as dotted lines."""
    for place, name in chart.marks:
        ax.axvline(place, color="#222222", linestyle=":", linewidth=0.9, zorder=3)
        ax.annotate(
            name,
            (place, 1),
            (0, 1.5),  # above the axes, where nothing else is drawn
            ("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            size=6.5,
        )


def _draw_dots(figure: Drawing, cells: Any, chart: DotChart, width: float) -> None:
    """Draw a dot chart into two cells, accuracies to the left and differences to the right."""
    levels = figure.add_subplot(cells[0])
    _draw_estimates(levels, chart.dots, [dot.level for dot in chart.dots], 0, width)
    levels.set_title(chart.title, fontsize=8.5)
    levels.set_xlabel(_axis_name(chart.level_name, width))
    if chart.from_zero:
        levels.set_xlim(0)
    if chart.has_differences:
        differences = figure.add_subplot(cells[1])
        draw_differences(differences, chart, width)
        differences.tick_params(labelleft=False)
        differences.set_title("")


def draw_differences(ax: Axes, chart: DotChart, width: float = PAGE) -> None:
    """Draw the differences of a dot chart around a line at zero."""
    _draw_estimates(ax, chart.dots, [dot.difference for dot in chart.dots], -1, width)
    ax.axvline(0, color="#222222", linewidth=0.9, zorder=1.5)
    ax.set_title(chart.title, fontsize=8.5)
    ax.set_xlabel(_axis_name(chart.difference_name, width))


def _axis_name(name: str, width: float) -> str:
    """Fold the name of an axis that half of a figure is wide."""
    return _folded(name, int(6.5 * width) if width > COLUMN else 14)


def _row_name(name: str, width: float) -> str:
    """Fold the name of a line of dots, which stands to the left of the panels."""
    return _folded(name, 26 if width > COLUMN else 18)


def _draw_estimates(
    ax: Axes,
    dots: Sequence[Dot],
    values: Sequence[Estimate | None],
    least: float,
    width: float,
) -> None:
    """Draw estimates with their intervals in hundredths, one below the other.

    Args:
        ax: The axes.
        dots: The lines of the chart.
        values: Each line's estimate; None to draw nothing.
        least: The smallest possible value.
        width: The width of the figure.
    """
    for place, (dot, value) in enumerate(zip(dots, values, strict=True)):
        if value is None:
            continue
        colour = INK[dot.kind]
        low, high = value.within(least, 1)
        ax.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=1.3)
        ax.plot(100 * value.mean, place, color=colour, marker=MARKS[dot.kind], markersize=4)
    labels = [_row_name(dot.name, width) for dot in dots]
    ax.set_yticks(range(len(dots)), labels, fontsize=7)
    ax.set_ylim(len(dots) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    if width > COLUMN:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=5))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
        ax.tick_params(axis="x", labelsize=7)
        ax.xaxis.label.set_fontsize(7)


def _folded(label: str, most: int) -> str:
    """Fold a label into lines of so many characters, but not within a value's brackets.

    A longer word, such as an import path with options, is folded where its parts meet.
    """
    whole = re.sub(r"\(.*?\)", lambda found: found[0].replace(" ", "\u00a0"), label)
    lines = [""]
    for word in whole.split(" "):
        parts = [word]
        if len(word) > most:
            parts = re.split(r"(?<=[:=.])(?=[^\W\d])", word)
        for place, part in enumerate(parts):
            gap = " " if place == 0 and lines[-1] else ""
            if lines[-1] and len(lines[-1] + gap + part) > most:
                lines.append(part)
            else:
                lines[-1] += gap + part
    return "\n".join(lines)
