"""One run, from its beginning or from where its books say it stopped, to its result."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, final, runtime_checkable

from bara.clients.bidding import Bidders
from bara.errors import (
    BaraError,
    ConfigError,
    InterruptionError,
    RunStoppedError,
    TrainingError,
    WaitingError,
)
from bara.loggers import Loggers
from bara.protocols import Believer, requirements_of
from bara.records import Evaluation, RoundRecord, json_money
from bara.reports.html import run_report
from bara.reports.result import Result
from bara.runs.config import Config, Source
from bara.runs.factory import assemble, check_engine
from bara.runs.folder import RunFolder
from bara.runs.privacy_account import PrivacyAccount
from bara.runs.progress import Wanted, attending, watching
from bara.runs.session import Session, Step
from bara.runs.summary import Summary
from bara.server.metrics import metric_title
from bara.text import counted, note

Observer = Callable[[Step], None]
"""Called with each round as awarded and as settled, after it is in the books.

An observer that raises stops the run there, with its books whole; one that only shows progress
should not raise (`bara.text.note`).
"""


@runtime_checkable
class SavesModels(Protocol):
    """A federation that saves models of which one is kept."""

    def finish(self) -> dict[str, Evaluation]:
        """Save the models, and return how good each is; the last one is `final`."""
        ...


def run(
    source: Source = None,
    /,
    *,
    out: str | Path | bool | None = None,
    log: Sequence[str] = (),
    observe: Observer | None = None,
    progress: Wanted = None,
    **keys: Any,
) -> Result:
    """Train one federation under a budget.

    Args:
        source: The experiment: a TOML file, a preset by its name, a mapping, a `Config`, or None
            for the defaults.
        out: The folder to leave books, models, result and report in, from which it can be resumed;
            True for a new one below `runs/`, None to keep nothing.
        log: Loggers, as in `tensorboard:DIR` or `mlflow:URI`; they need a folder.
        observe: Shown each round as awarded and as settled, after it is in the books.
        progress: Whether to show how far it is; None for where somebody watches, a terminal or a
            notebook.
        **keys: Changes to the experiment: a table (`budget={"max_rounds": 50}`) or the main key of
            one (`budget=600`, `allocator=MyAllocator`, `data="mnist"`).

    Raises:
        InterruptionError: After Ctrl-C; the round is finished first, and `so_far` holds what was
            played.
    """
    config = Config.load(source, **keys)
    if out is None or out is False:
        if log:
            raise ConfigError("loggers write into the run's folder; give one: out=...")
        with _watched(config, observe, progress) as observers:
            return play_run(config, *observers)
    path = None if out is True else Path(out)
    with RunFolder.new(path, config) as folder:
        return _play_in(folder, log, observe, progress)


def resume(
    folder: str | Path,
    *,
    log: Sequence[str] = (),
    observe: Observer | None = None,
    progress: Wanted = None,
    **parts: Any,
) -> Result:
    """Go on where a run stopped, to the same result as if it had not.

    Args:
        folder: The run's folder.
        log: As for `run`.
        observe: As for `run`.
        progress: As for `run`.
        **parts: What was an object when the run began, which its books only name:
            `allocator=MyAllocator()`; likewise `mechanism`, `federation`, `data`, and by key
            `training={"model": MyModel}`.
    """
    with RunFolder.find(Path(folder)) as found:
        found.config = found.config.with_parts(**parts)
        check_engine(found.config)
        found.claim_books()  # first: another process may have the run, or its record be damaged
        return _play_in(found, log, observe, progress)


def _play_in(
    folder: RunFolder, log: Sequence[str], observe: Observer | None, progress: Wanted
) -> Result:
    """Play a run in its folder; an error says how to go on."""
    config = folder.config
    with _how_to_go_on(folder), _watched(config, observe, progress) as observers:
        session = assemble(config, folder.path)  # a run that cannot be leaves nothing behind
        with Loggers(log, folder.path, config.model_dump(mode="json")) as loggers:
            observers += [loggers.observe, attending(folder.address)]
            return play_run(config, *observers, folder=folder, session=session)


@contextlib.contextmanager
def _watched(
    config: Config, observe: Observer | None, progress: Wanted
) -> Iterator[list[Observer]]:
    """Show how far a run is, and let Ctrl-C end it between rounds."""
    size = counted(config.clients.count, "client")
    title = f"{config.dataset}, {size}, {config.allocator.label} on {config.mechanism.label}"
    measure = metric_title(config.metric)
    with (
        Interruption() as interruption,
        watching(title, config.purse(), progress=progress, measure=measure) as watch,
    ):
        observers: list[Observer] = [watch]
        if observe is not None:
            observers.append(observe)
        observers.append(interruption.observe)
        yield observers


@contextlib.contextmanager
def _how_to_go_on(folder: RunFolder) -> Iterator[None]:
    """Add to an error how the run goes on, where there is a run and the error may pass."""
    try:
        yield
    except RunStoppedError as stopped:
        then = "the books are closed; go"
        if isinstance(stopped, WaitingError):
            then = "then go"
        hinted = type(stopped)(f"{stopped}; {then} on with: {folder.resume_command}")
        hinted.so_far = stopped.so_far
        raise hinted from None
    except (Exception, KeyboardInterrupt) as error:
        may_pass = (
            not isinstance(error, BaraError)
            or isinstance(error, TrainingError)
            or isinstance(error.__cause__, OSError)
        )
        if may_pass and folder.is_made:
            error.add_note(f"the books are whole; go on with: {folder.resume_command}")
        raise


# --- the life of a run -----------------------------------------------------------------------


def play_run(
    config: Config,
    *observers: Observer,
    folder: RunFolder | None = None,
    session: Session | None = None,
) -> Result:
    """Play a configuration's run to its end, and write its result.

    `bara run`, `bara resume`, a comparison's cells and a Flower app's server live through this.

    Args:
        config: The configuration of the run, completed.
        *observers: Shown each step, after it is in the books.
        folder: The folder for books, models, checkpoints, result and report; None to keep none.
            Rounds that its books hold already are not played again but rebuilt.
        session: Allocator, mechanism and federation; None for those the configuration names.
    """
    asks = config.budget.target is not None and config.budget.otherwise == "ask"
    if folder is None and asks:
        raise ConfigError(
            'budget.otherwise = "ask" needs books in which to wait for an answer: give the run a '
            "folder"
        )
    if session is None:
        session = assemble(config, None if folder is None else folder.path)
    summary = Summary(_strategic(config, session.federation))
    learners = [summary.tell]
    account = None
    if requirements_of(session.mechanism).protection:
        account = PrivacyAccount()
        learners.append(account.tell)
    models: dict[str, Evaluation] = {}
    with _entered(session.federation):
        budget = config.purse() if folder is None else folder.claim_books()
        try:
            for step in session.rounds(budget, *learners):
                for observe in observers:
                    observe(step)
        except RunStoppedError as stopped:
            if summary.has_begun:
                stopped.so_far = summary.result(str(stopped), **config.identity())
            raise
        if isinstance(session.federation, SavesModels):
            models = session.federation.finish()
    belief = None
    if isinstance(session.allocator, Believer):
        belief = session.allocator.belief()
    privacy = None if account is None else account.spent()
    result = summary.result(
        session.ended or "", belief, models=models, privacy=privacy, **config.identity()
    )
    result = _with_lying(config, summary, result)
    if folder is None:
        return result
    return folder.finish(result, run_report(result, config.to_toml(), folder.command))


def _entered(federation: object) -> contextlib.AbstractContextManager[Any]:
    """Enter a federation that holds processes; the others need nothing."""
    if isinstance(federation, contextlib.AbstractContextManager):
        return federation
    return contextlib.nullcontext()


def _strategic(config: Config, federation: object) -> Bidders | None:
    """Return the bidders, where some of them are strategic and the federation shows them."""
    bidders = getattr(federation, "bidders", None)
    if config.clients.strategic and isinstance(bidders, Bidders):
        return bidders
    return None


def _with_lying(config: Config, summary: Summary, result: Result) -> Result:
    """Add what strategic clients earned, beside what the same clients earn by asking their cost."""
    if summary.bidders is None:
        return result
    clients = config.clients.model_copy(update={"strategic": 0})
    honest = config.model_copy(update={"clients": clients})
    twin = Summary(summary.bidders)

    def tell_twin(step: Step) -> None:
        if isinstance(step, RoundRecord):
            twin.tell(step)

    play_run(honest, tell_twin)
    lying = json_money(
        profit=summary.profit,
        truthful_profit=twin.profit,
        gain=summary.profit - twin.profit,
    )
    return replace(result, lying=lying)


@final
class Interruption(contextlib.AbstractContextManager["Interruption"]):
    """A listener for Ctrl-C: the first ends a run after its round is settled, a second at once.

    Attributes:
        asked: True once Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __exit__(self, *_: object) -> None:
        """Let others listen again."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def observe(self, step: Step) -> None:
        """Listen from the first step on, and stop between rounds if asked to.

        Before the first step there is nothing to finish. Only a program's main thread hears Ctrl-C.
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
