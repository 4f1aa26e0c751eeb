"""Draws README's picture, docs/assets/money.svg, from the runs of a comparison (about four minutes on two cores).

bara compare --allocators even,bara,planner --seeds 10 --out runs/picture
python scripts/readme_picture.py runs/picture
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "money.svg"
INK = "#7b828c"  # legible on white and on black alike
LOOKS = {  # colours that everybody can tell apart, and lines that differ without them
    "planner": {"color": "#d55e00", "linewidth": 2.4},
    "even": {"color": "#2b8cc4", "linewidth": 1.8, "linestyle": (0, (5, 2))},
    "bara": {"color": "#009e73", "linewidth": 1.8, "linestyle": (0, (1.5, 1.5))},
}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "bara", "font.family": "sans-serif", "font.size": 11}
STYLE |= {"axes.titlelocation": "left", "axes.titlecolor": INK, "axes.titlesize": 11}
STYLE |= dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], INK)


def runs(folder):
    """The rounds of each allocator's runs: a column of n, money spent and accuracy for every seed."""
    found = defaultdict(list)
    for file in sorted(Path(folder).glob("*.json")):
        run = json.loads(file.read_text())
        rounds = [(one["n"], one["cost"], 100 * one["accuracy"]) for one in run["history"]]
        n, cost, accuracy = np.array(rounds).T
        found[run["allocator"]].append((n, np.cumsum(cost), accuracy))
    return found


def over_money(axes, played, look, name):
    """Accuracy against money spent, the mean over seeds, with the final model as a point."""
    spent, final = (np.array([run[k][-1] for run in played]) for k in (1, 2))
    money = np.linspace(0, spent.min(), 120)
    axes.plot(money, np.mean([np.interp(money, run[1], run[2]) for run in played], axis=0), **look)
    axes.plot(spent.mean(), final.mean(), "o", color=look["color"])
    beside = final.mean() + {"planner": 1.2, "even": -1.2}.get(name, 0)
    axes.text(1540, beside, f"{name} {final.mean():.1f}", color=look["color"], fontweight="bold", va="center")


def over_rounds(axes, played, look):
    """Clients a round, the mean over the seeds that still play, five rounds at a time."""
    longest = max(len(run[0]) for run in played)
    n = np.full((len(played), longest), np.nan)
    for row, run in zip(n, played, strict=True):
        row[: len(run[0])] = run[0]
    mean = np.nanmean(n[:, 1:], axis=0)
    blocks = mean[: len(mean) // 5 * 5].reshape(-1, 5).mean(axis=1)
    axes.plot(3 + 5 * np.arange(len(blocks)), blocks, **look)


def draw(folder):
    """Both panels."""
    played = runs(folder)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.5), gridspec_kw={"width_ratios": [3, 2], "wspace": 0.62})
    for name, look in LOOKS.items():
        over_money(left, played[name], look, name)
        over_rounds(right, played[name], look)
    left.set(
        ylim=(50, 94), xlim=(0, 1500), xlabel="money spent of 1,500", title="accuracy, %", yticks=range(50, 91, 10)
    )
    right.set(
        ylim=(0, 20), xlim=(0, 200), xlabel="round of 200", title="clients a round, of 20", yticks=range(0, 21, 5)
    )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=INK, alpha=0.25, linewidth=0.6)
    figure.savefig(PICTURE, transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        draw(sys.argv[1])
