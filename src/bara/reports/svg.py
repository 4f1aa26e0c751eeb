"""The charts of HTML pages as SVG; their colours and dashes are classes of the page's style."""

import math
from collections.abc import Sequence
from html import escape

from bara.reports.charts import Chart, ChartLine
from bara.reports.dots import Dot, DotChart
from bara.reports.statistics import Estimate


def nice_step(span: float) -> float:
    """Return the smallest round step that covers the span in four steps.

    Round steps are 1, 2, 2.5 and 5 times a power of ten.

    >>> nice_step(0.87), nice_step(19), nice_step(1500)
    (0.25, 5.0, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(span / 4))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor * 4 >= span)


def draw(chart: Chart | DotChart) -> str:
    """Return a section with the chart as SVG, its legend, and a description for screen readers."""
    return _draw_dots(chart) if isinstance(chart, DotChart) else _draw_lines(chart)


def _draw_lines(chart: Chart) -> str:
    left, top, width, height = 52, 8, 420, 180
    every_x, every_y = _extent(chart)
    step, below, above = _ticks(every_y)
    start = min(every_x)
    end = max(*every_x, start + 1e-9)

    def place_of(x: float, y: float) -> tuple[float, float]:
        if chart.has_log_x:
            part = math.log(x / start) / math.log(end / start)
        else:
            part = (x - start) / (end - start)
        return left + part * width, top + (above - y / step) / (above - below) * height

    def points(xs: Sequence[float], ys: Sequence[float]) -> str:
        places = map(place_of, xs, ys)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    drawn = ""
    told = []
    for number, line in enumerate(chart.lines):
        look = _look(number, line)
        if line.band:
            low, high = line.band
            outline = f"{points(line.xs, high)} {points(line.xs[::-1], low[::-1])}"
            drawn += f'<polygon class="{look}" points="{outline}"/>'
        drawn += f'<polyline class="{look}" points="{points(line.xs, line.ys)}"/>'
        if line.dot is not None:
            x, y = place_of(line.xs[line.dot], line.ys[line.dot])
            drawn += f'<circle class="{look}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        told.append(f"{line.name} from {_number(line.ys[0], 3)} to {_number(line.ys[-1], 3)}")
    for place, name in chart.marks:
        x = left + min(max((place - start) / (end - start), 0.0), 1.0) * width
        drawn += f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}"/>'
        drawn += f'<text x="{x + 4:.1f}" y="{top + 12}">{escape(name)}</text>'
    grid = ""
    for tick in range(below, above + 1):
        y = top + (above - tick) / (above - below) * height
        text = _tick(tick * step, chart)
        grid += f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        grid += f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    foot = top + height + 16
    x_name = escape(chart.x_name)
    if chart.has_log_x:
        x_name += ", log scale"
    axis = (
        f'<text x="{left}" y="{foot}">{_number(start)}</text>'
        f'<text x="{left + width}" y="{foot}" text-anchor="end">{_number(end, 5)}</text>'
        f'<text x="{left + width / 2}" y="{foot}" text-anchor="middle">{x_name}</text>'
    )
    label = f"{chart.title}, over {chart.x_name}: {'; '.join(told)}"
    svg = (
        f'<svg viewBox="0 0 {left + width + 8} {top + height + 24}" role="img" '
        f'aria-label="{escape(label)}">{grid}{drawn}{axis}</svg>'
    )
    return f"<section><h2>{escape(chart.title)}</h2>{svg}{_legend(chart)}</section>"


def _extent(chart: Chart) -> tuple[list[float], list[float]]:
    """Return the positions and the heights of all points of a chart, bands included."""
    xs: list[float] = []
    ys: list[float] = []
    for line in chart.lines:
        xs += line.xs
        ys += line.ys
        for end_of_interval in line.band or ():
            ys += end_of_interval
    return xs, ys


def _ticks(values: Sequence[float]) -> tuple[float, int, int]:
    """Return the step of an axis that fits the values, and its first and last tick in steps."""
    lowest = min(values)
    highest = max(values)
    span = highest - lowest
    # so wide that no two ticks have the same label, also around a line that never changes
    step = nice_step(max(span, 4e-3 * abs(highest)) if span else 2 * abs(highest) or 1.0)
    below = math.floor(lowest / step)
    return step, below, max(math.ceil(highest / step), below + 1)


def _look(number: int, line: ChartLine) -> str:
    """Return the classes of a line: its colour, and its dashes, which remain in grey print."""
    colour, dashes = number, number + number // 8
    if line.look is not None:
        colour, dashes, *_ = line.look
    return f"c{colour % 8} d{dashes % 4}"


def _legend(chart: Chart) -> str:
    """Return the legend of a chart of several lines; colour and dashes may be explained apart."""
    if len(chart.lines) == 1:
        return ""
    colours: dict[str, str] = {}
    dashes: dict[str, str] = {}
    for number, line in enumerate(chart.lines):
        if line.look is None:
            colours[line.name] = _look(number, line)
        else:
            colours[line.look.colour_name] = f"c{line.look.colour % 8}"
            dashes[line.look.dashes_name] = f"soft d{line.look.dashes % 4}"
    shown = ""
    for name, look in (colours | dashes).items():
        key = f'<svg viewBox="0 0 30 6"><polyline class="{look}" points="0,3 30,3"/></svg>'
        shown += f"<span>{key}{escape(name)}</span>"
    return f'<p class="legend">{shown}</p>'


def _number(value: float, digits: int = 4) -> str:
    """Return a number with so many digits, or as many as it has before the point."""
    whole = len(f"{abs(value):.0f}")
    return f"{value:,.{max(digits, whole)}g}"


def _tick(value: float, chart: Chart) -> str:
    return f"{_number(100 * value)} %" if chart.per_cent else _number(value)


_LINE = 20
"""The height of a line of a dot chart."""

_GAP = 44
"""The room between the two panels of a dot chart."""


def _draw_dots(chart: DotChart) -> str:
    """Return a section with accuracies and, to their right, differences around a line at zero."""
    left = 20 + 6 * max(len(dot.name) for dot in chart.dots)
    width = 230
    height = _LINE * len(chart.dots)
    names = ""
    told = []
    for place, dot in enumerate(chart.dots):
        y = _LINE * place + 14
        names += f'<text x="{left - 12}" y="{y}" text-anchor="end">{escape(dot.name)}</text>'
        one = f"{dot.name} {100 * dot.level.mean:.1f} %"
        if dot.difference is not None:
            one += f", difference {100 * dot.difference.mean:+.1f} points"
        told.append(one)
    levels = _panel(chart.dots, [dot.level for dot in chart.dots], left, width, 0)
    differences = ""
    if chart.has_differences:
        values = [dot.difference for dot in chart.dots]
        differences = _panel(chart.dots, values, left + width + _GAP, width, -1)
    label = f"{chart.title}: {'; '.join(told)}"
    foot = height + 32
    axis = (
        f'<text x="{left + width / 2}" y="{foot}" text-anchor="middle">'
        f"{escape(chart.level_name)}</text>"
        f'<text x="{left + 1.5 * width + _GAP}" y="{foot}" text-anchor="middle">'
        f"{escape(chart.difference_name)}</text>"
    )
    svg = (
        f'<svg viewBox="0 0 {left + 2 * width + _GAP + 20} {foot + 6}" role="img" '
        f'aria-label="{escape(label)}">'
        f"{names}{levels}{differences}{axis}</svg>"
    )
    return f'<section class="wide" tabindex="0"><h2>{escape(chart.title)}</h2>{svg}</section>'


def _panel(
    dots: Sequence[Dot], values: Sequence[Estimate | None], left: float, width: float, least: float
) -> str:
    """Return one panel of a dot chart, in hundredths.

    Args:
        dots: The lines of the chart.
        values: Each line's estimate; None to draw nothing.
        left: The place of the panel's left edge.
        width: The width of the panel.
        least: The smallest possible value; below zero, a line marks zero.
    """
    ends: list[float] = []
    for value in values:
        if value is not None:
            ends += value.within(least, 1)
    if least < 0:
        ends.append(0.0)
    step, below, above = _ticks([100 * end for end in ends])
    height = _LINE * len(dots)

    def x_of(value: float) -> float:
        return left + (100 * value / step - below) / (above - below) * width

    drawn = ""
    for tick in range(below, above + 1):
        x = x_of(tick * step / 100)
        look = "zero" if tick == 0 and least < 0 else "grid"
        drawn += f'<line class="{look}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>'
        drawn += f'<text x="{x:.1f}" y="{height + 14}" text-anchor="middle">{tick * step:g}</text>'
    for place, (dot, value) in enumerate(zip(dots, values, strict=True)):
        if value is not None:
            y = _LINE * place + 10
            low, high = value.within(least, 1)
            look = f"c{dot.kind}"
            drawn += f'<polyline class="{look}" points="{x_of(low):.1f},{y} {x_of(high):.1f},{y}"/>'
            drawn += f'<circle class="{look}" cx="{x_of(value.mean):.1f}" cy="{y}" r="4"/>'
    return drawn
