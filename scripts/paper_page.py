"""Writes the numbers of the pages on the paper from docs/results/paper, which `bara paper` made.

python scripts/paper_page.py             # the numbers between <!-- NAME --> and <!-- end -->
python scripts/paper_page.py --figures   # the figures, too

NAME is that of the data: an exhibit (`border`), or an exhibit under other conditions
(`border-shares`), as `scale.json` describes it. `NAME-runs.csv` has every run behind it.
"""

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from tempfile import TemporaryDirectory

import pyarrow.csv

from bara.paper.analysis import (
    BASELINE,
    LESS,
    SETTLED,
    after_correction,
    described,
    grouped,
    mean_curve,
    standing,
)
from bara.paper.exhibits import BARA, BORDER, DATASETS, EXHIBITS, HORIZON, TITLES, Scale
from bara.paper.pages import draw_exhibit, tabled
from bara.reports.publication import Origin

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results" / "paper"
PAGE = ROOT / "docs" / "results.md"
PAGES = (PAGE, ROOT / "docs" / "readings.md")
DRAWN = DATA / "drawn.json"
END = "<!-- end -->"


def exhibits():
    """Every exhibit whose data is there, at the size at which it was run."""
    for name, scale in json.loads((DATA / "scale.json").read_text()).items():
        exhibit = EXHIBITS[name.partition("-")[0]]
        rows, size = table(name), scale.pop("size")
        shown = described(exhibit, rows, _places(rows), Scale(**scale))
        yield name, replace(shown, size=size)


def table(name):
    """The rows of a file of data."""
    return pyarrow.csv.read_csv(DATA / f"{name}.csv").to_pylist()


def _places(rows):
    found = {row["dataset"] for row in rows}
    return [name for name in (*DATASETS, *BORDER) if name in found]


def numbers(shown):
    """What stands between an exhibit's marks: its table, and what was changed for its runs."""
    if tabled(shown):
        found = _table(shown)
    else:
        found = _regimes(shown) if shown.exhibit.name == "regimes" else _curves(shown)
    changes = ", ".join(f"`{change}`" for change in shown.scale.changes)
    return f"{found}\n\nWith {changes}.\n" if changes else f"{found}\n"


def _table(shown):
    """EA's accuracy, and how far the others are from it.

    That is the mean of paired differences and half of its interval.
    """
    methods = list(dict.fromkeys(row["method"] for row in shown.rows if row["method"] != BASELINE))
    reported = ["in the paper, with BARA"] if shown.exhibit.reported else []
    head = ["", BASELINE, *reported, *methods, "samples", "seeds"]
    lines = []
    for (dataset,), rows in grouped(shown.rows, "dataset"):
        by_method = {row["method"]: row for row in rows}
        base = by_method[BASELINE]
        line = [TITLES[dataset], _points(base, "final")]
        if shown.exhibit.reported:
            told = [row["paper"] for row in (base, by_method["BARA (ours)"])]
            line.append("" if None in told else f"{told[0]:.1f}, {told[1]:.1f}")
        line += [_less(by_method.get(method)) for method in methods]
        lines.append([*line, _samples(shown, dataset), str(base["seeds"])])
    return _markdown(head, lines)


def _samples(shown, dataset):
    """How many samples train, and how many evaluate."""
    data = shown.scale.config(shown.exhibit.family, dataset).data
    sizes = (data.train_samples, data.evaluation_samples)
    if not any(sizes):
        return "all"
    return " / ".join(f"{size:,}" if size else "all" for size in sizes)


def _regimes(shown):
    """In how many regimes each method is ahead of EA, and behind; after correction for all, too."""
    lines = []
    for (method,), rows in grouped(shown.rows, "method"):
        if method == BASELINE:
            continue
        standings = list(map(standing, rows))
        leads = [100 * row[LESS] for row in rows]
        kept = after_correction(rows) or ("", "")
        line = [method, standings.count(1), standings.count(-1)]
        points = f"{min(leads):+.1f} to {max(leads):+.1f}"
        lines.append([*line, points, *kept, rows[0]["seeds"]])
    told = f"of {len({row['dataset'] for row in shown.rows})} regimes: ahead of EA"
    head = ["", told, "behind", "points", "corrected: ahead", "corrected: behind", "seeds"]
    return _markdown(head, lines)


def _curves(shown):
    """The mean accuracy of each method at three moments, on the exhibit's one dataset."""
    methods = {}
    for (method,), rows in grouped(shown.rows, "method"):
        methods[method] = [100 * accuracy for accuracy in mean_curve(rows)]
    lines = []
    for title, moment in (("round 50", 50), ("round 150", 150), ("the end", -1)):
        values = [found[min(moment, len(found) - 1)] for found in methods.values()]
        lines.append([title, *(f"{value:.1f}" for value in values)])
    where = f"{TITLES[shown.rows[0]['dataset']]}, {shown.scale.seeds} seeds, after"
    return _markdown([where, *methods], lines)


