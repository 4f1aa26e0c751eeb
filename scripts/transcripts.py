"""Plays the commands on a page of the documentation, and writes what they print beneath them.

python scripts/transcripts.py docs/read-the-ledger.md docs/forecast-a-budget.md

A command beneath which nothing stands keeps its silence; put a line `...` there to have its output
shown. Commands are `bara ...` and `python FILE`, both with `> FILE`; what a page exports (`export
NAME=VALUE`) is in their environment, unless it is set already: `CLINIC_BOOKS=... python
scripts/transcripts.py PAGE`; its name is shown for it.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from bara.cli import app

FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:bara|python) (?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
EXPORT = re.compile(r"^export ([A-Z]+_[A-Z]+)=(\S+)$", re.MULTILINE)


def commands(text):
    """Each command of a page with what stands beneath it."""
    return COMMAND.findall("".join(CONSOLE.findall(text)))


def replay(text):
    """The page as its commands, played in the present folder one after the other, would have it."""
    in_full = any(output for _, output in commands(text))
    for name, content in FILE.findall(text):
        Path(name).write_text(content)
    for name, value in EXPORT.findall(text):
        os.environ.setdefault(name, value)
    return CONSOLE.sub(
        lambda block: COMMAND.sub(lambda found: _played(*found.groups(), in_full), block[0]), text
    )


def _played(command, output, in_full):
    program, *arguments = shlex.split(os.path.expandvars(command.replace("\\\n", " ")))
    arguments, to = (arguments[:-2], arguments[-1]) if ">" in arguments else (arguments, None)
    if program == "python":
        words = [sys.executable, *arguments]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own pages
    else:
        done = CliRunner(env={"COLUMNS": "80"}).invoke(
            app, arguments + ([] if in_full else _short(arguments))
        )
        if done.exit_code:
            raise AssertionError(f"{command}\n{done.output}") from done.exception
        printed = done.stdout
    if to is not None:
        Path(to).write_text(printed)
    lines = [line.rstrip() + "\n" for line in printed.strip("\n").splitlines()] if output else []
    return "".join(["$ ", command, *map(_by_name, lines)])


def _by_name(line):
    """What the environment holds, by the name that the page has for it."""
    return (
        line.replace(os.environ["CLINIC_BOOKS"], "$CLINIC_BOOKS")
        if "CLINIC_BOOKS" in os.environ
        else line
    )


def _short(arguments):
    """A run of a few rounds says as well whether a command works, where a page shows no output."""
    if arguments[0] not in {"run", "compare", "plan", "paper"}:
        return []
    small = [] if "synthetic" in " ".join(arguments) else ["--set", "data.train_samples=300"]
    return ["--set", "budget.max_rounds=8", *small]


if __name__ == "__main__":
    for page in [Path(name).absolute() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            sys.path.insert(0, folder)
            page.write_text(replay(page.read_text()))
