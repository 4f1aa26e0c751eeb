"""What pyproject.toml asks for, constraints.txt pins and requirements.lock hashes agree.

And what an audit says.
"""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BESIDE_THE_LOCK = {"torch"}
"""Each machine has a build of its own; see CONTRIBUTING.md."""


def pins(name):
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


def asked_for():
    """Every requirement of every extra, those on itself apart."""
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    asked = [Requirement(text) for text in texts]
    return [
        one for one in asked if canonicalize_name(one.name) != canonicalize_name(PROJECT["name"])
    ]


@pytest.mark.parametrize("requirement", asked_for(), ids=str)
def test_what_is_asked_for_is_pinned_and_the_pin_is_allowed(requirement):
    name = canonicalize_name(requirement.name)
    assert pins("constraints.txt")[name] in requirement.specifier
    assert (name in pins("requirements.lock")) == (name not in BESIDE_THE_LOCK)


def test_the_lock_has_the_releases_that_were_tested_together():
    constraints, lock = pins("constraints.txt"), pins("requirements.lock")
    assert {name: constraints.get(name) for name in lock} == lock


def test_every_release_of_the_lock_has_a_hash_and_no_place_it_must_come_from():
    text = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    assert len(entries) == len(pins("requirements.lock"))
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text)


HOLE = {"name": "left", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
SOUND = {"name": "right", "version": "2.0", "vulns": []}
SKIPPED = {"name": "far", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ([SOUND], 0, "1 releases audited, 0 known vulnerabilities"),
        ([SOUND, HOLE], 1, "left 1.0: CVE-1, mended in 1.1"),
        ([SOUND, SKIPPED], 2, "1 were not audited, the service does not know them: far"),
        ([SKIPPED], 2, "nothing was audited"),
        (None, 2, "nothing was audited"),
    ],
)
def test_an_audit_that_did_not_happen_is_not_one_that_found_nothing(found, code, said):
    verdict = runpy.run_path(str(ROOT / "scripts" / "audit.py"))["verdict"]
    ended, lines = verdict(found)
    assert ended == code
    assert any(said in line for line in lines)
