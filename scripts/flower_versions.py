"""Tests bara with other releases of Flower, each in an environment of its own on top of this one.

python scripts/flower_versions.py [--quick] [VERSION ...]

An environment holds that release, and what it requires in another version than is installed here; all else comes from
the environment that runs this script. What cannot be had is named, and the release is tested without it. Without a
version: every one that `bara.flower` supports, or, with `--quick`, the oldest and the newest, on the tests in one
process that touch Flower most, without ray.
"""

import argparse
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement

from bara.flower import SUPPORTED

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".flower-venvs"
TESTS = [
    "tests/flower",
    "tests/e2e/test_flower_simulation.py",
    "tests/e2e/test_flower_deployment.py",
]
QUICK = [
    "tests/flower/test_apps_of_others.py",
    "tests/flower/test_strategy_contract.py",
    "tests/flower/test_turnout.py",
]


def environment(release):
    """Make the environment, unless it is there; returns its Python."""
    home = HOME / release
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        venv.create(home, clear=True, symlinks=True)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
        (own / "here.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        install(python, f"flwr=={release}")
        for requirement in misfits(own):
            if install(python, str(requirement)):
                say(f"flwr {release}: {requirement} cannot be had; tested with {version(requirement.name)}")
        (home / ".ready").touch()
    return python


def say(text):
    """Print it before what the tests print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def install(python, requirement):
    """Install that alone; returns the exit code."""
    words = [Path(sys.executable).with_name("uv"), "pip", "install", "-q", "--no-deps", "--python", python, requirement]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603 - ours
    if ended.returncode and requirement.startswith("flwr=="):
        raise SystemExit(ended.stderr)
    return ended.returncode


def misfits(own):
    """What the release in that folder requires and this environment has in another version, or not at all."""
    (metadata,) = own.glob("flwr-*.dist-info")
    requirements = map(Requirement, distribution("flwr").at(metadata).requires)
    for one in requirements:
        if one.marker is None or one.marker.evaluate({"extra": "simulation"}):
            try:
                if version(one.name) not in one.specifier:
                    yield one
            except PackageNotFoundError:
                yield one


def main():
    """Test them one after the other; the exit code says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("versions", nargs="*", default=None)
    chosen = parser.parse_args()
    failed = []
    for release in chosen.versions or ((SUPPORTED[0], SUPPORTED[-1]) if chosen.quick else SUPPORTED):
        python = environment(release)
        say(f"== flwr {release}")
        words = ["-q", "--no-header", "-p", "no:cacheprovider", "-n", chosen.jobs, "--dist", "loadgroup"]
        tests = QUICK if chosen.quick else TESTS
        done = subprocess.run([python, "-m", "pytest", *words, *tests], cwd=ROOT, check=False)  # noqa: S603 - ours
        if done.returncode:
            failed.append(release)
    if failed:
        sys.exit(f"failed with flwr {', '.join(failed)}")


if __name__ == "__main__":
    main()
