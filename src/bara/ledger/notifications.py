"""Tells a command or a URL what needs a person: at least once, and without holding up a round."""

import json
import queue
import shlex
import shutil
import subprocess
import threading
from typing import Any, final
from urllib.error import URLError
from urllib.request import Request, urlopen

from bara.errors import ConfigError
from bara.ledger.attention import Attention, attentions, notified
from bara.ledger.books import Books
from bara.text import note

PATIENCE = 10.0
"""Seconds that a command or a server is given, and that a run that stops waits for them."""


def check_hook(hook: str) -> None:
    """Refuse what is neither a URL nor a program that is here."""
    if hook.startswith(("http://", "https://")):
        return
    try:
        words = shlex.split(hook)
    except ValueError as error:
        raise ConfigError(
            f"ledger.notify must be a command or a URL, got {hook!r}: {error}"
        ) from None
    if "://" in hook or not words or shutil.which(words[0]) is None:
        raise ConfigError(
            f"ledger.notify must be a command that is here, or an http(s) URL, got {hook!r}"
        )


@final
class Notifier:
    """Hands on what needs a person, each at least once over all processes that play the run.

    Each is sent by a thread of its own; that it arrived is an event of the chain, which the run's
    next step writes. What did not arrive, because the hook failed or the process died, is sent
    again at the next round or start.

    Args:
        books: Whose; their terms name the hook.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._told = notified(books)
        self._sending: dict[str, threading.Thread] = {}
        self._outcomes: queue.Queue[tuple[str, str | None]] = queue.Queue()
        self._complained = False

    def tell(self, needs: list[Attention]) -> None:
        """Send what is new, and write down what has arrived; returns at once."""
        self._collect()
        for one in needs:
            if one.key not in self._told and one.key not in self._sending:
                self._sending[one.key] = threading.Thread(
                    target=self._send, args=(one,), daemon=True
                )
                self._sending[one.key].start()

    def tell_all(self) -> None:
        """Send whatever the books say needs a person now, and wait a moment: the run stops here."""
        self.tell(attentions(self._books))
        self.finish()

    def finish(self) -> None:
        """Wait for what is on its way, but not for long."""
        for thread in list(self._sending.values()):
            thread.join(PATIENCE)
        self._collect()

    def _collect(self) -> None:
        while not self._outcomes.empty():
            key, problem = self._outcomes.get_nowait()
            del self._sending[key]
            if problem is None:
                self._told.add(key)
                self._books.note_notified(key)
            elif not self._complained:
                self._complained = True
                note(
                    f"bara: ledger.notify did not take {key!r}: {problem}; it is told again at the next round"
                )

    def _send(self, one: Attention) -> None:
        tree = {"run": self._books.name, "what": one.key, "text": one.text, "answer": one.answer}
        try:
            _deliver(self._books.terms.notify or "", json.dumps(tree))
            problem = None
        except subprocess.CalledProcessError as error:
            problem = f"it exited with {error.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"it took longer than {PATIENCE:g} seconds"
        except (OSError, ValueError) as error:
            problem = str(error) or type(error).__name__
        self._outcomes.put((one.key, problem))


def _deliver(hook: str, text: str) -> None:
    if hook.startswith(("http://", "https://")):
        request = Request(hook, text.encode(), {"content-type": "application/json"})  # noqa: S310 - http(s), as checked
        try:
            with urlopen(request, timeout=PATIENCE):  # noqa: S310
                return
        except URLError as error:
            raise OSError(
                f"the server says {error.reason if hasattr(error, 'reason') else error}"
            ) from error
    words: list[Any] = shlex.split(hook)
    subprocess.run(  # noqa: S603 - the operator's own command
        words,
        input=text,
        text=True,
        check=True,
        timeout=PATIENCE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
