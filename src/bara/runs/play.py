"""The life of one run: from its beginning, or from where its books stop, to its result."""

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

An observer that raises stops the run there, with its books whole; an observer that only shows
progress should not raise (see `bara.text.note`).
"""


@runtime_checkable
class SavesModels(Protocol):
    """A federation that saves models, one of which is the run's kept model."""

    def finish(self) -> dict[str, Evaluation]:
        """Save the models; return each one's evaluation by its name, the last as `final`."""
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
    """Train one federation under a budget; return the run's result.

    Args:
        source: The experiment: a TOML file, a preset by its name, a mapping, a `Config`, or None
            for the defaults.
        out: The folder for books, models, result and report, from which the run can be resumed;
            True for a new folder below `runs/`, None to store nothing.
        log: Loggers, such as `tensorboard:DIR` or `mlflow:URI`; they need a folder.
        observe: Called with each round as awarded and as settled, after it is in the books.
        progress: Whether to show progress; None to show it only on a terminal and in a notebook.
        **keys: Changes to the experiment: a table (`budget={"max_rounds": 50}`) or its main key
            alone (`budget=600`, `allocator=MyAllocator`, `data="mnist"`).

    Raises:
        InterruptionError: After Ctrl-C; the round is finished first, and `so_far` holds the result
            until then.
    """
    config = Config.load(source, **keys)
    if out is None or out is False:
        if log:
            raise ConfigError("loggers write into the run's folder; give one: out=...")
        with _watched(config, observe, progress, resumable=False) as observers:
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
    """Resume a run where it stopped; return the same result as if it had never stopped.

    Args:
        folder: The run's folder.
        log: As for `run`.
        observe: As for `run`.
        progress: As for `run`.
        **parts: The parts that were handed to the run as objects, which its books only name:
            `allocator=MyAllocator()`; likewise `mechanism`, `federation`, `data`, and by key
            `training={"model": MyModel}`.
    """
    with RunFolder.find(Path(folder)) as found:
        found.config = found.config.with_parts(**parts)
        check_engine(found.config)
        found.refuse_other_code(found.config.names_of(parts))
        # At once: another process may be playing the run, or the record may be damaged.
        found.claim_books()
        return _play_in(found, log, observe, progress)


def _play_in(
    folder: RunFolder, log: Sequence[str], observe: Observer | None, progress: Wanted
) -> Result:
    """Play a run in its folder; errors tell how to go on with it."""
    config = folder.config
    with (
        _how_to_go_on(folder),
        _watched(config, observe, progress, resumable=not config.handed_over()) as observers,
    ):
        # Before anything is written: a run that cannot be assembled leaves nothing behind.
        session = assemble(config, folder.path)
        with Loggers(log, folder.path, config.model_dump(mode="json")) as loggers:
            observers += [loggers.observe, attending(folder.address)]
            return play_run(config, *observers, folder=folder, session=session)


@contextlib.contextmanager
def _watched(
    config: Config, observe: Observer | None, progress: Wanted, *, resumable: bool
) -> Iterator[list[Observer]]:
    """Show the progress of a run, and let Ctrl-C end it between rounds; yield its observers."""
    size = counted(config.clients.count, "client")
    title = f"{config.dataset}, {size}, {config.allocator.label} on {config.mechanism.label}"
    watched = watching(
        title,
        config.purse(),
        progress=progress,
        measure=metric_title(config.metric),
        resumable=resumable,
    )
    with Interruption() as interruption, watched as watch:
        observers: list[Observer] = [watch]
        if observe is not None:
            observers.append(observe)
        observers.append(interruption.observe)
        yield observers


@contextlib.contextmanager
def _how_to_go_on(folder: RunFolder) -> Iterator[None]:
    """Add to an error how to go on with the run, if trying again may help."""
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
    """Play a run to its end, write its result into the folder, and return it.

    `bara run`, `bara resume`, the cells of a comparison and a Flower app's server all do this.

    Args:
        config: The complete configuration of the run.
        *observers: Called with each step, after it is in the books.
        folder: The folder for books, models, checkpoints, result and report; None to store nothing.
            Rounds that its books already hold are restored, not played again.
        session: The session to play; None to make one of what the configuration names.
    """
    _check_answerable(config, folder)
    if session is None:
        session = assemble(config, None if folder is None else folder.path)
    keeps_bids = config.ledger.retention == "keep"
    summary = Summary(_strategic(config, session.federation), keeps_bids=keeps_bids)
    learners = [summary.tell]
    account = None
    if requirements_of(session.mechanism).protection:
        account = PrivacyAccount()
        learners.append(account.tell)
    models: dict[str, Evaluation] = {}
    with _entered(session.federation):
        budget = config.purse() if folder is None else folder.claim_books()
        with _result_so_far(config, summary):
            for step in session.rounds(budget, *learners):
                for observe in observers:
                    observe(step)
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


def _check_answerable(config: Config, folder: RunFolder | None) -> None:
    """Refuse a run that may have to ask an operator, but has no books to wait in."""
    asks = config.budget.target is not None and config.budget.otherwise == "ask"
    if folder is None and asks:
        raise ConfigError(
            'budget.otherwise = "ask" needs books in which to wait for an answer: give the run a '
            "folder"
        )


@contextlib.contextmanager
def _result_so_far(config: Config, summary: Summary) -> Iterator[None]:
    """Add the result so far to the error that stops a run between rounds."""
    try:
        yield
    except RunStoppedError as stopped:
        if summary.has_begun:
            stopped.so_far = summary.result(str(stopped), **config.identity())
        raise


def _entered(federation: object) -> contextlib.AbstractContextManager[Any]:
    """Return the federation to enter if it holds processes; others have nothing to enter."""
    if isinstance(federation, contextlib.AbstractContextManager):
        return federation
    return contextlib.nullcontext()


def _strategic(config: Config, federation: object) -> Bidders | None:
    """Return the federation's bidders if some are strategic and the federation shows them."""
    bidders = getattr(federation, "bidders", None)
    if config.clients.strategic and isinstance(bidders, Bidders):
        return bidders
    return None


def _with_lying(config: Config, summary: Summary, result: Result) -> Result:
    """Add what strategic clients gained over asking their true cost, from a second, honest run."""
    if summary.bidders is None:
        return result
    clients = config.clients.model_copy(update={"strategic": 0})
    budget = config.budget.model_copy(update={"otherwise": "spend"})  # nobody answers for a twin
    honest = config.model_copy(update={"clients": clients, "budget": budget})
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
        """Hand Ctrl-C back to whoever listened before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def observe(self, step: Step) -> None:
        """Listen from the first step on; after Ctrl-C, stop the run once a round is settled.

        Before the first step, there is no round to finish, so Ctrl-C ends the program as usual.
        Only a program's main thread can listen for Ctrl-C.
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