def _markdown(head, lines):
    rows = (head, ["---"] * len(head), *lines)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _less(row):
    """How far a method is from EA: bold if significant after correction for all in its line."""
    if row is None:
        return ""
    points = _points(row, LESS, "+")
    return f"**{points}**" if row["p"] is not None and row["p"] < 0.05 else points


def _points(row, key, sign=""):
    margin = row[f"{key}_margin"]
    return f"{100 * row[key]:{sign}.1f}" + ("" if margin is None else f" ± {100 * margin:.1f}")


ANSWERS = {
    ("fig1", "mnist"): "MNIST",
    ("fig1", "fashion-mnist"): "Fashion-MNIST",
    ("table1", "mnist"): "MNIST under FAIR",
    ("table1", "fashion-mnist"): "Fashion-MNIST under FAIR",
    ("table1", "cifar10"): "CIFAR-10 under FAIR",
    ("table2", "mnist"): "MNIST under FL-Market",
    ("table2", "fashion-mnist"): "Fashion-MNIST under FL-Market",
    ("table2-dm-regretnet", "mnist"): "MNIST under FL-Market, its own auction",
    ("fig1-digits", "digits"): "digits",
    ("fig1-digits-shares", "digits"): "digits, T_max binds EA's share only",
    ("fig1-digits-stable", "digits"): "digits, stable prices",
    ("fig1-digits-stable-fast", "digits"): "digits, stable prices, three times the rate",
    ("border", "early"): TITLES["early"],
    ("border-stable", "early"): f"{TITLES['early']}, stable prices",
}
"""The lines of the first table: the file of data and the dataset of each, and its title."""

AVERAGED = {
    ("fig1-mnist-averaged", "mnist"): "MNIST",
    ("fig1-digits-averaged", "digits"): "digits",
    ("fig1-digits-shares-averaged", "digits"): "digits, T_max binds EA's share only",
    ("fig1-digits-stable-averaged", "digits"): "digits, stable prices",
    ("fig1-digits-stable-fast-averaged", "digits"): "digits, stable prices, three times the rate",
}
"""The lines of the table of runs that average updates."""


def answers():
    """Every setting that trained, with the three readings minus EA."""
    return _settings(ANSWERS, BARA)


def averaged():
    """Figure 1 where updates are averaged, with all the paper's methods minus EA."""
    return _settings(AVERAGED, [*BARA, "MIA", "MDA", "RA"])


def _settings(lines, methods):
    made = []
    for (name, dataset), title in lines.items():
        rows = {row["method"]: row for row in table(name) if row["dataset"] == dataset}
        base = rows[BASELINE]
        found = [_less(rows.get(method)) for method in methods]
        made.append([title, _points(base, "final"), *found, str(base["seeds"])])
    return _markdown(["", BASELINE, *methods, "seeds"], made) + "\n"


SWEEPS = {
    "digits": "redrawn",
    "digits-shares": "redrawn, no deadline",
    "digits-stable": "stable",
    "digits-stable-fast": "stable, three times the rate",
}
"""The lines of the sweep over n: the file of runs of each, and its prices."""


def sweep():
    """The mean final accuracy of every constant n, of EA and of BARA, for each economy.

    Over the seeds for which every n was tried.
    """
    runs = {}
    for name in SWEEPS:
        runs[name] = table(f"{name}-runs")
    found = {run["allocator"] for one in runs.values() for run in one}
    numbers = sorted(int(one.partition("=")[2]) for one in found if one.startswith("fixed:n="))
    columns = {f"n = {n}": f"fixed:n={n}" for n in numbers} | {BASELINE: "even", **BARA}
    lines = []
    for name, prices in SWEEPS.items():
        seeds = {run["seed"] for run in runs[name] if run["allocator"] == columns["n = 1"]}
        finals = {}
        for run in runs[name]:
            if run["seed"] in seeds:
                allocator = run["allocator"].removesuffix(f":horizon={HORIZON}")
                finals.setdefault(allocator, []).append(100 * run["accuracy_final"])
        means = [f"{fmean(finals[allocator]):.1f}" for allocator in columns.values()]
        lines.append([prices, *means, str(len(seeds))])
    return _markdown(["prices", *columns, "seeds"], lines) + "\n"


def best_numbers():
    """The best of all 19 constant n, by the mean over the seeds, and those within a point of it."""
    lines = []
    for (prices, budget), rows in grouped(table("sweep-runs"), "prices", "budget"):
        means = {}
        for (n,), runs in grouped(rows, "n"):
            means[n] = fmean(100 * run["accuracy_final"] for run in runs)
        best = max(means, key=means.get)
        near = ", ".join(str(n) for n, mean in means.items() if mean >= means[best] - 1)
        lines.append([prices, budget, best, f"{means[best]:.1f}", near, len(runs)])
    return _markdown(["prices", "budget", "n*", "%", "within a point", "seeds"], lines) + "\n"


