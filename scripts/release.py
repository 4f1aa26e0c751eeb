"""Builds sdist and wheel into dist/, checks their metadata, and tries the wheel with each extra.

python scripts/release.py [--python PYTHON] TWINE [EXTRA ...]

TWINE is the path of twine. Each extra gets a clean environment, of the given Python or of the one
that runs this. Some extras bring torch; it is installed first, exactly as pinned.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BRINGS = {
    "": "bara",
    "bank": "sepaxml",
    "dashboard": "bara.dashboard",
    "docs": "mkdocs",
    "figures": "matplotlib",
    "frames": "pandas",
    "postgres": "psycopg",
    "sign": "cryptography",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "sim": "torch",
    "tables": "pyarrow",
    "silos": "statsmodels",
    "flower": "bara.flower",
}
"""The extras that are tried, and a module that works only with each."""

WITH_TORCH = {"sim", "tables", "silos", "flower"}


def build(folder, *kinds):
    """The wheel, made from the working tree; with "--sdist" also the source distribution."""
    _run(sys.executable, "-m", "build", *kinds, "--wheel", "--outdir", folder, ROOT)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def install(folder, wheel, extra="", python=sys.executable):
    """The programs of a new environment with only the wheel and what it and the extra require."""
    _run(python, "-m", "venv", folder)
    pip = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        "install",
        "--no-compile",
    ]
    pip += ["-c", ROOT / "constraints.txt"]
    if extra in WITH_TORCH:
        _run(*pip, "torch==2.13.0")
    _run(*pip, f"{wheel}[{extra}]" if extra else wheel)
    return folder / "bin"


def smoke(programs, extra):
    """Import what the extra brings, play a few rounds, verify their books."""
    with tempfile.TemporaryDirectory() as folder:
        _run(programs / "python", "-c", f"import {BRINGS[extra]}", cwd=folder)
        _run(programs / "bara", "run", "--set", "budget.max_rounds=5", "--out", "run", cwd=folder)
        _run(programs / "bara", "ledger", "run", "verify", cwd=folder)


def _run(*command, cwd=None):
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }
    done = subprocess.run(  # noqa: S603 - our own wheel
        command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("twine")
    parser.add_argument("extras", nargs="*")
    asked = parser.parse_args()
    dist = ROOT / "dist"
    for old in dist.glob("bara_fl-*"):
        old.unlink()
    made = build(dist, "--sdist")
    _run(asked.twine, "check", "--strict", *dist.glob("bara_fl-*"))
    sys.stdout.write(f"{made.name} and its sdist are in dist/, their metadata are sound\n")
    for extra in asked.extras or BRINGS:
        with tempfile.TemporaryDirectory() as home:
            smoke(install(Path(home) / "venv", made, extra, asked.python), extra)
        sys.stdout.write(f"bara-fl{f'[{extra}]' if extra else ''} works\n")
