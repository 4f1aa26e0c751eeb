"""Text that others chose (names, reasons, messages), made fit for a terminal, for a line of progress and for tables."""

import contextlib
import csv
import io
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any


def spelled(text: str) -> str:
    r"""The text with characters that steer rather than show (escapes, ends of lines, changes of direction) spelled out.

    >>> spelled("north"), spelled("a\u202eb\x1b[2J")
    ('north', 'a⟨U+202E⟩b⟨U+001B⟩[2J')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(one):04X}⟩" if unicodedata.category(one)[0] == "C" else one for one in text
    )


def counted(number: int, thing: str) -> str:
    """How many there are of a thing, in English.

    >>> counted(1, "client"), counted(2, "batch"), counted(3, "delivery")
    ('1 client', '2 batches', '3 deliveries')
    """
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}{'e' * thing.endswith('ch')}s"
    return f"{number} {thing if number == 1 else plural}"


UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What neither a database nor the name of a file can hold: NUL, and halves of characters."""


def note(line: str) -> None:
    """Write a line of progress to stderr; where it cannot be shown it is dropped, because nothing may fail by it."""
    with contextlib.suppress(
        Exception
    ):  # a closed pipe, a full disk, no stderr at all, a write that Ctrl-C interrupts
        sys.stderr.write(f"{spelled(line)}\n")
        sys.stderr.flush()


_FORMULA = re.compile(r"""(?:^|;)(?=[\s"]*[=+\-@\t\r\n＝＋－＠])""")
"""Where text begins a cell, in a table parted by commas or by semicolons, that would be a formula."""

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.IGNORECASE)


def csv_text(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in CSV, in which no text steers a terminal or begins a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(_inert, row) for row in chain([names], rows))
    return text.getvalue()


def _inert(value: Any) -> Any:
    r"""Text that a spreadsheet would take for a formula begins with an apostrophe; numbers, negative ones too, do not.

    Where a semicolon parts cells, as in much of Europe, what follows one begins a cell.

    >>> _inert("=1+1"), _inert("-0.50"), _inert(-0.5), _inert("\tcmd"), _inert('a; "=1+1"')
    ("'=1+1", '-0.50', -0.5, "'⟨U+0009⟩cmd", 'a;\' "=1+1"')
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return spelled(_FORMULA.sub(r"\g<0>'", value))


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a tree of keys to whole names, as one writes them after `--set`.

    >>> flat({"budget": {"total": 600}, "seed": 1})
    {'budget.total': 600, 'seed': 1}
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
