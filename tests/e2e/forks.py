"""`bara` as a process of its own, forked from one that has imported it:
thousands of them start in no time.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

SLOW = (
    "alembic.command",
    "alembic.runtime.migration",
    "bara.cli",
    "bara.runs.factory",
    "bara.runs.play",
    "bara.ledger.operators",
    "bara.ledger.statements",
    "bara.loggers",
    "bara.reports.html",
    "bara.runs.progress",
    "bara.reports.terminal",
    "rich.console",
    "sqlalchemy.dialects.sqlite",
)
NEEDED = {
    "simulator": ("bara.runs.simulation", "sklearn.datasets"),
    "dashboard": ("bara.dashboard.server", "starlette.testclient"),
    "postgres": ("psycopg", "sqlalchemy.dialects.postgresql.psycopg"),
}
LONGEST = 120  # seconds; nothing here takes three


def prepare(*parts):
    """Import what children need, here and once: a kill should meet a run at its work."""
    for name in (*SLOW, *(name for part in parts for name in NEEDED.get(part, ()))):
        importlib.import_module(name)
    gc.freeze()  # or each child would copy it all at its first collection


@dataclass(frozen=True)
class Outcome:
    """How a process ended: its exit code, negative for a signal, and what it said."""

    code: int
    words: str

    def check(self):
        """One clear line for whatever is refused; never a traceback, never a crash."""
        assert self.code in {0, 1, 2, -signal.SIGKILL}, self
        assert not re.search("Traceback|a bug in bara", self.words), self.words
        assert self.code not in {1, 2} or re.search(
            r"^(bara: |the record is NOT whole)", self.words, re.MULTILINE
        ), self
        return self


def program(words):
    """`bara` with these words in this process; returns its exit code."""
    from bara.cli import main  # noqa: PLC0415 - imported long before the fork

    sys.argv = ["bara", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


class Child:
    """One running `bara`."""

    def __init__(self, *words, fault="", before=lambda: None):
        self._log = Path(tempfile.mkstemp(prefix="bara-fork-")[1])
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._be(list(map(str, words)), fault, before)

    def _be(self, words, fault, before):
        code = 70
        try:
            os.setpgid(0, 0)
            os.environ["BARA_FAULT"] = fault
            for stream in (1, 2):
                os.dup2(os.open(self._log, os.O_WRONLY | os.O_APPEND), stream)
            sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1) for stream in (1, 2))
            sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # kept open, whoever wraps them
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONGEST)  # a hang is a death by SIGALRM, which no test takes for an answer
            before()
            code = program(words)
        except BaseException:  # noqa: BLE001 - what the interpreter itself would do
            traceback.print_exc()
            code = 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def kill(self, after=0.0):
        """SIGKILL, if it is still there after so many seconds."""
        end = time.monotonic() + after
        while time.monotonic() < end:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        """How it ended."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        words = self._log.read_text(errors="replace")
        self._log.unlink()
        return Outcome(code, words).check()


def call(*words, **options):
    """A `bara` from its beginning to its end."""
    return Child(*words, **options).wait()


def remove(path):
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def play(function, *arguments, before=lambda: None, seconds=LONGEST):
    """Call it in a process of its own.

    Returns how that ended, -14 (SIGALRM) where it took too long.
    """
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(quiet, stream)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            before()
            function(*arguments)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def answers(function, **options):
    """What a function returned that was called in a process of its own.

    None where it hung or was killed.
    """
    file = Path(tempfile.mkstemp(prefix="bara-fork-")[1])
    try:
        code = play(lambda: file.write_text(json.dumps(function())), **options)
        return json.loads(file.read_text()) if code == 0 else None
    finally:
        file.unlink()
