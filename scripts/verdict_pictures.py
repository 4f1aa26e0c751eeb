"""Draws README's picture and those of docs/verdict.md from the runs in docs/results/verdict*.csv.

python scripts/verdict_pictures.py
"""

import runpy
from pathlib import Path
from statistics import fmean

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

from bara.reports.statistics import stratified

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
VERDICT = runpy.run_path(str(Path(__file__).with_name("verdict_page.py")))
INK = "#7b828c"  # legible on white and on black alike
RIVAL = "fed-adam"
LOOKS = {  # colours that everybody can tell apart, and lines that differ without them
    "default": (
        "the default",
        {"color": "#d55e00", "linewidth": 2.4, "marker": "o"},
    ),
    "plain": (
        "even, price first, no memory",
        {"color": "#2b8cc4", "linewidth": 1.8, "linestyle": (0, (5, 2)), "marker": "s"},
    ),
    RIVAL: (
        "FedAdam on turns",
        {"color": "#009e73", "linewidth": 1.8, "linestyle": (0, (1, 1)), "marker": "^"},
    ),
}
PANELS = {"redrawn": "prices redrawn in every round", "stable": "prices that stay"}
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


def money():
    """Accuracy over money, every rate tuned: one panel for each economy."""
    figure, both = plt.subplots(1, 2, figsize=(9.6, 3.6), sharey=True, layout="constrained")
    for axes, (prices, title) in zip(both, PANELS.items(), strict=True):
        for name, (words, look) in LOOKS.items():
            points = []
            for share in VERDICT["SHARES"]:
                found = VERDICT["accuracies"](name, prices, share)
                if not found:
                    continue
                over = stratified([list(one.values()) for one in found.values()])
                points.append((100 * float(share), 100 * over.mean, 100 * over.margin))
            x, y, margin = zip(*points, strict=True)
            axes.errorbar(x, y, margin, capsize=3, label=words, **look)
            if name == "plain":
                axes.hlines(y[-1], 25, 100, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
        finish(axes, title)
        axes.set(xlabel="money, % of each setting's budget")
        axes.set_xticks([25, 100])
    both[0].set_ylabel("kept model, %")
    both[0].legend(frameon=False, labelcolor="linecolor", loc="lower right")
    return figure


def sensitivity():
    """Accuracy over the rate, not tuned: one panel for each budget."""
    figure, both = plt.subplots(1, 2, figsize=(9.6, 3.6), sharey=True, layout="constrained")
    for axes, (share, title) in zip(both, VERDICT["SHARES"].items(), strict=True):
        for name, (words, look) in LOOKS.items():
            rates = {}
            for one in VERDICT["read"]("verdict-pilots"):
                if (one["contestant"], one["share"]) == (name, share):
                    rates.setdefault(float(one["rate"]), []).append(100 * float(one["kept"]))
            if not rates:
                continue
            x = sorted(rates)
            axes.plot(x, [fmean(rates[rate]) for rate in x], label=words, **look)
        finish(axes, f"{title} of the money")
        axes.set(xscale="log", xlabel="learning rate")
        axes.set_xticks(x, [f"{rate:g}" for rate in x])
        axes.minorticks_off()
    both[0].set_ylabel("kept model, %")
    both[0].legend(frameon=False, labelcolor="linecolor")
    return figure


def parts():
    """What each part adds on average over all combinations of the others."""
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    names = list(VERDICT["WAYS"])
    colours = {"redrawn": "#2b8cc4", "stable": "#d55e00"}
    for shift, (prices, colour) in enumerate(colours.items()):
        for place, name in enumerate(names):
            found = VERDICT["worth"](name, prices)
            axes.errorbar(
                100 * found.mean,
                place + 0.24 * shift - 0.12,
                xerr=100 * found.margin,
                fmt="os"[shift],
                color=colour,
                capsize=3,
                label=PANELS[prices] if place == 0 else None,
            )
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(names)), [name.replace("`", "") for name in names])
    axes.invert_yaxis()
    finish(axes, "points added, average over all combinations")
    axes.legend(frameon=False, labelcolor="linecolor", loc="center right")
    return figure


def finish(axes, title):
    """Title, grid and no box."""
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=INK, alpha=0.25, linewidth=0.6)


PICTURES = {"frontier": money, "sensitivity": sensitivity, "parts": parts}


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        for name, draw in PICTURES.items():
            draw().savefig(
                ASSETS / f"{name}.svg",
                transparent=True,
                bbox_inches="tight",
                metadata={"Date": None, "Creator": None},
            )
