"""Tests bara with other releases of Flower, each in an environment of its own on top of this one.

python scripts/flower_versions.py [--quick] [VERSION ...]

An environment holds that release, and what it requires in another version than is installed here;
all else, torch above all, comes from the environment that runs this script. What cannot be had is
named, and the release is tested without it. Without a version: every one that `bara.flower`
supports, or, with `--quick`, the oldest and the newest side by side, on the tests in one process
that touch Flower most, without ray.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement

from bara.flower import SUPPORTED

ROOT = Path(__file__).parents[1]
TESTS = [
    "tests/flower",
    "tests/e2e/test_flower_simulation.py",
    "tests/e2e/test_flower_deployment.py",
]
QUICK = [
    f"tests/flower/test_{name}.py" for name in ("apps_of_others", "strategy_contract", "turnout")
]
IN_ONE_PROCESS, IN_TWO = ["-p", "no:xdist"], ["-n", "2", "--dist", "loadgroup"]


def trial(release, options, stdout=None):
    """Run these tests with that release; returns the process that has ended."""
    with tempfile.TemporaryDirectory(prefix=f"flwr-{release}-") as home:
        python = environment(release, Path(home))
        words = [python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *options]
        return subprocess.run(  # noqa: S603 - our own tests
            words, cwd=ROOT, env=surroundings(), stdout=stdout, text=True, check=False
        )


def surroundings():
    """This checkout's sources first, whichever checkout the environment was installed from."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def environment(release, home):
    """Make the environment; returns its Python."""
    venv.create(home, symlinks=True)
    python, own = (
        home / "bin" / "python",
        Path(sysconfig.get_path("purelib", vars={"base": str(home)})),
    )
    (own / "here.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    if failed := install(python, f"flwr=={release}"):
        raise SystemExit(failed)
    for requirement in misfits(own):
        if install(python, str(requirement)):
            say(
                f"flwr {release}: {requirement} cannot be had; tested with "
                f"{version(requirement.name)}"
            )
    return python


def install(python, requirement):
    """Install that alone; returns what went wrong."""
    words = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--python",
        python,
        requirement,
    ]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603 - ours
    return ended.stderr if ended.returncode else ""


def misfits(own):
    """What that folder's release requires and this environment lacks, or has in other versions."""
    (metadata,) = own.glob("flwr-*.dist-info")
    for one in map(Requirement, distribution("flwr").at(metadata).requires):
        if one.marker is None or one.marker.evaluate({"extra": "simulation"}):
            try:
                if version(one.name) not in one.specifier:
                    yield one
            except PackageNotFoundError:
                yield one


def say(text):
    """Print it before what the tests print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main():
    """Test them; the exit code says whether all passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("versions", nargs="*")
    chosen = parser.parse_args()
    releases = chosen.versions or ((SUPPORTED[0], SUPPORTED[-1]) if chosen.quick else SUPPORTED)
    failed = []
    if chosen.quick:
        with ThreadPoolExecutor(2) as side_by_side:
            ended = list(
                side_by_side.map(
                    lambda one: trial(one, IN_ONE_PROCESS + QUICK, subprocess.PIPE), releases
                )
            )
        for release, done in zip(releases, ended, strict=True):
            say(f"== flwr {release}\n{done.stdout}")
            failed += [release] * bool(done.returncode)
    else:
        for release in releases:
            say(f"== flwr {release}")
            failed += [release] * bool(trial(release, IN_TWO + TESTS).returncode)
    if failed:
        sys.exit(f"failed with flwr {', '.join(failed)}")


if __name__ == "__main__":
    main()
