"""Notifications of what needs a person, sent to a command or a URL without delaying the run."""

import json
import queue
import shlex
import shutil
import subprocess
import threading
from typing import final

from bara.errors import ConfigError
from bara.ledger.attention import Attention, attentions, notified
from bara.ledger.books import Books
from bara.text import note

PATIENCE = 10.0
"""Seconds before a notification times out, and for which a run that stops waits for it."""


def check_hook(hook: str) -> None:
    """Refuse a hook that is neither an http(s) URL nor an installed program."""
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
    """A sender that delivers each attention at least once, over all processes that play the run.

    A thread of its own sends each attention. Once it has arrived, the run's next step stores that
    as an event. An attention that did not arrive, because the hook failed or the process died, is
    sent again at the next round or start.

    Args:
        books: The run's books; their terms name the hook.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._told = notified(books)
        self._sending: dict[str, threading.Thread] = {}
        self._outcomes: queue.Queue[tuple[str, str | None]] = queue.Queue()
        self._complained = False

    def tell(self, needs: list[Attention]) -> None:
        """Start sending what is new and store what has arrived, without waiting."""
        self._collect()
        for one in needs:
            if one.key not in self._told and one.key not in self._sending:
                thread = threading.Thread(target=self._send, args=(one,), daemon=True)
                self._sending[one.key] = thread
                thread.start()

    def tell_all(self) -> None:
        """Send everything that needs a person by the books, and wait for it: the run stops here."""
        self.tell(attentions(self._books))
        self.finish()

    def finish(self) -> None:
        """Wait for notifications that are being sent, each until it is given up (`PATIENCE`)."""
        for thread in list(self._sending.values()):
            thread.join(
                PATIENCE + 1
            )  # a moment more than the sender, so that its complaint is heard
        self._collect()

    def _collect(self) -> None:
        """Store what has arrived, and complain about the first failure."""
        while not self._outcomes.empty():
            key, problem = self._outcomes.get_nowait()
            del self._sending[key]
            if problem is None:
                self._told.add(key)
                self._books.note_notified(key)
            elif not self._complained:
                self._complained = True
                note(
                    f"bara: ledger.notify did not take {key!r}: {problem}; "
                    "it is told again at the next round"
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
        from urllib.error import URLError  # noqa: PLC0415 - slow to import, and rarely needed
        from urllib.request import Request, urlopen  # noqa: PLC0415 - as above

        headers = {"content-type": "application/json"}
        request = Request(hook, text.encode(), headers)  # noqa: S310 - http(s), as checked above
        try:
            with urlopen(request, timeout=PATIENCE):  # noqa: S310 - http(s), as checked above
                return
        except URLError as error:
            raise OSError(f"the server says {error.reason}") from error
    subprocess.run(  # noqa: S603 - the operator's own command
        shlex.split(hook),
        input=text,
        text=True,
        check=True,
        timeout=PATIENCE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
