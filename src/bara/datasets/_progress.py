"""How far a download is: a function that is told, and the adapter pooch speaks to."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]
"""Told (file, bytes so far, bytes in all) as a download goes on."""

MEGABYTE = 1e6


@dataclass
class Meter:
    """Counts what pooch reports, in the form pooch wants its progress bars, and tells a function.

    Attributes:
        file: What is downloaded.
        size: How many bytes it has.
        show: The function that is told.
        total: What the server says it has; set by pooch, not used.
        done: How many bytes came.
        told: What the function was told last; it is not told the same twice.
    """

    file: str
    size: int
    show: Progress
    total: int = 0
    done: int = 0
    told: int = -1

    def update(self, came: int) -> None:
        """Counts bytes that came; pooch counts whole chunks, so the last one may be less."""
        self.done = min(self.done + came, self.size)
        if self.done != self.told:
            self.told = self.done
            self.show(self.file, self.done, self.size)

    def reset(self) -> None:
        """Starts the count again; pooch does so before it reports the whole at the end."""
        self.done = 0

    def close(self) -> None:
        """Nothing to tidy up."""


def reporter(progress: bool | Progress) -> Progress:  # noqa: FBT001  (as fetch takes it)
    """The function to tell: the caller's, one that writes on standard error, or one that says nothing."""
    if callable(progress):
        return progress
    return _write if progress else _silent


def _silent(file: str, done: int, total: int) -> None:
    pass


def _write(file: str, done: int, total: int) -> None:
    """A line that is rewritten on a terminal; elsewhere one line when the file is there."""
    whole = done >= total
    text = f"{file}: {done / MEGABYTE:.2f} of {total / MEGABYTE:.2f} MB"
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}" + "\n" * whole)
    elif whole:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
