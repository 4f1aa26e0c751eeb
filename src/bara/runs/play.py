"""Runs one experiment, from its beginning or from where its books say it stopped."""

import contextlib
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any, Protocol, final, runtime_checkable

from bara.clients.bidding import Bidders
from bara.errors import ConfigError, InterruptionError, RunStoppedError
from bara.protocols import Believer, requirements_of
from bara.records import Evaluation, RoundRecord, json_money
from bara.reports.result import Result, Summary
from bara.runs.config import Config
from bara.runs.data import settled
from bara.runs.factory import assemble
from bara.runs.folder import RunFolder
from bara.runs.privacy_account import PrivacyAccount
from bara.runs.session import Session, Step
from bara.text import note

Observer = Callable[[Step], None]
"""Is shown each round as awarded and as settled, after it is in the books.

One that raises stops the run there, with its books whole; what only shows progress should not raise
(`bara.text.note`).
"""


@runtime_checkable
class Keeps(Protocol):
    """A federation that keeps models beside the final one."""

    def finish(self) -> dict[str, Evaluation]:
        """Save them, and say how good each is; the last one is `final`."""
        ...


def run(
    config: Config,
    *observers: Observer,
    folder: RunFolder | None = None,
    session: Session | None = None,
) -> Result:
    """Play a configuration's federation to its end.

    Args:
        config: What to run.
        *observers: Shown each step, after it is in the books.
        folder: Where books, models and checkpoints go; None to keep none. Rounds that its books
            hold already are not played again but rebuilt.
        session: Allocator, mechanism and federation; None for those the configuration names.
    """
    config = settled(config)
    if folder is None and config.budget.target is not None and config.budget.otherwise == "ask":
        raise ConfigError(
            'budget.otherwise = "ask" needs books in which to wait for an answer: give the run a folder'
        )
    session = session or assemble(config, None if folder is None else folder.path)
    federation, allocator = session.federation, session.allocator
    summary = Summary(_strategic(config, federation))
    account = PrivacyAccount() if requirements_of(session.mechanism).protection else None
    with _entered(federation):
        budget = config.purse() if folder is None else folder.claim_books()
        try:
            for step in session.rounds(budget, *(one.tell for one in (summary, account) if one)):
                for observe in observers:
                    observe(step)
        except RunStoppedError as stopped:
            stopped.so_far = (
                summary.result(str(stopped), **config.identity()) if summary.has_begun else None
            )
            raise
        models = federation.finish() if isinstance(federation, Keeps) else {}
    result = summary.result(
        session.ended or "",
        allocator.belief() if isinstance(allocator, Believer) else None,
        models=models,
        privacy=None if account is None else account.spent(),
        **config.identity(),
    )
    return _with_lying(config, summary, result)


def _entered(federation: object) -> contextlib.AbstractContextManager[Any]:
    """A federation that holds processes ends them; the others need nothing."""
    held = isinstance(federation, contextlib.AbstractContextManager)
    return federation if held else contextlib.nullcontext()  # type: ignore[return-value]


def _strategic(config: Config, federation: object) -> Bidders | None:
    """The bidders, where some of them are strategic and the federation lets us see."""
    bidders = getattr(federation, "bidders", None)
    return bidders if config.clients.strategic and isinstance(bidders, Bidders) else None


def _with_lying(config: Config, summary: Summary, result: Result) -> Result:
    """Add what the strategic clients earned, beside what the same clients earn when they ask their cost instead."""
    if summary.bidders is None:
        return result
    honest = config.model_copy(
        update={"clients": config.clients.model_copy(update={"strategic": 0})}
    )
    twin = Summary(summary.bidders)
    run(honest, lambda step: twin.tell(step) if isinstance(step, RoundRecord) else None)
    told, gain = twin.profit, summary.profit - twin.profit
    return replace(result, lying=json_money(profit=summary.profit, truthful_profit=told, gain=gain))


@final
class Interruption(contextlib.AbstractContextManager["Interruption"]):
    """Lets Ctrl-C end a run after the round's books are closed, and a second one at once.

    Attributes:
        asked: Whether it came.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __exit__(self, *_: object) -> None:
        """Let others listen again."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def observe(self, step: Step) -> None:
        """Listen from the first step on, before which there is nothing to finish; stop between rounds, if asked.

        Only a program's main thread hears Ctrl-C, and can listen.
        """
        if self._before is None and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        if self.asked and isinstance(step, RoundRecord):
            raise InterruptionError(f"interrupted after round {step.round}")

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        note("")
        note("bara: finishing this round first; Ctrl-C again stops at once")
