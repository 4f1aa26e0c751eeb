"""How Flower logs what bara refuses: in one line."""

import logging

from bara.errors import BaraError


def in_one_line(record: logging.LogRecord) -> bool:
    """Let Flower log a refusal of bara's as one line; its traceback says nothing to the user.

    A filter for Flower's log. A traceback stays where bara passes on another error, such as a
    strategy's.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, BaraError) and error.__cause__ is None:
        record.msg = f"{record.getMessage()}: {error}"
        record.args = ()
        record.exc_info = None
    return True
