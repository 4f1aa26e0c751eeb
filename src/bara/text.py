"""Safe output of foreign text (names, reasons, messages) in terminals, progress and tables."""

import contextlib
import csv
import difflib
import io
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def spelled(text: str) -> str:
    r"""Return the text with control characters (escapes, line ends, directions) spelled out.

    >>> spelled("north"), spelled("a\u202eb\x1b[2J")
    ('north', 'a⟨U+202E⟩b⟨U+001B⟩[2J')
    """
    if text.isascii() and text.isprintable():
        return text
    shown = []
    for character in text:
        if unicodedata.category(character).startswith("C"):
            shown.append(f"⟨U+{ord(character):04X}⟩")
        else:
            shown.append(character)
    return "".join(shown)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun in English, in the plural where needed.

    >>> counted(1, "client"), counted(2, "batch"), counted(3, "delivery")
    ('1 client', '2 batches', '3 deliveries')
    """
    if number == 1:
        return f"{number} {thing}"
    if thing.endswith("y"):
        return f"{number} {thing[:-1]}ies"
    if thing.endswith("ch"):
        return f"{number} {thing}es"
    return f"{number} {thing}s"


def listing(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are.

    >>> listing(["ann", "bob", "cat"], most=2)
    'ann, bob and 1 more'
    """
    told = ", ".join(names[:most])
    if len(names) > most:
        told += f" and {len(names) - most} more"
    return told


def headline(words: str) -> str:
    """Return the words with a capital first letter, as a title begins.

    >>> headline("accuracy"), headline("AUC")
    ('Accuracy', 'AUC')
    """
    return words[:1].upper() + words[1:]


UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that neither a database nor a file name can hold: NUL and lone surrogates."""


_LONGEST = 300
"""The most characters of a reason that are kept: a client may have written part of it."""


def storable(reason: str) -> str:
    """Return a reason as ledgers and logs keep it: short, and without what nobody can store."""
    return UNSTORABLE.sub("\ufffd", reason[:_LONGEST])


def note(line: str) -> None:
    """Write a line of progress to stderr, or drop it: a run must not fail because of a message."""
    # A closed pipe, a full disk, no stderr at all, a write that Ctrl-C interrupts: anything.
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{spelled(line)}\n")
        sys.stderr.flush()


_FORMULA = re.compile(r"""(?:^|;)(?=[\s"]*[=+\-@\t\r\n＝＋－＠])""")
"""The start of a cell that a spreadsheet takes for a formula; semicolons may end cells, too."""

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.IGNORECASE)


def csv_text(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV in which no text controls a terminal or starts a formula.

    Args:
        names: The columns' names, for the first line.
        rows: The rows of the table.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_inert, names))
    for row in rows:
        writer.writerow(map(_inert, row))
    return text.getvalue()


def _inert(value: Any) -> Any:
    r"""Return a value for a cell; text that would start a formula gets an apostrophe before it.

    Numbers, also negative ones, stay as they are. In much of Europe semicolons separate cells, so
    the text after a semicolon may start a formula, too.

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


def nearest(name: str, known: list[str]) -> str:
    """Return a hint for an unknown name: the one probably meant, or all the known names."""
    meant = probably_meant(name, known)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"there are: {', '.join(sorted(known))}"


def probably_meant(name: str, known: list[str]) -> str | None:
    """Return the known name that an unknown one is most like; None if none or several are."""
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    alike = [difflib.SequenceMatcher(None, one, name).ratio() for one in close]
    if alike and alike[0] not in alike[1:]:
        return close[0]
    return None
