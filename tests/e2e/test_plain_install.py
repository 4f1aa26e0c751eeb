"""The built wheel in an empty environment, without any extra."""

import json
import os
import runpy
import subprocess
from pathlib import Path

import pytest

from bara.runs.config import shipped

ROOT = Path(__file__).parent.parent.parent
RELEASE = runpy.run_path(str(ROOT / "scripts" / "release.py"))
pytestmark = [
    pytest.mark.network,
    pytest.mark.xdist_group("plain install"),  # one environment for all of them
]
HEAVY = {
    "torch",
    "flwr",
    "ray",
    "matplotlib",
    "starlette",
    "fastapi",
    "scikit-learn",
    "cryptography",
    "psycopg",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An environment with nothing but the wheel and what it requires."""
    home = tmp_path_factory.mktemp("plain")
    RELEASE["install"](home / "venv", RELEASE["build"](home / "dist"))
    return home


def call(plain, *command, code=0):
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [plain / "venv/bin" / command[0], *command[1:]],
        cwd=plain,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_it_brings_nothing_heavy(plain):
    listed = json.loads(call(plain, "python", "-m", "pip", "list", "--format=json").stdout)
    assert not HEAVY & {package["name"].lower() for package in listed}


def test_bara_run_works_on_the_synthetic_federation_and_says_so(plain):
    done = call(plain, "bara", "run", "--json")
    assert json.loads(done.stdout)["dataset"] == "synthetic"
    assert "pip install 'bara-fl[sim]'" in done.stderr


def test_the_comparison_of_the_readme_works(plain):
    """With one seed; what it prints with five is checked with the other pages."""
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert "seeds=5" in code
    table = call(plain, "python", "-c", code.replace("seeds=5", "seeds=1")).stdout
    assert [line.split(" | ")[0] for line in table.splitlines()[2:5]] == [
        "| even:carry_over=true",
        "| planner",
        "| Halves",
    ]


def test_what_needs_an_extra_says_which_one(plain):
    done = call(plain, "bara", "run", "--set", "federation.engine=simulator", code=1)
    assert "pip install 'bara-fl[sim]'" in done.stderr
    done = call(plain, "bara", "data", "verify", "digits", code=1)
    assert "pip install 'bara-fl[sim]'" in done.stderr
    assert (
        "pip install 'bara-fl[dashboard]'" in call(plain, "bara", "dashboard", ".", code=1).stderr
    )
    for name in ("tensorboard", "mlflow"):
        assert (
            f"pip install 'bara-fl[{name}]'"
            in call(plain, "bara", "run", "--log", name, code=1).stderr
        )


def test_the_wheel_carries_the_dashboards_pages(plain):
    code = (
        "import bara, pathlib; "
        "home = pathlib.Path(bara.__file__).parent; "
        "print(*(p.name for p in home.glob('dashboard/assets/*')))"
    )
    assert {"index.html", "run.html", "run.js", "style.css"} <= set(
        call(plain, "python", "-c", code).stdout.split()
    )


def test_the_wheel_carries_its_types_and_its_catalogue(plain):
    code = (
        "import bara, pathlib; "
        "home = pathlib.Path(bara.__file__).parent; "
        "print(*sorted(p.name for p in home.rglob('*.t*')))"
    )
    ours = {f"{name}.toml" for kind in ("presets", "suites") for name in shipped(kind)}
    found = set(call(plain, "python", "-c", code).stdout.split())
    assert found == ours | {"catalogue.toml", "pyproject.toml", "py.typed"}


def test_figures_say_what_they_need_before_anything_runs(plain):
    done = call(plain, "bara", "paper", "fig2", "--data", "digits", code=1)
    assert "pip install 'bara-fl[figures]'" in done.stderr
    assert "runs" not in done.stderr
