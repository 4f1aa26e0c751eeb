r"""Writes the tables of docs/real-silos.md from the runs in docs/results.

python scripts/silos_page.py           # the tables, from silos.csv and silos-alone.csv
python scripts/silos_page.py alone     # first makes silos-alone.csv: each silo alone, and all data

python scripts/silos_page.py join mechanisms quality bara memory-off     # first makes silos.csv of

bara compare --suite silos --allocators even,planner \
    --set mechanism.name=bid-price-first,fair,rrafl \
    --set training.memory=extrapolated --seeds 5 --out mechanisms
bara compare --suite silos --allocators even,planner \
    --set mechanism.name=quality --set mechanism.quality=samples \
    --set training.memory=extrapolated --seeds 5 --out quality
bara compare --suite silos --allocators bara --set training.memory=extrapolated --seeds 5 --out bara
bara compare --suite silos --allocators even,planner --seeds 5 --out memory-off
"""

import csv
import json
import runpy
import sys
from pathlib import Path
from statistics import fmean

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.mechanisms import bid_price_first
from bara.protocols import Requirements
from bara.records import MICRO
from bara.reports.statistics import estimate, paired
from bara.runs.simulation import build_engine
from bara.simulator import aggregate
from bara.studies.suites import settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "real-silos.md"
SEEDS = range(5)
COLUMNS = (
    "setting",
    "allocator",
    "mechanism",
    "memory",
    "seed",
    "accuracy_kept",
    "accuracy_final",
    "spent",
    "rounds",
    "n",
)
DATASETS = {"heart": "heart-disease", "rand": "rand-hie"}


def rows(name):
    """Every line of a table of results."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def row(*cells):
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"


def head(*cells):
    """The head of a table."""
    return f"{row(*cells)}\n{'|---' * len(cells)}|"


def shown(value, *, signed=False):
    """Points, with half of the 95 % interval where there is one."""
    margin = "" if value.margin is None else f" ± {100 * value.margin:.1f}"
    return f"{100 * value.mean:{'+' if signed else ''}.1f}{margin}"


# --- one silo alone, and everything in one place --------------------------------------------------


def train_alone(config, clients, rounds):
    """The AUC on the reported half after so many rounds of these clients alone."""
    made = build_engine(config, Requirements(), workers=1)
    with made.engine as engine:
        state = engine.start()
        for number in range(1, rounds + 1):
            updates = engine.train(state, number, clients)
            state = aggregate(updates, updates.samples)
        return made.held.names, engine.evaluate(state, "test").accuracy


def write_alone():
    """Each silo alone, all of them without an auction, and all data in one place."""
    found = []
    for setting in settings("silos", only=list(DATASETS)):
        config = setting.config
        everything = settings("silos", ["clients.partition=natural(1)"], only=[setting.name])[
            0
        ].config
        for seed in SEEDS:
            seeded = config.model_copy(update={"seed": seed})
            for silo in range(config.clients.count):
                names, auc = train_alone(seeded, [silo], config.budget.max_rounds)
                found.append((setting.name, f"{names[silo]} alone", seed, auc))
            everybody = list(range(config.clients.count))
            found.append(
                (
                    setting.name,
                    "all, unpaid",
                    seed,
                    train_alone(seeded, everybody, config.budget.max_rounds)[1],
                )
            )
            pooled = everything.model_copy(update={"seed": seed})
            found.append(
                (
                    setting.name,
                    "pooled",
                    seed,
                    train_alone(pooled, [0], config.budget.max_rounds)[1],
                )
            )
    with (RESULTS / "silos-alone.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("setting", "who", "seed", "auc"), *((*one, f"{auc:.4f}") for *one, auc in found)]
        )


def alone(setting):
    """What one silo reaches alone, and what all of them reach."""
    yield head("AUC, per cent", "mean of five seeds")
    for who in dict.fromkeys(
        one["who"] for one in rows("silos-alone") if one["setting"] == setting
    ):
        values = [
            float(one["auc"])
            for one in rows("silos-alone")
            if (one["setting"], one["who"]) == (setting, who)
        ]
        yield row(who, shown(estimate(values)))


# --- the suite ------------------------------------------------------------------------------------


def by_seed(played, **wanted):
    """The kept models' AUC by seed, and what was spent, of the runs that are so."""
    found = [one for one in played if all(one[key] == value for key, value in wanted.items())]
    return {one["seed"]: float(one["accuracy_kept"]) for one in found}, [
        float(one["spent"]) for one in found
    ]


