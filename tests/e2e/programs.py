"""The real program as a process of its own, for the end-to-end tests."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager


def arguments(*words, changes=()):
    """The command line of `bara` with these words and `--set` changes."""
    return [sys.executable, "-m", "bara.cli", *map(str, words), *(w for c in changes for w in ("--set", c))]


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
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def result(folder):
    """What a run left."""
    return json.loads((folder / "result.json").read_text())
