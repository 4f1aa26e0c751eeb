"""What is compared, as dots with intervals: accuracies and, beside them, paired differences."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bara.reports.comparison_table import compared
from bara.reports.result import Result, measure_of
from bara.reports.standings import Standings
from bara.reports.statistics import Estimate
from bara.text import headline


@dataclass(frozen=True)
class Dot:
    """A line of a dot chart. Estimates are fractions.

    Attributes:
        name: The label.
        level: The accuracy.
        difference: The accuracy less that of another line; None for a line that others are
            compared with.
        kind: The number of the kind of thing that it is, which has a look of its own.
    """

    name: str
    level: Estimate
    difference: Estimate | None
    kind: int = 0


@dataclass(frozen=True)
class DotChart:
    """A chart of accuracies and their differences over paired seeds, a line for each contestant.

    Attributes:
        title: The text above the chart.
        level_name: The label of the axis of accuracies.
        difference_name: The label of the axis of differences.
        dots: The lines, from top to bottom.
        kinds: The kinds of things, for the legend; empty if there is only one.
        from_zero: True for an axis of accuracies that begins at zero; otherwise it fits the dots.
    """

    title: str
    level_name: str
    difference_name: str
    dots: tuple[Dot, ...]
    kinds: tuple[str, ...] = ()
    from_zero: bool = False

    @property
    def name(self) -> str:
        """The title in small letters, which names the chart's file and selects it in `plot`."""
        return file_name(self.title)

    @property
    def note(self) -> str:
        """The text below the chart, which says what the lines across the dots are."""
        for dot in self.dots:
            for one in (dot.level, dot.difference):
                if one is not None and one.margin is not None:
                    return "Lines: 95 % intervals."
        return ""

    @property
    def has_differences(self) -> bool:
        """True if anything is compared."""
        return any(dot.difference is not None for dot in self.dots)


def file_name(title: str) -> str:
    """Return a title's first line in small letters without spaces, as a file is named.

    >>> file_name("Accuracy over rounds")
    'accuracy-over-rounds'
    """
    return re.sub(r"[^a-z0-9.]+", "-", title.partition("\n")[0].lower()).strip("-")


def comparison_dots(results: Sequence[Result], against: str = "") -> list[DotChart]:
    """Return the chart of a comparison's accuracies and differences, if there is one to show.

    Args:
        results: The runs to draw.
        against: What each line is measured against, as for `baselines`.
    """
    lines = compared(results, against)
    firsts = {line.first for line in lines if line.first is not None}
    if not firsts:
        return []
    if len(firsts) == 1:
        other = firsts.pop()
    else:
        other = f"{against or results[0].allocator}, all else equal"
    dots = [Dot(line.name, line.accuracy, line.difference) for line in lines]
    return [_chart(measure_of(results), other, dots)]


def standings_dots(standings: Standings) -> list[DotChart]:
    """Return the chart of a suite's mean accuracies and differences, if there is one to show."""
    if len(standings.allocators) < 2:
        return []
    dots = []
    for name in standings.allocators:
        one = standings.of(name)
        gain = None if name == standings.baseline else one.gain
        dots.append(Dot(name, Estimate(one.final, None, one.gain.count), gain))
    return [_chart(standings.measure, standings.baseline, dots)]


def _chart(measure: str, against: str, dots: Sequence[Dot]) -> DotChart:
    title = f"{headline(measure)} and differences"
    return DotChart(title, f"{measure}, %", f"minus {against}, points", tuple(dots))
