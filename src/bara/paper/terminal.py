"""The paper's exhibits in a terminal."""

from rich.console import Group, RenderableType
from rich.text import Text

from bara.paper.analysis import ExhibitResult
from bara.paper.tables import table_rows, tabled, told
from bara.reports.fitted import Fitted
from bara.reports.terminal import rich_table


def exhibit_table(shown: ExhibitResult) -> RenderableType:
    """Show a figure or table of the paper: its rows where they are few, claims and measurements."""
    lines: list[RenderableType] = [
        Text(f"{shown.exhibit.name}: {shown.exhibit.title}", style="bold")
    ]
    if tabled(shown):
        head, *rows = table_rows(shown)
        lines.append(Fitted(rich_table(head, rows, 2)))
    for name, text in told(shown).items():
        lines.append(Text.assemble((f"{name}: ", "bold"), text))
    return Group(*lines, Text())
