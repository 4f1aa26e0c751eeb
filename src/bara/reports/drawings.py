"""Figures for print and for notebooks.

Charts become PNG, SVG and PDF, and the data behind them CSV and Parquet.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bara import __version__
from bara.errors import ConfigError, MissingExtraError, UnknownNameError
from bara.files import make_own_folder, replacing
from bara.reports.charts import Chart, charts_of
from bara.reports.comparison import Comparison
from bara.reports.frames import Row, round_rows, type_of
from bara.reports.publication import UNKNOWN, Origin, origin_of, write_csv
from bara.reports.result import Result
from bara.text import nearest

try:
    import pyarrow as pa
    import pyarrow.parquet
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
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
        origin: The command and the configuration behind the figure.
    """

    origin = UNKNOWN

    def save(self, stem: str | Path) -> None:
        """Write PNG, SVG and PDF to the stem with each format's suffix."""
        stem = Path(stem)
        titles = [ax.get_title() for ax in self.axes]
        title = self.get_suptitle() or ", ".join(filter(None, titles))
        for form in FORMATS:
            path = stem.with_name(f"{stem.name}.{form}")
            metadata = _metadata(self.origin, form, title)
            with replacing(path, durable=False) as file:
                self.savefig(file, format=form, dpi=300, metadata=metadata)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=150)
        return content.getvalue()


COLUMN, PAGE = 3.4, 7.0
"""The widths in inches of one column and of both on a two-column page."""


def plot(
    shown: Result | Comparison, name: str | None = None, *, columns: int = 1, ax: Axes | None = None
) -> Any:
    """Draw a figure of a run's or a comparison's report; see `Comparison.plot`."""
    charts = charts_of(shown)
    names = [chart.name for chart in charts]
    if name is not None:
        if name not in names:
            raise UnknownNameError(f"there is no figure {name!r}; {nearest(name, names)}")
        charts = [chart for chart in charts if chart.name == name]
    if ax is None:
        return drawn(charts, columns, origin_of(shown))
    if len(charts) > 1:
        raise ConfigError(f"axes can hold only one figure; name one of {', '.join(names)}")
    draw_lines(ax, charts[0])
    ax.legend()
    return ax


def drawn(charts: Sequence[Chart], columns: int = 1, origin: Origin = UNKNOWN) -> Drawing:
    """Draw charts side by side in one figure, with the legend outside.

    Args:
        charts: The charts to draw.
        columns: The width of the figure in columns of a page, 1 or 2; several charts take both.
        origin: The command and the configuration behind the charts.
    """
    if columns not in {1, 2}:
        raise ConfigError(f"a figure must be 1 or 2 columns wide, got {columns}")
    across = 1 if len(charts) == 1 else 2
    lines = -(-len(charts) // across)
    width = COLUMN if columns == across == 1 else PAGE
    height = 2.5 * lines + 0.3 if across == columns else 3.6
    with rc_context(LOOK):
        figure = Drawing(figsize=(width, height), layout="constrained")
        figure.origin = origin
        grid = figure.subplots(lines, across, squeeze=False).ravel().tolist()
        for spare in grid[len(charts) :]:
            spare.set_visible(False)
        for chart, ax in zip(charts, grid, strict=False):
            draw_lines(ax, chart)
        names = legend_of(grid)
        if len(names) > 1:
            widest = max(map(len, names))
            beside = max(int(width * 15 / (widest + 8)), 1)
            figure.legend(
                names.values(),
                names.keys(),
                loc="outside upper center",
                ncols=beside,
                fontsize=7,
                handlelength=3.5,
            )
            legend_lines = -(-len(names) // beside)
            figure.set_size_inches(width, height + 0.15 * legend_lines)  # room of its own
    return figure


def legend_of(axes: Sequence[Axes]) -> dict[str, Any]:
    """Return the handle of each name in the axes, every name once, for one legend of all."""
    names: dict[str, Any] = {}
    for ax in axes:
        handles, texts = ax.get_legend_handles_labels()
        names |= zip(texts, handles, strict=True)
    return names


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


def draw_lines(ax: Axes, chart: Chart) -> None:
    """Draw the lines, bands and marks of a chart; grey print still tells the lines apart."""
    for number, line in enumerate(chart.lines):
        hue, dashes = line.look or (number, number + number // len(INK))
        colour = INK[hue % len(INK)]
        style: Any = STYLES[dashes % len(STYLES)]
        look: Any = {"linewidth": 1.3, "zorder": 2}
        if line.faint:
            style = "-"
            look = {"linewidth": 0.8, "alpha": 0.6, "zorder": 1}
        if line.look:  # in grey, markers stand for what the colour stands for
            look["marker"] = MARKS[hue % len(MARKS)]
            look["markevery"] = max(len(line.xs) // 8, 1)
            look["markersize"] = 3
        ax.plot(line.xs, line.ys, color=colour, linestyle=style, label=line.name, **look)
        if line.band:
            ax.fill_between(line.xs, *line.band, color=colour, alpha=0.15, linewidth=0)
    for number, (place, name) in enumerate(chart.marks):
        ax.axvline(place, color="#222222", linestyle=":", linewidth=0.9, zorder=3)
        ax.annotate(
            name,
            (place, 1),
            (2, -7 - 8 * number),  # one below the other, because marks may be close
            ("data", "axes fraction"),
            textcoords="offset points",
            size=6.5,
        )
    if chart.between:
        ax.axhline(0, color="#222222", linewidth=0.9, zorder=1.5)
        ax.set_ylim(chart.between)
    ax.set_title(chart.title, fontsize=8.5)
    ax.set_xlabel(chart.x_name)
    ax.set_ylabel(chart.y_name)
    if chart.per_cent:
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    heights: list[float] = []
    for line in chart.lines:
        heights += line.ys
    if all(isinstance(height, int) for height in heights):
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
