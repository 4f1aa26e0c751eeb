"""Draws the rooms of the code, and who imports whom, into CONTRIBUTING.md.

python scripts/rooms.py
"""

import ast
import re
import sys
import tomllib
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from textwrap import fill

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
START, END = "<!-- rooms: scripts/rooms.py -->\n", "<!-- end of rooms -->\n"

CELLAR = {
    "bara.plugins",
    "bara.options",
    "bara.randomness",
    "bara.text",
    "bara.files",
    "bara.faults",
    "bara.errors",
}
"""Rooms that everybody may import; drawn, their arrows would hide the others."""


def layers():
    """The names that the contract of layers lists, from the top; siblings in one."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = [contract for contract in contracts if contract["type"] == "layers"]
    named = ([name.strip() for name in layer.split("|")] for layer in contract["layers"])
    return [[f"bara.{name}" for name in layer] for layer in named if not layer[0].startswith("_")]


def imports(graph, names):
    """For each room, the others that it imports."""
    of = {module: name for name in names for module in (name, *graph.find_descendants(name))}
    found = {name: set() for name in names}
    for module, room in of.items():
        found[room] |= {
            of[other] for other in graph.find_modules_directly_imported_by(module) if other in of
        } - {room}
    return found


def reduced(found):
    """The imports without those that others imply: if a imports b and b imports c, a's of c."""
    reach = {}
    for room in TopologicalSorter(found).static_order():  # what is imported comes first
        reach[room] = set().union(*({other} | reach[other] for other in found[room]))
    return {
        room: direct - set().union(*(reach[other] for other in direct))
        for room, direct in found.items()
    }


def sentence(room):
    """The first sentence of a room's docstring."""
    path = ROOT / "src" / Path(*room.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join(ast.get_docstring(ast.parse(file.read_text())).split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])|$", text)[0].rstrip(".:") + "."


def lines():
    """The picture as a Mermaid flowchart, which GitHub draws, and a line a room."""
    graph = grimp.build_graph("bara", cache_dir=None)
    floors = layers()
    everyone = [room for floor in floors for room in floor]
    floors = [floor for floor in floors if not CELLAR.intersection(floor)]
    names = [room for room in everyone if room not in CELLAR]
    yield from ("```mermaid", "flowchart TD")
    for floor in floors:
        for room in floor:
            yield f"    {_short(room)}[{_short(room)}]"
    for above, below in pairwise(floors):  # not drawn; they keep the layers in their order
        yield f"    {' & '.join(map(_short, above))} ~~~ {' & '.join(map(_short, below))}"
    arrows = reduced(imports(graph, names))
    for room in names:
        for other in names:
            if other in arrows[room]:
                yield f"    {_short(room)} --> {_short(other)}"
    yield from ("```", "")
    for room in everyone:
        yield fill(
            f"- `{room.removeprefix('bara.')}`: {sentence(room)}", 120, subsequent_indent="  "
        )


def _short(room):
    """A name that Mermaid takes."""
    return room.removeprefix("bara.")


def page():
    """The page with its picture made anew."""
    before, rest = PAGE.read_text().split(START)
    return before + START + "\n" + "\n".join(lines()) + "\n\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write("\n".join(lines()) + "\n")
