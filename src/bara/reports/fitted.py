"""Tables that fit the terminal, and text that is safe to print in them."""

from collections.abc import Iterable, Iterator
from typing import final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Column, Table
from rich.text import Text

from bara.text import spelled


@final
class Fitted:
    """A table where the terminal has room for it; elsewhere one cell to a line.

    Rich itself would cut numbers. Where room is scarce, heads are wrapped and columns of text made
    narrower.

    Args:
        table: The table, with all of its rows.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        around = 2 * len(table.columns)  # what rich puts around and between the columns
        self._widest = around
        self._least = around
        self._widths: dict[int, int] = {}  # of columns of numbers, as narrow as they can be
        for place, column in enumerate(table.columns):
            is_text = column.justify == "left" and not column.no_wrap
            least = _least_width(column, is_text=is_text)
            if not is_text:
                self._widths[place] = least
            self._widest += _widest([str(column.header), *map(_shown, column.cells)])
            self._least += least

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw the table, or its cells one by one."""
        if self._least > options.max_width:
            yield from self._lines()
            return
        if self._widest > options.max_width:
            for place, width in self._widths.items():
                self._table.columns[place].width = width
                self._table.columns[place].no_wrap = False
        yield self._table

    def _lines(self) -> Iterator[Text]:
        heads = [column.header for column in self._table.columns[1:]]
        columns = [column.cells for column in self._table.columns]
        for name, *cells in zip(*columns, strict=True):
            yield Text(_shown(name), style="bold")
            for head, cell in zip(heads, cells, strict=True):
                if cell:
                    yield Text(f"  {head}: {_shown(cell)}")


def _least_width(column: Column, *, is_text: bool) -> int:
    """Return how narrow a column can be without cutting a number."""
    texts = str(column.header).split()
    if not (is_text and column.overflow == "fold"):
        for cell in column.cells:
            shown = _shown(cell)
            texts += [shown] if column.no_wrap else shown.split()
    return max(_widest(texts), column.min_width or 0)


def _shown(cell: RenderableType) -> str:
    text = str(cell)
    if "[" in text or ":" in text:  # it may hold markup
        return Text.from_markup(text).plain
    return text


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def plain(text: str) -> str:
    """Escape text that others chose, so that nothing in it is taken for markup."""
    return spelled(text).replace("[", r"\[")
