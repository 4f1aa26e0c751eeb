"""Every snippet in README and docs is executed, and what stands beneath it is what it prints."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bara.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PYTHON = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)

snippets = [
    pytest.param(code, output, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (code, output) in enumerate(PYTHON.findall(page.read_text()), 1)
]
commands = [
    pytest.param(line.removeprefix("$ "), id=f"{page.name}: {line}")
    for page in PAGES
    for block in CONSOLE.findall(page.read_text())
    for line in block.splitlines()
    if line.startswith("$ bara ")
]

files = [file for page in PAGES for file in FILE.findall(page.read_text())]


@pytest.mark.parametrize(("code", "output"), snippets)
def test_a_python_snippet_runs_and_prints_what_stands_beneath(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})  # noqa: S102 - our own pages
    if output:
        assert printed.getvalue() == output


@pytest.mark.parametrize("command", commands)
def test_a_command_in_the_documentation_works(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in files:
        (tmp_path / name).write_text(code)
    if " demo" in command and not command.startswith("bara run"):  # it speaks of the run above it
        example = ["--out", "demo", "--set", "federation.engine=synthetic", "--set", "budget.max_rounds=8"]
        assert CliRunner().invoke(app, ["run", *example]).exit_code == 0
    short = ["--set", "budget.max_rounds=8"]
    short += [] if "synthetic" in command else ["--set", "data.train_samples=300"]
    arguments = shlex.split(command.removeprefix("bara "))
    done = CliRunner().invoke(app, arguments + (short if arguments[0] in ("run", "compare", "plan") else []))
    assert done.exit_code == 0, done.output


def test_a_complete_mechanism_takes_less_than_thirty_lines():
    code = dict(files)["posted_price.py"]
    assert "class PostedPrice" in code
    assert len(code.splitlines()) < 30


def test_the_readme_has_at_least_one_of_each():
    assert any(snippet.id.startswith("README.md") for snippet in snippets)
    assert any(command.id.startswith("README.md") for command in commands)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