CONDITIONS = {
    "": "",
    "-digits": "",
    "-digits-shares": ", no deadline",
    "-digits-stable": ", stable prices",
    "-digits-stable-fast": ", stable prices, three times the rate",
    "-digits-unlimited": ", n* of 19, no budget",
}
"""What the name of a file of Figure 2 or 3 ends with, and the conditions that it stands for."""


def settling():
    """The mean n over the last rounds, seed by seed, and how far n deviates from it."""
    lines = []
    for title, method, rows in _by_reading("fig2"):
        last = []
        for _, own in grouped(rows, "seed"):
            last.append([row["n"] for row in own][-SETTLED:])
        means = ", ".join(f"{fmean(numbers):.1f}" for numbers in last)
        lines.append([title, method, means, f"{fmean(map(pstdev, last)):.1f}"])
    head = ["", "reading", f"mean n of the last {SETTLED} rounds, seed by seed", "deviation"]
    return _markdown(head, lines) + "\n"


def regrets():
    """The regret in the last round that all seeds play."""
    lines = []
    for title, method, rows in _by_reading("fig3"):
        row = [row for row in rows if row["seeds"] == rows[0]["seeds"]][-1]
        best = f"{row['best_n']} ({100 * row['best_accuracy']:.1f} %)"
        told = [f"{row['predicted']:+.2g}", f"{row['real']:+.2f}"]
        lines.append([title, method, best, row["round"], *told, row["seeds"]])
    head = ["", "reading", "n* of seven", "t", "Reg_t / t, as it predicts", "really", "seeds"]
    return _markdown(head, lines) + "\n"


def _by_reading(figure):
    for ending, conditions in CONDITIONS.items():
        if (DATA / f"{figure}{ending}.csv").exists():
            for (dataset, method), rows in grouped(table(figure + ending), "dataset", "method"):
                yield TITLES[dataset] + conditions, method, rows


PILOTS = 900
"""The first seed of the pilots, by which a training is chosen; reported seeds are smaller."""


def shapes():
    """What EA, MIA and MDA come to early, later and last, in each training and its seeds."""
    runs = {}
    for run in table("shapes"):
        line = (TITLES[run["dataset"]], run["training"], run["seed"] >= PILOTS)
        runs.setdefault(line, {}).setdefault(run["allocator"], []).append(run)
    lines = []
    for (dataset, training, pilots), found in runs.items():
        cells = []
        for own in (found["even"], found["increasing"], found["decreasing"]):
            means = [100 * fmean(run[part] for run in own) for part in ("early", "middle", "late")]
            cells.append(" / ".join(f"{mean:.1f}" for mean in means))
        seeds = f"{len(own)}{' (pilots)' if pilots else ''}"
        lines.append([dataset, training, *cells, seeds])
    return _markdown(["", "updates", "EA", "MIA", "MDA", "seeds"], lines) + "\n"


def readings():
    """Every reading of Algorithm 1: how often n changes in stage 2, and how far it is from EA."""
    mnist = {row["method"]: row for row in table("ablation")}
    lines = []
    for row in table("ablation-digits"):
        if row["allocator"].startswith("bara"):
            changes = f"{100 * row['n_changes']:.0f} %"
            lines.append([row["method"], changes, _less(row), _less(mnist.get(row["method"]))])
    return _markdown(["reading", "n changes", "digits, minus EA", "MNIST, minus EA"], lines) + "\n"


def page(path=PAGE):
    """A page with its numbers made anew."""
    text = path.read_text()
    makers = {
        "answers": answers,
        "averaged": averaged,
        "sweep": sweep,
        "best-numbers": best_numbers,
        "settling": settling,
        "regrets": regrets,
        "shapes": shapes,
        "readings": readings,
    }
    for name, shown in exhibits():
        makers[name] = partial(numbers, shown)
    for name, make in makers.items():
        mark = f"<!-- {name} -->\n"
        if mark in text:
            before, rest = text.split(mark)
            text = before + mark + make() + END + rest.split(END, 1)[1]
    return text


def digest(name):
    """Of the data behind a figure, by which a test knows that the figure shows it."""
    return hashlib.sha256((DATA / f"{name}.csv").read_bytes()).hexdigest()


def draw_figures():
    """Draw what the page shows, as PNG alone, and note of which data."""
    shown = dict(exhibits())
    drawn = {}
    for name in re.findall(r"results/paper/([\w-]+)\.png", PAGE.read_text()):
        with TemporaryDirectory() as folder:
            draw_exhibit(shown[name], Path(folder) / name, Origin("bara paper"))
            shutil.copy(Path(folder) / f"{name}.png", DATA)
        drawn[name] = digest(name)
    DRAWN.write_text(json.dumps(drawn, indent=1) + "\n")


if __name__ == "__main__":
    if "--figures" in sys.argv:
        draw_figures()
    for path in PAGES:
        path.write_text(page(path))
