"""Figures for print and for notebooks: charts as PNG, SVG and PDF, and the data behind them as CSV and Parquet."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bara import __version__
from bara.errors import ConfigError, MissingExtraError, UnknownNameError
from bara.plugins import nearest
from bara.reports.charts import Chart, charts_of
from bara.reports.comparison import Comparison
from bara.reports.data_files import UNKNOWN, Origin, origin_of, write_csv
from bara.reports.frames import Row, round_rows, type_of
from bara.reports.result import Result

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
"""Colours that the colour-blind can tell apart (Okabe and Ito), strong enough for lines on white."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 3)))
"""Lines are told apart in grey, too."""
MARKS = ("o", "s", "^", "D", "v", "x", "P", "*")
"""Marks on lines whose dashes tell something else."""
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
    """What made a figure as each format wants it; without a date, so that the same figure is the same file."""
    by, both = f"bara {__version__}", f"{origin.command}\n\n{origin.config}".strip()
    forms: dict[str, dict[str, str | None]] = {
        "png": {
            "Title": title,
            "Software": by,
            "Source": origin.command,
            "Description": origin.config,
        },
        "svg": {
            "Title": title,
            "Creator": by,
            "Source": origin.command,
            "Description": both,
            "Date": None,
        },
        "pdf": {
            "Title": title,
            "Creator": by,
            "Subject": origin.command,
            "Keywords": both,
            "CreationDate": None,
        },
    }
    return forms[form]


class Drawing(Figure):
    """A figure that notebooks show and that saves itself in every format.

    Attributes:
        origin: What made it.
    """

    origin = UNKNOWN

    def save(self, stem: str | Path) -> None:
        """Write PNG, SVG and PDF."""
        title = self.get_suptitle() or ", ".join(
            ax.get_title() for ax in self.axes if ax.get_title()
        )
        for form in FORMATS:
            path = Path(stem).with_name(f"{Path(stem).name}.{form}")
            self.savefig(path, dpi=300, metadata=_metadata(self.origin, form, title))

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=150)
        return content.getvalue()


COLUMN, PAGE = 3.4, 7.0
"""Inches of one column and of both on a two-column page."""


def plot(
    shown: Result | Comparison, name: str | None = None, *, columns: int = 1, ax: Axes | None = None
) -> Any:
    """A figure of a run's or a comparison's report; see `Comparison.plot`."""
    charts = charts_of(shown)
    if name is not None:
        chosen = [chart for chart in charts if chart.name == name]
        if not chosen:
            raise UnknownNameError(
                f"there is no figure {name!r}; {nearest(name, [chart.name for chart in charts])}"
            )
        charts = chosen
    if ax is None:
        return drawn(charts, columns, origin_of(shown))
    if len(charts) > 1:
        raise ConfigError(
            f"axes can hold only one figure; name one of {', '.join(chart.name for chart in charts)}"
        )
    draw_lines(ax, charts[0])
    ax.legend()
    return ax


def drawn(charts: Sequence[Chart], columns: int = 1, origin: Origin = UNKNOWN) -> Drawing:
    """Charts beside each other in one figure, as wide as so many columns of a page; the legend stands outside.

    Args:
        charts: What to draw.
        columns: 1 or 2; several charts take both.
        origin: What made them.
    """
    if columns not in {1, 2}:
        raise ConfigError(f"a figure must be 1 or 2 columns wide, got {columns}")
    across = 1 if len(charts) == 1 else 2
    width, lines = (COLUMN if columns == across == 1 else PAGE), -(-len(charts) // across)
    height = 2.5 * lines + 0.3 if across == columns else 3.6
    with rc_context(LOOK):
        figure = Drawing(figsize=(width, height), layout="constrained")
        figure.origin = origin
        grid = figure.subplots(lines, across, squeeze=False).ravel().tolist()
        for spare in grid[len(charts) :]:
            spare.set_visible(False)
        for chart, ax in zip(charts, grid, strict=False):
            draw_lines(ax, chart)
        names = {
            text: handle
            for ax in grid
            for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)
        }
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
            figure.set_size_inches(
                width, height + 0.15 * -(-len(names) // beside)
            )  # room of its own
    return figure


def save_rows(rows: Sequence[Row], stem: Path, origin: Origin = UNKNOWN) -> None:
    """The data behind a figure; every column has a type, also where nothing is known."""
    types = {column: _ARROW[type_of(column, rows)] for column in (rows[0] if rows else ())}
    plain = [
        {column: _of_type(value, types[column]) for column, value in row.items()} for row in rows
    ]
    told = {"command": origin.command, "config": origin.config} if origin != UNKNOWN else None
    table = pa.Table.from_pylist(plain, pa.schema(list(types.items()), metadata=told))
    write_csv(plain, stem.with_suffix(".csv"), origin)
    pyarrow.parquet.write_table(table, stem.with_suffix(".parquet"))


_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _of_type(value: Any, kind: pa.DataType) -> Any:
    return str(value) if kind == pa.string() and value is not None else value


def save_figures(
    shown: Result | Comparison, folder: Path, columns: int = 1, origin: Origin = UNKNOWN
) -> None:
    """Each figure of a report as a file of its own, and every round as data."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = origin_of(shown) if origin == UNKNOWN else origin
    for chart in charts_of(shown):
        drawn([chart], columns, origin).save(folder / chart.name)
    save_rows(
        round_rows([shown] if isinstance(shown, Result) else shown.results),
        folder / "rounds",
        origin,
    )


def draw_lines(ax: Axes, chart: Chart) -> None:
    """Lines, bands and marks of a chart; lines are told apart in grey, too."""
    for number, line in enumerate(chart.lines):
        hue, dashes = line.look or (number, number + number // len(INK))
        colour = INK[hue % len(INK)]
        style: Any = "-" if line.faint else STYLES[dashes % len(STYLES)]
        look: Any = (
            {"linewidth": 0.8, "alpha": 0.6, "zorder": 1}
            if line.faint
            else {"linewidth": 1.3, "zorder": 2}
        )
        if line.look:  # in grey, what one colour is for is told by marks
            look |= {
                "marker": MARKS[hue % len(MARKS)],
                "markevery": max(len(line.xs) // 8, 1),
                "markersize": 3,
            }
        ax.plot(line.xs, line.ys, color=colour, linestyle=style, label=line.name, **look)
        if line.band:
            ax.fill_between(line.xs, *line.band, color=colour, alpha=0.15, linewidth=0)
    for number, (place, name) in enumerate(
        chart.marks
    ):  # one below the other, because they may be close
        ax.axvline(place, color="#222222", linestyle=":", linewidth=0.9, zorder=3)
        ax.annotate(
            name,
            (place, 1),
            (2, -7 - 8 * number),
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
    if all(isinstance(y, int) for line in chart.lines for y in line.ys):
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
