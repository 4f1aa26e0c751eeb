"""Writes into CONTRIBUTING.md how many branches of each room the tests take.

make coverage
"""

import json
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage import Coverage

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
START, END = "<!-- coverage: scripts/coverage_table.py -->\n", "<!-- end of coverage -->\n"


def measured():
    """What `make coverage` measured: for each file its branches, and those that were taken."""
    measurement = Coverage(data_file=str(ROOT / ".coverage"), config_file=ROOT / "pyproject.toml")
    measurement.load()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        measurement.json_report(outfile=str(file))
        files = json.loads(file.read_text())["files"]
    return {
        path: (found["summary"]["num_branches"], found["summary"]["covered_branches"])
        for path, found in files.items()
    }


def room(path):
    """The folder or module directly under src/bara that a file belongs to."""
    parts = Path(path).parts
    return parts[parts.index("bara") + 1].removesuffix(".py")


def lines(files):
    """The table: a line a room that has branches, and one for all of them.

    Args:
        files: For each file the number of its branches, and of those that were taken.
    """
    branches, taken = Counter(), Counter()
    for path, (number, covered) in files.items():
        branches[room(path)] += number
        taken[room(path)] += covered
    yield from ("| room | branches | taken | % |", "|---|--:|--:|--:|")
    for name in sorted(+branches):
        yield row(f"`{name}`", branches[name], taken[name])
    yield row("all", branches.total(), taken.total())


def row(name, branches, taken):
    """A line of the table; its share is rounded down, so that 100 means all."""
    return f"| {name} | {branches} | {taken} | {100 * taken // branches} |"


def page(files):
    """The page with its table made anew."""
    before, rest = PAGE.read_text().split(START)
    return before + START + "\n" + "\n".join(lines(files)) + "\n\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    found = measured()
    PAGE.write_text(page(found))
    sys.stdout.write("\n".join(lines(found)) + "\n")
