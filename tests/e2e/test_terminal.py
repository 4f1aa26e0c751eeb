"""`bara run` on a real terminal: a live screen, and Ctrl-C that loses nothing."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

FEDERATIONS = Path(__file__).parent.parent / "dashboard"
SETTINGS = [
    "federation.engine=hostile:Hostile",
    "federation.delay=0.05",
    "clients.count=8",
    "budget.total=300",
]


@pytest.fixture
def terminal(tmp_path):
    """Starts the program on a terminal of its own, 100 columns wide.

    Returns what it showed and how it ended.

    Args of the function: the arguments, and a pattern upon which Ctrl-C is typed.
    """

    def run(*arguments, interrupt_at=None):
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        process = subprocess.Popen(
            [Path(sys.executable).parent / "bara", *arguments],
            cwd=tmp_path,
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - so that Ctrl-C reaches it
            env=_environment(),
        )
        os.close(its)
        try:
            return _follow(process, ours, interrupt_at)
        finally:
            process.kill()
            process.wait()
            os.close(ours)

    return run


def _environment():
    """Ours, but that a terminal itself says how large it is."""
    path = os.pathsep.join([str(FEDERATIONS), os.environ.get("PYTHONPATH", "")])
    size = ("COLUMNS", "LINES")
    ours = {name: value for name, value in os.environ.items() if name not in size}
    return {**ours, "TERM": "xterm-256color", "PYTHONPATH": path}


def _follow(process, ours, interrupt_at):
    shown, deadline = "", time.monotonic() + 90
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                shown += os.read(ours, 65536).decode(errors="replace")
            except OSError:  # it has closed its end
                break
        plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        if interrupt_at is not None and re.search(interrupt_at, plain):
            os.write(ours, b"\x03")
            interrupt_at = None
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown), process.wait(60)


def options(*settings):
    return [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]


def test_a_run_has_a_screen_worth_watching(terminal):
    shown, code = terminal("run", "--out", "one", *options("budget.max_rounds=30"))
    assert code == 0
    screens = shown.split("╭─ hostile:Hostile, 8 clients, planner on turns")
    assert len(screens) > 3
    for word in ("round", "of 30", "purse left", "accuracy", "clients", "time left", "Ctrl-C"):
        assert word in screens[-3], word
    assert re.search("[▁▂▃▄▅▆▇█]{5}", screens[-3])
    assert "final" in screens[-1]


def test_ctrl_c_closes_the_books_and_says_how_to_go_on(terminal, tmp_path):
    changes = options("budget.max_rounds=60", "allocator.name=even")
    shown, code = terminal("run", "--out", "one", *changes, interrupt_at=r"[1-9]\d? of 60")
    assert code == 130
    assert "finishing this round first" in shown
    assert "the books are closed; go on with: bara resume one" in shown.replace("\r\n", "")
    shown, code = terminal("resume", "one")
    assert code == 0
    terminal("run", "--out", "whole", *changes)
    results = [
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("one", "whole")
    ]
    assert results[0] == results[1]
