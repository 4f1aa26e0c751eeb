"""Every snippet in README and docs is executed, and what stands beneath it is what it prints; the site builds."""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PYTHON = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
TRANSCRIPTS = runpy.run_path(str(ROOT / "scripts" / "transcripts.py"))
FILE, commands = TRANSCRIPTS["FILE"], TRANSCRIPTS["commands"]

snippets = [
    pytest.param(page, code, output, id=f"{page.name}-{number}")
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
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
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


@pytest.mark.parametrize("page", speaking, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_one_after_the_other_and_print_what_stands_beneath(at, page):
    at(page)
    again = TRANSCRIPTS["replay"](page.read_text())
    assert again == page.read_text(), f"run python scripts/transcripts.py {page.relative_to(ROOT)}"


def test_a_complete_mechanism_takes_less_than_thirty_lines():
    code = dict(FILE.findall((ROOT / "docs" / "write-a-mechanism.md").read_text()))["posted_price.py"]
    assert "class PostedPrice" in code
    assert len(code.splitlines()) < 30


def test_the_readme_has_at_least_one_of_each():
    assert any(snippet.id.startswith("README.md") for snippet in snippets)
    assert ROOT / "README.md" in speaking


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            made = target.startswith("reference/")  # with the site, which is built strictly
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.xdist_group("site")
def test_a_page_of_the_site_loads_nothing_from_elsewhere(site):
    loads = re.compile(r'<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)="?(https?:[^">\s]+)|url\((https?:[^)]+)')
    for file in [*site.glob("**/*.html"), *site.glob("assets/*.css")]:
        assert not (found := loads.findall(file.read_text())), f"{file.name} loads {found}"


@pytest.mark.xdist_group("site")
def test_every_formula_of_the_site_is_set(site):
    assert "<math" in (site / "the-paper.html").read_text()
    for file in site.glob("*.html"):
        assert "arithmatex" not in file.read_text(), file.name


@pytest.mark.xdist_group("site")
def test_the_site_has_the_help_of_every_verb_and_every_key_of_the_configuration(site):
    verbs = (site / "reference" / "cli.html").read_text()
    assert all(f"bara {verb}" in verbs for verb in ("run", "resume", "compare", "plan", "ledger sign", "data show"))
    assert "max_rounds" in (site / "reference" / "configuration.html").read_text()


@pytest.mark.xdist_group("site")
def test_the_site_shows_the_docstrings_of_a_room(site):
    text = (site / "reference" / "records.html").read_text()
    assert "The mechanism recruits the largest n whose cost is within its cap." in text
