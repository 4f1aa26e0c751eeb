"""The tables in the documentation are those of the runs beside them,
the picture of the rooms that of the code.
"""

import csv
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from bara.reports.statistics import estimate, paired

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "script",
    [
        "suite_table",
        "memory_table",
        "goals_table",
        "readme_table",
        "silos_page",
        "paper_page",
        "prices_table",
        "verdict_page",
        "rooms",
    ],
)
def test_a_page_shows_what_its_runs_came_to(script):
    made = runpy.run_path(str(ROOT / "scripts" / f"{script}.py"))
    for path in made.get("PAGES", [made["PAGE"]]):
        text = made["page"](path) if "PAGES" in made else made["page"]()
        assert path.read_text() == text, f"run python scripts/{script}.py"


@pytest.fixture
def coverage_table():
    return runpy.run_path(str(ROOT / "scripts" / "coverage_table.py"))


def test_the_table_of_branches_adds_up_by_room_and_rounds_down(coverage_table):
    files = {
        "src/bara/ledger/books.py": (10, 10),
        "src/bara/ledger/migrations/one.py": (990, 989),
        "src/bara/market.py": (4, 4),
        "src/bara/errors.py": (0, 0),
    }
    assert list(coverage_table["lines"](files))[2:] == [
        "| `ledger` | 1000 | 999 | 99 |",
        "| `market` | 4 | 4 | 100 |",
        "| all | 1004 | 1003 | 99 |",
    ]


def test_the_table_of_branches_stands_on_its_page_and_names_rooms_that_there_are(coverage_table):
    page = coverage_table["PAGE"].read_text()
    table = page.split(coverage_table["START"])[1].split(coverage_table["END"])[0]
    rooms = set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE))
    assert rooms >= {"ledger", "market", "mechanisms", "runs"}
    assert rooms <= {path.stem for path in (ROOT / "src" / "bara").iterdir()}


