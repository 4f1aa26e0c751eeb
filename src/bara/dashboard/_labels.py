"""Text that others chose, made fit to be shown: nothing invisible in it, and no longer than a line can take."""

import unicodedata

LONGEST = 96
"""Characters of a name that are shown."""


def shown(text: str) -> str:
    r"""A name as text: characters that steer rather than show are spelled out, and the end of a long one is cut.

    >>> shown("north"), shown("a\u202eb")
    ('north', 'a⟨U+202E⟩b')
    >>> shown("x" * 10_000)[-22:]
    'x… (10,000 characters)'
    """
    start = text if len(text) <= LONGEST else text[:LONGEST]
    plain = "".join(_spelled(c) if unicodedata.category(c)[0] == "C" else c for c in start)
    return plain if start == text else f"{plain}… ({len(text):,} characters)"


def _spelled(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
