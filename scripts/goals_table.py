"""Writes the table of docs/goals.md from the runs in docs/results/goals.csv.

python scripts/goals_table.py
"""

import csv
import runpy
import textwrap
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "goals.md"
SUITE = runpy.run_path(str(Path(__file__).with_name("suite_table.py")))
row, head = SUITE["row"], SUITE["head"]
NEAR = 0.005


def runs(goal):
    """The runs towards that goal, by setting."""
    found = {}
    with (ROOT / "docs" / "results" / "goals.csv").open(newline="") as file:
        for one in csv.DictReader(file):
            if one["goal"] == goal:
                found.setdefault(one["setting"], []).append(one)
    return found


def reached(one, near=NEAR):
    """Whether the kept model has the target on the test set, but for half a point."""
    return float(one["accuracy_kept"]) >= float(one["target"]) - near


def part(one, of="even_spent"):
    """What it spent, in parts of another's spend."""
    return float(one["spent"]) / float(one[of])


def percent(value):
    """As tables have it."""
    return f"{100 * value:.0f} %"


def table():
    """Setting by setting, and over all runs."""
    yield head("setting", "target, %", "kept, %", "reached", "of `even`'s spend", "rounds")
    every = []
    for name, some in runs("even").items():
        every += some
        kept = fmean(float(one["accuracy_kept"]) for one in some)
        rounds = f"{fmean(int(one['rounds']) for one in some):.0f} of {some[0]['max_rounds']}"
        count = f"{sum(map(reached, some))} of {len(some)}"
        target = f"{100 * float(some[0]['target']):.1f}"
        yield row(name, target, f"{100 * kept:.1f}", count, percent(fmean(map(part, some))), rounds)
    yield row(
        "*all*", "", "", percent(fmean(map(reached, every))), percent(fmean(map(part, every))), ""
    )


def words():
    """What holds over all runs, a paragraph each."""
    for one in (even_words(), easy_words(), forecast_words("even"), forecast_words("worth")):
        yield textwrap.fill(f"- {one}", 120, subsequent_indent="  ", break_on_hyphens=False)


def even_words():
    """How often it got as far as even allocation, and for how much."""
    every = [one for some in runs("even").values() for one in some]
    sure = percent(fmean(float(one["sure"]) for one in every if one["sure"]))
    held, strictly = (
        percent(fmean(map(reached, every))),
        percent(fmean(reached(one, 0) for one in every)),
    )
    most = max(part(one) for one in every if not reached(one))
    return (
        f"**Reached in {held} of {len(every)} runs, for {percent(fmean(map(part, every)))} of "
        f"`even`'s spend**; "
        "the promise was 90 %. Without the half point, which is less than the test set's own "
        "error, "
        f"{strictly} are reached. At the end the planner called itself {sure} sure on average. No "
        f"run that missed "
        f"spent more than {percent(most)} of what `even` did."
    )


def easy_words():
    """What an easy target costs, beside the cheapest constant n."""
    every = [one for some in runs("easy").values() for one in some]
    ratio, lucky = (fmean(part(one, of) for one in every) for of in ("constant", "lucky_constant"))
    return (
        f"**An easy target**, what `even` has a third of the way ({len(runs('easy'))} settings, "
        f"{len(every)} runs), is "
        f"reached in {percent(fmean(map(reached, every)))}. It costs {lucky:.2f} times what the "
        f"cheapest of n = 1, 2, "
        "3, 5 in every round, chosen in hindsight, costs until the *test* accuracy of some round "
        "is the target. Test "
        "accuracy cannot be observed, so we added afterwards, with that figure known, the same n "
        "until it is as sure "
        f"of its kept model as the planner must be: {ratio:.2f} times."
    )


def forecast_words(goal):
    """What `bara plan` told, beside what came."""
    with (ROOT / "docs" / "results" / "goals-forecast.csv").open(newline="") as file:
        rows = [one for one in csv.DictReader(file) if one["goal"] == goal]

    def mean(key):
        return percent(fmean(float(one[key]) for one in rows))

    def within(told, came):
        return percent(
            fmean(
                float(one[f"{told}_low"]) <= float(one[came]) <= float(one[f"{told}_high"])
                for one in rows
            )
        )

    spent = [part(one, "told_spent") for one in rows]
    off = fmean(max(one, 1 / one) for one in spent)
    name, last = {
        "even": ("these targets", "It expected {} of them to be reached; {} were."),
        "worth": (
            "a point worth a hundredth of the budget",
            "The accuracy is within its interval in {}.",
        ),
    }[goal]
    told = (
        (mean("told_reached"), mean("reached"))
        if goal == "even"
        else (within("told_accuracy", "accuracy_kept"),)
    )
    return (
        f"**`bara plan` for {name}**, from one past run of another seed ({len(rows)} runs): the "
        f"spend is "
        f"{fmean(spent):.2f} times the forecast, a factor of {off:.2f} off on average, and within "
        f"its 90 % interval in "
        f"{within('told_spent', 'spent')}. {last.format(*told)}"
    )


def page():
    """The page with its table made anew."""
    return SUITE["filled"](SUITE["filled"](PAGE, {"goals": table}), {"goals": words}, "words")


if __name__ == "__main__":
    PAGE.write_text(page())
