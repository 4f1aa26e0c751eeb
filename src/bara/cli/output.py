"""How the verbs show their work and their errors: all that reaches a terminal passes here."""

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
    """What the user typed, to be repeated."""
    return shlex.join(["bara", *sys.argv[1:]])


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output" if error.errno else None
        raise


@_standard_output()
def say(text: str, *, nl: bool = True) -> None:
    """Lines, with nothing in them that steers a terminal."""
    sys.stdout.write(_lines(text) + "\n" * nl)


def _lines(text: str) -> str:
    return "\n".join(map(spelled, text.split("\n")))


def print_json(tree: Any) -> None:
    """One document."""
    say(json.dumps(tree, indent=1))


@_standard_output()
def show(what: "RenderableType") -> None:
    """A table or a panel."""
    from rich.console import Console

    console = Console()
    with console.capture() as shown:
        console.print(Spelled(what))
    sys.stdout.write(shown.get().rstrip("\n") + "\n")


class Spelled:
    """Something to be drawn, with nothing in its text that steers a terminal."""

    def __init__(self, what: "RenderableType") -> None:
        self._what = what

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """What would be drawn, its text spelled out."""
        for part in console.render(self._what, options):
            yield part if part.control else part._replace(text=_lines(part.text))


class _Unfailing(io.TextIOWrapper):
    """A stream for progress, which cannot fail what it tells of: what cannot be written is dropped."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Streams that take every character, closed ones too; and a stderr that never fails."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when we were started
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the program lives
        getattr(sys, name).reconfigure(errors="backslashreplace")
    sys.stderr = _Unfailing(
        sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True
    )
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except (
            OSError
        ):  # reported where it was written; Python would write it once more, and fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def errors(debug: bool = False) -> Iterator[None]:
    """One clear line: exit 2 for what was asked wrongly, 1 for work that failed; `--debug` shows the traceback, too."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:  # whoever read has had enough
        raise typer.Exit(141) from None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - anything at all
        if debug or "--debug" in sys.argv:
            traceback.print_exc()
        line, code = explain(error), 2 if isinstance(error, ConfigError) else 1
        code = 130 if isinstance(error, InterruptionError) else code
        if isinstance(error, KeyboardInterrupt):
            line, code = "interrupted", 130
        elif is_fault(error):
            line = f"this is a bug in bara; please report it with the output of --debug: {line}"
        note(f"bara: {'; '.join([line, *getattr(error, '__notes__', [])])}")
        raise typer.Exit(code) from None
