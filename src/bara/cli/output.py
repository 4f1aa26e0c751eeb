"""The output of the verbs: text, tables, JSON and errors, made safe for a terminal."""

import contextlib
import io
import json
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bara.errors import ConfigError, InterruptionError
from bara.plugins import explain, is_fault
from bara.text import note, spelled

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


def command_line() -> str:
    """Return the command that the user typed, so that it can be repeated."""
    return shlex.join(["bara", *sys.argv[1:]])


@contextmanager
def _standard_output() -> Iterator[None]:
    """Flush standard output, and name it in errors of writing to it."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output" if error.errno else None
        raise


@_standard_output()
def say(text: str, *, nl: bool = True) -> None:
    """Print text without control characters.

    Args:
        text: One or more lines.
        nl: Whether to end the text with a new line.
    """
    end = "\n" if nl else ""
    sys.stdout.write(_lines(text) + end)


def _lines(text: str) -> str:
    """Spell out the control characters in each line."""
    return "\n".join(map(spelled, text.split("\n")))


def print_json(tree: Any) -> None:
    """Print a tree as one JSON document."""
    say(json.dumps(tree, indent=1))


@_standard_output()
def show(what: "RenderableType") -> None:
    """Print a table or a panel."""
    from rich.console import Console

    console = Console()
    with console.capture() as shown:
        console.print(Spelled(what))
    sys.stdout.write(shown.get().rstrip("\n") + "\n")


class Spelled:
    """A renderable whose text is drawn without control characters.

    Args:
        what: The table or panel.
    """

    def __init__(self, what: "RenderableType") -> None:
        self._what = what

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Yield the segments of the renderable, with their text spelled out."""
        for segment in console.render(self._what, options):
            text = segment.text
            is_plain = text == "\n" or (text.isascii() and text.isprintable())
            if segment.control or is_plain:
                yield segment
            else:
                yield segment._replace(text=_lines(text))


class _Unfailing(io.TextIOWrapper):
    """A stream that drops what it cannot write: showing progress must not fail the work."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make standard streams accept every character, even if closed, and stderr never fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the program
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - stays open to the end
        getattr(sys, name).reconfigure(errors="backslashreplace")
    sys.stderr = _Unfailing(
        sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True
    )
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            # The error was reported when it happened; Python would try again at exit, and fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def errors(debug: bool = False) -> Iterator[None]:
    """Turn every error into one line and an exit code: 2 for wrong usage, 1 for failed work.

    Args:
        debug: Whether to show the traceback as well.
    """
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        raise typer.Exit(141) from None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error becomes a line
        if debug or "--debug" in sys.argv:
            traceback.print_exc()
        line = explain(error)
        if isinstance(error, KeyboardInterrupt):
            line = "interrupted"
        elif is_fault(error):
            line = f"this is a bug in bara; please report it with the output of --debug: {line}"
        notes = getattr(error, "__notes__", [])
        note(f"bara: {'; '.join([line, *notes])}")
        raise typer.Exit(_exit_code(error)) from None


def _exit_code(error: BaseException) -> int:
    if isinstance(error, InterruptionError | KeyboardInterrupt):
        return 130
    if isinstance(error, ConfigError):
        return 2
    return 1