def suite(dataset):
    """Settings down, what was compared across; the best of each setting bold."""
    played = [
        one
        for one in rows("silos")
        if one["setting"].startswith(dataset) and "reserve" not in one["mechanism"]
    ]
    names = list(
        dict.fromkeys((one["allocator"], one["mechanism"], one["memory"]) for one in played)
    )
    places = list(dict.fromkeys(one["setting"] for one in played))
    yield head("AUC of the kept model, per cent (spent)", *places)
    best = {}
    for place in places:
        means = {}
        for allocator, mechanism, memory in names:
            values, _ = by_seed(
                played, setting=place, allocator=allocator, mechanism=mechanism, memory=memory
            )
            means[allocator, mechanism, memory] = fmean(values.values()) if values else -1
        best[place] = max(means.values())
    for allocator, mechanism, memory in names:
        cells = []
        for place in places:
            wanted = {
                "setting": place,
                "allocator": allocator,
                "mechanism": mechanism,
                "memory": memory,
            }
            values, spent = by_seed(played, **wanted)
            if not values:
                cells.append("")
                continue
            text = shown(estimate(list(values.values())))
            text = f"**{text}**" if fmean(values.values()) == best[place] else text
            cells.append(f"{text} ({fmean(spent):.0f})")
        without = "" if memory == "extrapolated" else ", no memory"
        yield row(f"`{allocator}` on `{mechanism}`{without}", *cells)


def differences():
    """The planner minus even, and each mechanism minus bid price first, paired by seed."""
    played = rows("silos")
    yield head("difference, points", *DATASETS.values())
    pairs = [
        (("planner", mechanism, "extrapolated"), ("even", mechanism, "extrapolated"))
        for mechanism in ("bid-price-first", "fair", "rrafl", "quality:quality=samples")
    ]
    pairs += [
        (("even", mechanism, "extrapolated"), ("even", "bid-price-first", "extrapolated"))
        for mechanism in ("fair", "rrafl", "quality:quality=samples")
    ]
    pairs += [(("even", "bid-price-first", "extrapolated"), ("even", "bid-price-first", "off"))]
    pairs += [
        (("bara", "bid-price-first", "extrapolated"), ("even", "bid-price-first", "extrapolated"))
    ]
    for one, other in pairs:
        cells = []
        for dataset in DATASETS:
            values = [_all(played, dataset, *which) for which in (one, other)]
            cells.append(shown(paired(*values), signed=True) if all(values) else "")
        yield row(f"{_told(one)} minus {_told(other)}", *cells)


def _all(played, dataset, allocator, mechanism, memory):
    return {
        f"{one['setting']} {one['seed']}": float(one["accuracy_kept"])
        for one in played
        if one["setting"].partition("-")[0] == dataset
        and (one["allocator"], one["mechanism"], one["memory"]) == (allocator, mechanism, memory)
    }


def few():
    """What auctions among few clients cost, and how often so many clients can be had.

    The mean over 2,000 rounds of bids U(0.5, 1.5).
    """
    yield head(
        "clients",
        "recruited",
        "their cost, each",
        "paid, no reserve",
        "paid, reserve 1.5",
        "paid, reserve 1",
    )
    for clients in (4, 6, 20):
        bidders = Bidders(clients, Distribution.parse("uniform(0.5, 1.5)"), 0)
        rounds = [bidders.bids(number) for number in range(1, 2001)]
        for n in (1, clients // 2, clients - 1, clients):
            cost = fmean(np.sort(bids.prices)[:n].mean() / MICRO for bids in rounds)
            yield row(
                str(clients),
                str(n),
                f"{cost:.2f}",
                *(_paid(rounds, n, reserve) for reserve in (None, 1.5, 1.0)),
            )


def _paid(rounds, n, reserve):
    menus = [bid_price_first(reserve).menu(bids) for bids in rounds]
    costs = [menu.cost(n) / n / MICRO for menu in menus if len(menu) >= n]
    often = (
        ""
        if len(costs) == len(rounds)
        else f" (in {100 * len(costs) / len(rounds):.0f} % of rounds)"
    )
    return f"{fmean(costs):.2f}{often}" if costs else "never"


def _told(which):
    allocator, mechanism, memory = which
    return f"`{allocator}` on `{mechanism}`" + (
        "" if memory == "extrapolated" else " without memory"
    )


TABLES = {
    "heart-alone": lambda: alone("heart"),
    "rand-alone": lambda: alone("rand"),
    "heart": lambda: suite("heart"),
    "rand": lambda: suite("rand"),
    "differences": differences,
    "few": few,
}


def page():
    """The page with its tables made anew."""
    return runpy.run_path(str(Path(__file__).with_name("suite_table.py")))["filled"](PAGE, TABLES)


def join(*folders):
    """One table of every results.csv, with what memory each had and how many clients a round."""
    found = []
    for folder in map(Path, folders):
        for path in sorted(folder.glob("*.json")):
            one = json.loads(path.read_text())
            if (
                "history" not in one or one["mechanism"] == "quality"
            ):  # of equal quality: bid price first once more
                continue
            played = one["history"][1:]
            one["n"] = round(fmean(entry["n"] for entry in played), 3)
            one["memory"] = "off" if folder.name == "memory-off" else "extrapolated"
            found.append([one[column] for column in COLUMNS])
    order = [setting.name for setting in settings("silos")]
    found.sort(key=lambda one: (order.index(one[0]), *one[1:5]))
    with (RESULTS / "silos.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *found])


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        write_alone()
    if sys.argv[1:2] == ["join"]:
        join(*sys.argv[2:])
    PAGE.write_text(page())