def test_the_figures_on_the_page_of_results_are_drawn_from_the_data_beside_them():
    made = runpy.run_path(str(ROOT / "scripts" / "paper_page.py"))
    drawn = json.loads(made["DRAWN"].read_text())
    shown = set(re.findall(r"results/paper/(\w+)\.png", made["PAGE"].read_text()))
    assert shown == drawn.keys() == {path.stem for path in made["DATA"].glob("*.png")}
    assert drawn == {name: made["digest"](name) for name in drawn}, (
        "run python scripts/paper_page.py --figures"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("fig1", "figures-runs"),
        ("fig1-mnist-averaged", "mnist-averaged-runs"),
        ("fig1-digits", "digits-runs"),
        ("fig1-digits-shares", "digits-shares-runs"),
        ("fig1-digits-stable", "digits-stable-runs"),
        ("fig1-digits-stable-fast", "digits-stable-fast-runs"),
        ("fig1-digits-averaged", "digits-averaged-runs"),
        ("fig1-digits-shares-averaged", "digits-shares-averaged-runs"),
        ("fig1-digits-stable-averaged", "digits-stable-averaged-runs"),
        ("fig1-digits-stable-fast-averaged", "digits-stable-fast-averaged-runs"),
        ("table1", "table1-runs"),
        ("table2-dm-regretnet", "table2-dm-regretnet-runs"),
        ("ablation", "ablation-runs"),
        ("ablation-digits", "ablation-digits-runs"),
        ("border", "border-runs"),
        ("border-stable", "border-stable-runs"),
        ("regimes", "regimes-runs"),
        ("regimes-shares", "regimes-shares-runs"),
        ("regimes-stable", "regimes-stable-runs"),
    ],
)
def test_a_table_of_the_paper_is_what_its_runs_come_to(name, data):
    folder, runs = ROOT / "docs" / "results" / "paper", {}
    with (folder / f"{data}.csv").open(newline="") as file:
        for run in csv.DictReader(file):
            place = (run["setting"].partition("-")[2], run["allocator"])
            runs.setdefault(place, {})[int(run["seed"])] = float(run["accuracy_final"])
    kept = {dataset for dataset, _ in runs}
    with (folder / f"{name}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] in kept]
    assert rows
    baselines = {row["dataset"]: row["allocator"] for row in rows if row["method"] == "EA"}
    for row in rows:
        values = runs[row["dataset"], row["allocator"]]
        made = {"final": estimate(list(values.values()))}
        if row["method"] != "EA":
            made["less_EA"] = paired(values, runs[row["dataset"], baselines[row["dataset"]]])
        assert len(values) == int(row["seeds"])
        for column, found in made.items():
            assert float(row[column]) == pytest.approx(found.mean, abs=2e-6)
            margin = row[f"{column}_margin"]
            assert (float(margin) if margin else None) == (
                found.margin and pytest.approx(found.margin, abs=2e-6)
            )


@pytest.mark.parametrize(
    ("conditions", "data"),
    [
        ("", "figures-runs"),
        ("-digits", "digits-runs"),
        ("-digits-shares", "digits-shares-runs"),
        ("-digits-stable", "digits-stable-runs"),
    ],
)
def test_the_regrets_of_the_paper_are_those_of_the_rounds_and_runs_on_file(conditions, data):
    folder = ROOT / "docs" / "results" / "paper"
    with (folder / f"{data}.csv").open(newline="") as file:
        alone = {}
        for run in csv.DictReader(file):
            if run["allocator"].startswith("fixed:n="):
                place = (run["dataset"], int(run["allocator"].partition("=")[2]))
                alone.setdefault(place, []).append(float(run["accuracy_final"]))
    with (folder / f"fig2{conditions}.csv").open(newline="") as file:
        rounds = {}
        for row in csv.DictReader(file):
            seeds = rounds.setdefault((row["dataset"], row["method"]), {})
            seeds.setdefault(row["seed"], []).append(int(row["n"]))
    with (folder / f"fig3{conditions}.csv").open(newline="") as file:
        shown = list(csv.DictReader(file))
    assert shown
    for row in shown:
        reached = {n: np.mean(runs) for (name, n), runs in alone.items() if name == row["dataset"]}
        best = max(reached.values())
        t = int(row["round"])
        played = [n[:t] for n in rounds[row["dataset"], row["method"]].values() if len(n) >= t]
        real = [best - np.interp(n, list(reached), list(reached.values())).mean() for n in played]
        assert int(row["seeds"]) == len(real)
        assert float(row["real"]) == pytest.approx(np.mean(real), abs=2e-6)


def test_the_diagrams_are_drawn_by_their_script():
    made = runpy.run_path(str(ROOT / "scripts" / "diagrams.py"))
    for name, picture in made["pictures"]().items():
        assert (made["ASSETS"] / f"{name}.svg").read_text() == picture, (
            "run python scripts/diagrams.py"
        )


def measured():
    """Every difference from EA in the committed data, as prose writes it,
    and what its interval says.
    """
    found = {}
    for path in (ROOT / "docs" / "results" / "paper").glob("*.csv"):
        with path.open() as file:
            for row in csv.DictReader(file):
                if row.get("less_EA_margin"):
                    less, margin = 100 * float(row["less_EA"]), 100 * float(row["less_EA_margin"])
                    verdict = "level" if abs(less) <= margin else "ahead" if less > 0 else "behind"
                    found.setdefault(f"{less:+.1f} ± {margin:.1f}", set()).add(verdict)
    return found


DIFFERENCE = r"[-+]\d+\.\d ± \d+\.\d"
CLAIM = re.compile(rf"\b(ahead|behind|level(?= with| \())\b|({DIFFERENCE})")


def sentences(page, after=""):
    """What a page says in words: no code, no tables, no headings,
    no numbers that a script has written.
    """
    text = (ROOT / page).read_text().partition(after)[2] if after else (ROOT / page).read_text()
    text = re.sub(
        r"```.*?```|<!-- (?!end)[\w-]+ -->.*?<!-- end -->|^[#|!].*?$",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    for paragraph in text.split("\n\n"):
        yield from re.split(r"(?<=[.?])\s+(?=[A-Z*\[`])", re.sub(r"\s+", " ", paragraph))


def claims(sentence):
    """Each verdict of a sentence with the differences it is said of:
    those that follow it, up to the next verdict.
    """
    said = []
    for word, difference in CLAIM.findall(sentence):
        if word:
            said.append((word, []))
        elif said:
            said[-1][1].append(difference)
    return said


QUESTIONS = "## Does BARA beat even allocation?"


def test_what_is_said_to_be_ahead_behind_or_level_is_so_by_its_interval():
    """On the page of results every such word comes with its difference.

    Elsewhere it is checked where it does.
    """
    data = measured()
    pages = {
        "docs/results.md": QUESTIONS,
        "docs/why-the-letter-fails.md": "",
        "docs/readings.md": "",
        "docs/mechanisms.md": "",
    }
    checked = 0
    for page, after in pages.items():
        for sentence in sentences(page, after):
            for word, differences in claims(sentence):
                assert differences or not after, (
                    f"{page}: {word!r} without a difference: {sentence}"
                )
                for difference in differences:
                    assert data.get(difference) == {word}, (
                        f"{page}: {difference} is {data.get(difference)}: {sentence}"
                    )
                    checked += 1
            if after:
                assert set(re.findall(DIFFERENCE, sentence)) <= set(data), sentence
    assert checked > 10


def test_in_how_many_regimes_the_intended_reading_is_behind_is_what_the_map_says():
    found = re.search(
        r"<!-- regimes -->(?:.*\n)+?\| BARA \(intended\) \| (\d+) \| (\d+) \|",
        (ROOT / "docs" / "results.md").read_text(),
    )
    assert found
    said = re.sub(r"\s+", " ", (ROOT / "docs" / "readings.md").read_text())
    assert found[1] == "1"
    assert f"behind even allocation in {found[2]} of 27 regimes and ahead in one" in said


def test_the_words_test_sees_a_claim_beyond_its_interval():
    assert claims("The letter is behind (-2.0 ± 1.0, -3.0 ± 1.0), ours level (+0.1 ± 0.5).") == [
        ("behind", ["-2.0 ± 1.0", "-3.0 ± 1.0"]),
        ("level", ["+0.1 ± 0.5"]),
    ]
