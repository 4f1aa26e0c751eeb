"""Draws README's picture, docs/assets/frontier.svg, from the runs in docs/results/memory.csv.

python scripts/readme_picture.py
"""

import runpy
from pathlib import Path
from statistics import fmean

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "frontier.svg"
MEMORY = runpy.run_path(str(Path(__file__).with_name("memory_table.py")))
INK = "#7b828c"  # legible on white and on black alike
LOOKS = {  # colours that everybody can tell apart, and lines that differ without them
    MEMORY["OURS"]: (
        "planner with a memory",
        {"color": "#d55e00", "linewidth": 2.4, "marker": "o"},
    ),
    MEMORY["PLAIN"]: (
        "even, no memory",
        {"color": "#2b8cc4", "linewidth": 1.8, "linestyle": (0, (5, 2)), "marker": "s"},
    ),
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bara",
    "font.family": "sans-serif",
    "font.size": 11,
}
STYLE |= {"axes.titlelocation": "left", "axes.titlecolor": INK, "axes.titlesize": 11}
STYLE |= dict.fromkeys(
    ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], INK
)


def draw():
    """Mean accuracy over the report suite against money."""
    played = MEMORY["runs"]("memory")
    figure, axes = plt.subplots(figsize=(7.2, 3.6))
    for name, (words, look) in LOOKS.items():
        points = []
        for share in sorted({one.share for one in played if one.name == name}):
            settings = MEMORY["accuracies"](played, name, share)
            points.append(
                (100 * share, 100 * fmean(fmean(one.values()) for one in settings.values()))
            )
        axes.plot(*zip(*points, strict=True), **look)
        axes.text(
            102,
            points[-1][1],
            f"{words}\n{points[-1][1]:.1f}",
            color=look["color"],
            fontweight="bold",
            va="center",
        )
        if name == MEMORY["PLAIN"]:
            axes.axhline(points[-1][1], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(
        xlim=(0, 100),
        xlabel="money, % of each setting's budget",
        title="accuracy of the model one takes home, %",
    )
    axes.set_xticks([12.5, 25, 50, 100], ["12.5", "25", "50", "100"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=INK, alpha=0.25, linewidth=0.6)
    figure.savefig(
        PICTURE, transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
    )


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        draw()
