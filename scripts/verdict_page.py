"""Writes the tables of docs/verdict.md from the runs in docs/results/verdict*.csv.

python scripts/verdict_page.py
"""

import csv
import runpy
from pathlib import Path
from statistics import fmean

from bara.reports.statistics import estimate, holm, significance, stratified
from bara.studies.suites import settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "verdict.md"
SUITE = runpy.run_path(str(Path(__file__).with_name("suite_table.py")))
row, head, shown = SUITE["row"], SUITE["head"], SUITE["shown"]
IID = {one.name for one in settings("verdict") if one.iid}
SHARES = {"0.25": "a quarter", "1": "all"}
PRICES = {"redrawn": "redrawn", "stable": "stable"}
PLAIN, DEFAULT = "plain", "default"
NAMES = {
    "plain": "`even`, price first, no memory (*plain*)",
    "default": "**the default**: `planner`, `turns`, memory",
    "even": "`even`, `turns`, memory",
    "turns": "`even`, `turns`, no memory",
    "momentum": "server momentum",
    "fed-adam": "FedAdam",
    "fed-yogi": "FedYogi",
    "fed-exp": "FedExP",
    "mifa": "MIFA",
    "fed-varp": "FedVARP (SCAFFOLD)",
    "fed-stale": "FedStale",
    "random": "random candidates",
    "oort": "Oort, per price",
    "power-of-choice": "power-of-choice, per price",
    "queue": "virtual queue",
}
CLOSE = 0.03
PILOTS = 2


def read(name):
    """The rows of a file."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def accuracies(contestant, prices, share):
    """The accuracies of kept models: by setting, by seed."""
    found = {}
    for one in read("verdict"):
        if (one["contestant"], one["prices"], one["share"]) == (contestant, prices, share):
            found.setdefault(one["setting"], {})[one["seed"]] = float(one["kept"])
    return found


def less(mine, theirs):
    """Differences paired by seed, by setting."""
    return {
        setting: [mine[setting][seed] - theirs[setting][seed] for seed in mine[setting]]
        for setting in mine
    }


def removed(mine, theirs):
    """The part of the other's error that is removed, mean over the settings that are not IID."""
    parts = []
    for setting, differences in less(mine, theirs).items():
        if setting not in IID:
            parts.append(fmean(differences) / (1 - fmean(theirs[setting].values())))
    return fmean(parts)


def mean(found):
    """The mean over settings, in per cent."""
    return f"{100 * fmean(fmean(one.values()) for one in found.values()):.1f}"


def contestants(prices="redrawn", share="0.25"):
    """Those that were run in every setting, in the order of NAMES."""
    count = len(settings("verdict"))
    return [name for name in NAMES if len(accuracies(name, prices, share)) == count]


def over_all():
    """Every contestant beside plain aggregation with the same money, for each economy."""
    for prices, words in PRICES.items():
        for share, money in SHARES.items():
            plain = accuracies(PLAIN, prices, share)
            whole = accuracies(PLAIN, prices, "1")
            names = contestants(prices, share)
            others = [name for name in names if name != PLAIN]
            tests = []
            for name in others:
                gains = less(accuracies(name, prices, share), plain)
                tests.append(significance([fmean(one) for one in gains.values()]))
            corrected = dict(zip(others, holm(tests), strict=True))
            yield f"Prices {words}, {money} of the money:\n"
            yield head(
                "tuned, kept model",
                "accuracy, %",
                "minus *plain*",
                "p",
                "of its error removed",
                "minus *plain* with all",
            )
            for name in names:
                mine = accuracies(name, prices, share)
                beside = ["", "", ""]
                if name != PLAIN:
                    gain = stratified(list(less(mine, plain).values()))
                    beside = [
                        shown(gain, signed=True),
                        probability(corrected[name]),
                        f"{100 * removed(mine, plain):+.1f} %",
                    ]
                above = ""
                if share != "1":
                    above = shown(stratified(list(less(mine, whole).values())), signed=True)
                yield row(NAMES[name], mean(mine), *beside, above)
            yield ""


def probability(value):
    """A p-value as tables show it."""
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def by_setting():
    """The default minus plain aggregation, setting by setting."""
    columns = [(prices, share) for prices in PRICES for share in SHARES]
    titles = []
    for prices, share in columns:
        titles += [f"*plain*, {prices}, {SHARES[share]}", "the default"]
    yield head("setting", *titles)
    for setting in accuracies(PLAIN, "redrawn", "1"):
        cells = []
        for prices, share in columns:
            plain = accuracies(PLAIN, prices, share)
            gain = less(accuracies(DEFAULT, prices, share), plain)[setting]
            cells += [
                f"{100 * fmean(plain[setting].values()):.1f}",
                shown(stratified([gain]), signed=True),
            ]
        yield row(setting, *cells)


