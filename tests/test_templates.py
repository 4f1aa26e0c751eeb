"""Folders to begin with: they are copied under the user's own name, and nothing is overwritten."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app
from bara.errors import ConfigError
from bara.templates import TEMPLATES, create


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_folder_has_everything_of_the_template_under_its_own_name(
    tmp_path, template, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["new", template, "north-star"])
    assert (done.exit_code, done.output) == (
        0,
        "north-star is ready; north-star/README.md says how to run it\n",
    )
    made = {
        str(path.relative_to("north-star"))
        for path in Path("north-star").rglob("*")
        if path.is_file()
    }
    assert "README.md" in made
    assert any("north_star" in name for name in made)
    old = [TEMPLATES[template], TEMPLATES[template].replace("-", "_")]
    texts = [path.read_text() for path in Path("north-star").rglob("*") if path.is_file()]
    assert not [word for word in old for text in [*texts, *made] if word in text]


def test_the_help_names_every_template():
    assert all(name in CliRunner().invoke(app, ["new", "--help"]).output for name in TEMPLATES)


@pytest.mark.parametrize(
    ("template", "name", "facts"),
    [
        (
            "flour-app",
            "mine",
            ("'flour-app'", "allocator", "mechanism", "flower-app"),
        ),
        (
            "flower-app",
            "there",
            ("/there'", "File exists"),
        ),
        ("flower-app", "../out", ("'../out'", "lower-case", "hyphens", "my-flower-app")),
        ("flower-app", "Mine", ("'Mine'", "lower-case")),
        ("flower-app", "", ("''", "lower-case")),
        ("flower-app", "numpy", ("'numpy'", "package")),
        ("flower-app", "class", ("'class'", "word", "Python")),
    ],
)
def test_what_cannot_be_made_is_refused_and_leaves_nothing(tmp_path, template, name, facts):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("kept")
    with refused(ConfigError, *facts):
        create(template, name, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["there", "mine.txt"]


@pytest.mark.parametrize("template", ["allocator", "mechanism"])
def test_a_new_plug_in_keeps_its_contract_and_is_compared_by_the_line_of_its_readme(
    tmp_path, template, monkeypatch
):
    folder = create(template, f"north-{template}", tmp_path)
    monkeypatch.chdir(folder)
    tested = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"test_north_{template}.py",
    ]
    done = subprocess.run(tested, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    compare = re.search(
        r"^\$ (bara compare .*)$", (folder / "README.md").read_text(), re.MULTILINE
    )[1]
    monkeypatch.syspath_prepend(folder)
    words = [
        *shlex.split(compare)[1:],
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--set",
        "budget.max_rounds=8",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert f"North{template.capitalize()}" in done.output.replace("\n", "")
