"""The place of a run: a folder or a database, with one way to open, claim, read and resume it."""

import contextlib
import os
import shlex
from abc import ABC, abstractmethod
from pathlib import Path

from bara.errors import ConfigError, LedgerError
from bara.ledger import Books, Store, Terms, verify
from bara.ledger.notifications import check_hook
from bara.ledger.operators import check_place
from bara.records import money
from bara.runs.config import Config
from bara.runs.engines import kind_of
from bara.text import flat


class Place(contextlib.ExitStack, ABC):
    """The place of a run; a context manager, because it holds a database and perhaps a lock.

    Attributes:
        config: The configuration of the run.
    """

    config: Config

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the run in its database."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The words that name the run in a command, after `bara ledger`."""

    @property
    @abstractmethod
    def resume_command(self) -> str:
        """The command that makes the run go on once it was stopped, for whoever plays it."""

    @property
    @abstractmethod
    def continue_command(self) -> str:
        """The command that lets the run go on once it was paused."""

    @abstractmethod
    def claim_books(self) -> Books:
        """Take the run's lock and open its books, new or not, to play the run."""

    @abstractmethod
    def read_books(self) -> Books:
        """Open the books for reading only: nothing is made, changed or held."""

    @abstractmethod
    def open_books(self) -> Books:
        """Open the books for what an operator may do while the run goes on."""

    @abstractmethod
    def hold_books(self) -> Books:
        """Take the run's lock, for what an operator may do only while nobody plays the run."""

    def _closing(self, store: Store) -> Store:
        """Close a database with this place."""
        self.callback(store.close)
        return store

    def _addressed(self, books: Books) -> Books:
        """Let the books say how one writes their run after `bara ledger`."""
        books.address = self.address
        return books


def command_for(verb: str, place: Path, engine: str) -> str:
    """Return what runs or resumes a run: a command of bara's, of Flower's, or the user's program.

    Args:
        verb: What bara would be told: `run` or `resume`.
        place: The run's folder, or its configuration file.
        engine: The engine of the run.
    """
    match kind_of(engine).player:
        case "flower-app":
            return "flwr run"
        case "own-program":
            return "your own program, which goes on where it stopped"
        case "nobody":
            return f"bara {verb} {shlex.quote(str(place))}, with bara 0.2"
        case _:
            return f"bara {verb} {shlex.quote(str(place))}"


def check_player(engine: str) -> None:
    """Refuse an engine whose runs bara itself does not play."""
    match kind_of(engine).player:
        case "own-program":
            raise ConfigError(
                "this run is played by a program of its own (bara.open_session); start that again, "
                "and it goes on where it stopped"
            )
        case "flower-app":
            raise ConfigError(
                "this run belongs to a Flower app; start or resume it with `flwr run`"
            )
        case "nobody":
            raise ConfigError(
                f"the engine {engine!r} is gone since bara 0.3: use the simulator; a run that has "
                "it goes on with bara 0.2, and `bara ledger` and `bara dashboard` still show it"
            )


# --- what books are opened and resumed with ------------------------------------------------------


def terms_of(config: Config, *, needs_key: bool = True) -> Terms:
    """Return how a configuration wants its books kept.

    Args:
        config: The configuration of the run.
        needs_key: Refuse a key or a notification that the environment does not hold; whoever only
            reads needs neither.
    """
    ledger = config.ledger
    key = None
    if ledger.key is not None:
        key = os.environ.get(ledger.key, "").encode() or None
        if key is None and needs_key:
            raise ConfigError(
                f"ledger.key names the environment variable {ledger.key!r}, which is not set"
            )
    approve_above = None
    if ledger.approve_above is not None:
        approve_above = money(ledger.approve_above)
    receipt = None
    if ledger.receipt is not None:
        receipt = Path(ledger.receipt)
    notify = None
    if ledger.notify is not None and needs_key:
        notify = _hook(ledger.notify)
    return Terms(
        ledger.retention,
        approve_above,
        approvals=ledger.approvals,
        register=ledger.known(),
        receipt=receipt,
        receipt_above=money(ledger.receipt_above),
        key=key,
        notify=notify,
    )


def _hook(notify: str) -> str:
    """Find the command or URL to notify; a URL that is a secret stands in the environment."""
    hook = notify
    if notify.startswith("$"):
        hook = os.environ.get(notify[1:], "")
    if not hook:
        raise ConfigError(
            f"ledger.notify names the environment variable {notify[1:]!r}, which is not set"
        )
    check_hook(hook)
    return hook


_MAY_CHANGE = {
    "ledger.url",
    "ledger.receipt",
    "ledger.receipt_above",
    "ledger.key",
    "ledger.notify",
    "data.path",
    "federation.workers",
}
"""Where things are, what is asked before money leaves, how many processes train.

No result of a run depends on them.
"""


def check_books(books: Books, config: Config, whose: str) -> None:
    """Refuse books that are not whole, not at their place, or of another configuration."""
    books.check_key()
    finding = verify(books, books.stored_receipt())
    if not finding.ok:
        raise LedgerError(
            f"the ledger of {whose} is not whole: event {finding.wrong}: {finding.problem}"
        )
    _refuse_changes(config, Config.parse(books.opening["config"]))
    check_place(books)


def _refuse_changes(now: Config, opened: Config) -> None:
    """Refuse to go on with a configuration other than the one that a run was opened with."""
    if now.ledger.clients != opened.ledger.clients:
        raise ConfigError(
            "ledger.clients must be the register that the run was opened with; put it back, and "
            "change it with `bara ledger DIR register CLIENT --reason TEXT`"
        )
    changed = flat(now.model_dump(mode="json"))
    known = flat(opened.model_dump(mode="json"))
    for key in sorted(changed.keys() | known.keys()):
        if key in _MAY_CHANGE or changed.get(key) == known.get(key):
            continue
        hint = ""
        if key == "budget.total":
            hint = " (`bara ledger DIR topup AMOUNT --reason TEXT` adds to a budget)"
        raise ConfigError(
            f"{key} must be the {known.get(key)!r} the run was opened with, got "
            f"{changed.get(key)!r} in its configuration{hint}"
        )
