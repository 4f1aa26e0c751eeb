"""The real program serving real runs, and a real browser that looks at them."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

BIN = Path(sys.executable).parent
FEDERATIONS = Path(__file__).parent.parent.parent / "dashboard"
PATIENCE = 60_000
"""Milliseconds that a page may take on a busy machine.

How fast it is, is for the benchmarks to say.
"""
expect.set_options(timeout=PATIENCE)
SCREENSHOTS = Path(os.environ.get("BARA_TEST_SCREENSHOTS", "screenshots"))


def environment():
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(FEDERATIONS), os.environ.get("PYTHONPATH", "")]),
    }


def settings(*changes):
    return [
        "federation.engine=hostile:Hostile",
        "clients.count=8",
        "budget.total=300",
        *changes,
    ]


@pytest.fixture
def start(tmp_path):
    """Starts runs of the hostile federation below `runs`,
    each as a process that is gone when the test is.
    """
    with contextlib.ExitStack() as stack:

        def run(name, *changes):
            options = [part for setting in settings(*changes) for part in ("--set", setting)]
            process = subprocess.Popen(
                [BIN / "bara", "run", "--out", tmp_path / "runs" / name, *options],
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield run


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Plays whole runs of the hostile federation below `runs`, in this process."""
    monkeypatch.syspath_prepend(FEDERATIONS)

    def run(name, *changes):
        config = Config.load(None, settings(*changes))
        with RunFolder.new(tmp_path / "runs" / name, config) as folder:
            play_run(config, folder=folder)

    return run


@pytest.fixture
def dashboard(tmp_path):
    """Serves a folder; returns its address."""
    with contextlib.ExitStack() as stack:

        def serve(folder=None, *options):
            (tmp_path / "runs").mkdir(exist_ok=True)
            process = subprocess.Popen(
                [BIN / "bara", "dashboard", folder or tmp_path / "runs", "--port", "0", *options],
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(_end, process)
            return process.stdout.readline().strip().rstrip("/")

        yield serve


def _end(process):
    with process.stdout:
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def chromium():
    """Debian's Chromium; where there is none the test fails.

    While it is there, no test may start an event loop.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["BARA_TEST_CHROMIUM"],
            args=["--no-sandbox"],  # tests may run as root, and see only our own pages
        )
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium):
    """Opens a page; at the end there must have been no error in its console
    and no request to anywhere else.
    """
    with contextlib.ExitStack() as stack:
        problems = []

        def new(width=1440):
            context = chromium.new_context(
                viewport={"width": width, "height": 900},
                accept_downloads=True,
            )
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on(
                "console",
                lambda message: problems.append(message.text) if message.type == "error" else None,
            )
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "request",
                lambda request: (
                    None
                    if "//127.0.0.1:" in request.url or request.url.startswith("blob:")
                    else problems.append(request.url)
                ),
            )
            return page

        yield new
        assert problems == []


@pytest.fixture
def shoot():
    """Keeps a picture of the whole page, for people to look at."""

    def take(page, name):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    return take
