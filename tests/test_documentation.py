"""Every snippet in README and docs is executed, and what stands beneath it is what it prints.

The site builds.
"""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import programs
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PYTHON = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
LOADS = re.compile(r'<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)="?(https?:[^">\s]+)')
TRANSCRIPTS = runpy.run_path(str(ROOT / "scripts" / "transcripts.py"))
FILE, commands = TRANSCRIPTS["FILE"], TRANSCRIPTS["commands"]


def circle(page):
    """README is a main path; the other pages are for `make test-all`."""
    return pytest.mark.path if page.name == "README.md" else pytest.mark.full


snippets = [
    pytest.param(page, code, output, id=f"{page.name}-{number}", marks=circle(page))
    for page in PAGES
    for number, (code, output) in enumerate(PYTHON.findall(page.read_text()), 1)
]
speaking = [page for page in PAGES if commands(page.read_text())]


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Goes to a folder with the files that a page says to save."""

    def go(page):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv(
            "CLINIC_BOOKS", f"sqlite:///{tmp_path}/clinic.db"
        )  # on PostgreSQL in tests/e2e
        monkeypatch.setenv("CLINIC_KEY", "correct-horse-battery-staple")
        monkeypatch.setenv("CLINIC_RECEIPT", str(tmp_path / "receipt.json"))
        monkeypatch.setenv(
            "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        )
        for name, code in FILE.findall(page.read_text()):
            (tmp_path / name).write_text(code)

    return go


@pytest.mark.parametrize(("page", "code", "output"), snippets)
def test_a_python_snippet_runs_and_prints_what_stands_beneath(at, page, code, output):
    at(page)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})  # noqa: S102 - our own pages
    if output:
        assert printed.getvalue() == output


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=circle(page)) for page in speaking]
)
def test_the_commands_of_a_page_work_one_after_the_other_and_print_what_stands_beneath(at, page):
    at(page)
    again = TRANSCRIPTS["replay"](page.read_text())
    assert again == page.read_text(), f"run python scripts/transcripts.py {page.relative_to(ROOT)}"


def test_a_complete_mechanism_takes_less_than_thirty_lines():
    code = dict(FILE.findall((ROOT / "docs" / "write-a-mechanism.md").read_text()))[
        "posted_price.py"
    ]
    assert "class PostedPrice" in code
    assert len(code.splitlines()) < 30


def test_the_readme_has_at_least_one_of_each():
    assert any(snippet.id.startswith("README.md") for snippet in snippets)
    assert ROOT / "README.md" in speaking


@pytest.mark.parametrize("path", [path for path, _ in programs.verbs()], ids=" ".join)
def test_a_page_speaks_of_every_verb(path):
    said = re.compile(r"\bbara " + r"(?: [^\s`]+)? ".join(map(re.escape, path)) + r"\b")
    assert any(said.search(page.read_text()) for page in PAGES)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http|\\)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_links_names_to_the_pages_that_only_it_has():
    hooks = runpy.run_path(str(ROOT / "scripts" / "site_hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="python.md"))
    text = "See `bara.errors`, `bara.files` and `bara --help`.\n\n```python\n`bara.errors`\n```\n"
    linked = hooks["on_page_markdown"](text, page=page)
    assert linked == text.replace(
        "`bara.errors`,", "[`bara.errors`](reference/errors.md),"
    ).replace("`bara --help`", "[`bara --help`](reference/cli.md)")


def test_the_glossary_has_the_words_of_the_house_and_tells_bara_from_bara():
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    rules = re.sub(r"\s+", " ", (ROOT / "CONTRIBUTING.md").read_text())
    words = re.search(r"Use one word per concept\*\*: ([^.]+)\.", rules)[1].split(", ")
    assert len(words) > 10
    for word in [*words, "bara", "BARA", "allocator `bara`"]:
        assert f"**{word}**" in glossary, word


@pytest.mark.full
def test_the_site_builds_strictly_has_everything_and_loads_nothing_from_elsewhere(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        build, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {
        str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.glob("**/*.html")
    }
    for name, text in pages.items():
        assert not (found := LOADS.findall(text)), f"{name} loads {found}"
        assert not re.search(r"arithmatex|<m[ion]>\\", text), f"a formula of {name} is not set"
        assert "<p>---" not in text, f"{name} shows what stands above it for mkdocs"
    assert "<math" in pages["the-paper.html"]
    assert all(
        f"bara {' '.join(path)}" in pages["reference/cli.html"] for path, _ in programs.verbs()
    )
    assert "max_rounds" in pages["reference/configuration.html"]
    assert (
        'id="bara.datasets.partition"' in pages["reference/datasets.html"]
    )  # public, from a private module
    assert 'id="bara.flower.start"' in pages["reference/flower.html"]
    assert not any(re.search(r'id="bara(\.\w+)*\._', text) for text in pages.values())
    assert (
        "The mechanism recruits the largest n whose cost is within its cap."
        in pages["reference/records.html"]
    )