def by_rate(contestant):
    """The pilots' accuracies less those with the best rate: by setting, prices and share."""
    found = {}
    for one in read("verdict-pilots"):
        if one["contestant"] == contestant:
            place = (one["setting"], one["prices"], one["share"])
            rates = found.setdefault(place, {})
            rates.setdefault(float(one["rate"]), []).append(float(one["kept"]))
    every = {rate for rates in found.values() for rate in rates}
    lost = {}
    for place, rates in found.items():
        # A run whose numbers diverged is missing here, and counts as 0.
        means = {rate: sum(rates.get(rate, [])) / PILOTS for rate in sorted(every)}
        lost[place] = {rate: value - max(means.values()) for rate, value in means.items()}
    return lost


def sensitivity():
    """How much is lost with each rate, and where none is three points off."""
    lost = {name: by_rate(name) for name in contestants()}
    lost = {
        name: places
        for name, places in lost.items()
        if len(places) == 2 * 2 * len(settings("verdict"))
    }
    rates = sorted({rate for one in lost[PLAIN].values() for rate in one})
    yield head(
        "minus the best rate",
        *(f"{rate:g}" for rate in rates),
        "at most 3 points, any rate",
        "from 0.02 to 0.5",
    )
    for name, places in lost.items():
        cells = [f"{100 * fmean(one[rate] for one in places.values()):.1f}" for rate in rates]
        close = []
        for most in (rates[-1], rates[-2]):
            count = sum(
                min(value for rate, value in one.items() if rate <= most) >= -CLOSE
                for one in places.values()
            )
            close.append(f"{count} of {len(places)}")
        yield row(NAMES[name], *cells, *close)


def iid():
    """The IID settings alone: where all clients hold alike data."""
    columns = [(prices, share) for prices in PRICES for share in SHARES]
    yield head("mean of the IID settings, %", *(f"{one}, {SHARES[two]}" for one, two in columns))
    for name in contestants():
        cells = []
        for column in columns:
            alike = {}
            if name in contestants(*column):
                found = accuracies(name, *column)
                alike = {setting: found[setting] for setting in IID}
            cells.append(mean(alike) if alike else "")
        yield row(NAMES[name], *cells)


WAYS = {  # each part of the default: a column of the runs, its value without the part and with it
    "memory, every step of size 1": ("memory", "off", "plain"),
    "the learned step": ("memory", "plain", "extrapolated"),
    "the kept model, not the last": ("model", "final", "kept"),
    "`turns`, not price first": ("mechanism", "bid-price-first", "turns"),
    "`planner`, not `even`": ("allocator", "even:carry_over=true", "planner"),
}
NOTHING = {
    "allocator": "even:carry_over=true",
    "mechanism": "bid-price-first",
    "memory": "off",
    "model": "final",
}
EVERYTHING = {
    "allocator": "planner",
    "mechanism": "turns",
    "memory": "extrapolated",
    "model": "kept",
}


def factorial(prices):
    """The accuracies of every combination of parts: by setting and rate, by the parts."""
    found = {}
    for one in read("verdict-parts"):
        if one["prices"] == prices:
            of_setting = found.setdefault((one["setting"], one["rate"], one["seed"]), {})
            for model in ("final", "kept"):
                parts = (one["allocator"], one["mechanism"], one["memory"], model)
                of_setting[parts] = float(one[model])
    return found


def worth(part, prices, others=None):
    """What a part adds: beside these others, or on average over all; over the settings."""
    column, without, with_it = WAYS[part]
    gains = {}
    for (setting, *_), accuracy in factorial(prices).items():
        for parts, value in accuracy.items():
            named = dict(zip(NOTHING, parts, strict=True))
            beside = {key: one for key, one in named.items() if key != column}
            wanted = {} if others is None else {key: others[key] for key in beside}
            if named[column] == with_it and wanted.items() <= beside.items():
                base = accuracy[tuple((named | {column: without}).values())]
                gains.setdefault(setting, []).append(value - base)
    return estimate([fmean(one) for one in gains.values()])


def parts():
    """What each part of the default is worth: on average, alone, and beside all the others."""
    titles = []
    for prices in PRICES:
        titles += [f"{prices}: on average", "alone", "beside all others"]
    yield head("points", *titles)
    for part in WAYS:
        cells = []
        for prices in PRICES:
            for others in (None, NOTHING, EVERYTHING):
                cells.append(shown(worth(part, prices, others), signed=True))
        yield row(part, *cells)


TABLES = {
    "over all": over_all,
    "by setting": by_setting,
    "iid": iid,
    "sensitivity": sensitivity,
    "parts": parts,
}


def page():
    """The page with its tables made anew."""
    text = PAGE.read_text()
    for name, lines in TABLES.items():
        start, end = f"<!-- table: {name} -->\n", "<!-- end of table -->\n"
        before, rest = text.split(start)
        text = before + start + "\n" + "\n".join(lines()).rstrip("\n") + "\n\n" + end
        text += rest.split(end, 1)[1]
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
