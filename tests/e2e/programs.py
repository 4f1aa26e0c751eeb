"""The real program as a process of its own, for the end-to-end tests."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import click
import typer

from bara.cli import app


def verbs(command=None, *path):
    """Every verb of the app with the words that call it, those of groups too:
    ("ledger", "verify"), its command.
    """
    command = command or typer.main.get_command(app)
    if path:
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from verbs(command.get_command(context, name), *path, name)


def arguments(*words, changes=()):
    """The command line of `bara` with these words and `--set` changes."""
    return [
        sys.executable,
        "-m",
        "bara.cli",
        *map(str, words),
        *(w for c in changes for w in ("--set", c)),
    ]


def bara(*words, changes=(), code=0, environment=None, **options):
    """What `bara` printed; it has to end with this exit code."""
    done = subprocess.run(
        arguments(*words, changes=changes),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **(environment or {})},
        **options,
    )
    assert done.returncode == code, done.stderr
    return done


@contextmanager
def started(*words, changes=(), **options):
    """`bara` in the background; it does not outlive the test."""
    command = arguments(*words, changes=changes)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts these tests in the background has them ignore Ctrl-C; their children
        # must not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
        **options,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # its children may outlive it
                os.killpg(process.pid, signal.SIGKILL)


def until(happened, process, seconds=300):
    """Wait for something that a process is to bring about; it must not end before."""
    end = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.02)


def result(folder):
    """What a run left."""
    return json.loads((folder / "result.json").read_text())
