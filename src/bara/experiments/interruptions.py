"""Ctrl-C ends a run after the round's books are closed; a second one ends it at once."""

import contextlib
import signal
import sys
from types import FrameType
from typing import Any, Self

from bara.errors import RunStoppedError
from bara.records import AwardedRound, RoundRecord


class Interruption(contextlib.AbstractContextManager["Interruption"]):
    """Listens for Ctrl-C while it is entered.

    Attributes:
        asked: Whether it came.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        """Listen."""
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        """Let others listen again."""
        signal.signal(signal.SIGINT, self._before)

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Stop between rounds, if that was asked."""
        if self.asked and isinstance(step, RoundRecord):
            raise RunStoppedError(f"interrupted after round {step.round}")

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        sys.stderr.write("\nbara: this round is finished first; Ctrl-C again stops at once\n")
