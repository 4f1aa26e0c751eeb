"""How often the planner reaches a target, for how much money, and how that compares with the confidence it promised.

python benchmarks/measure_goals.py RUNS --suite report --seeds 5            # runs what is missing into the folder RUNS
python benchmarks/measure_goals.py RUNS --easy --hindsight --only digits-shards     # and what a constant n costs
python benchmarks/measure_goals.py RUNS --forecast --only digits-shards             # and what `bara plan` had told
python benchmarks/measure_goals.py RUNS --table docs/results/goals.csv      # writes what is there

A setting's target is what `even` without a memory reaches with the whole budget: the mean over the seeds of the final
accuracy, from docs/results/memory.csv; or, with `--easy`, its mean accuracy a third of the way, which is measured here.
"""

import argparse
import csv
import json
from pathlib import Path
from statistics import fmean

from bara.experiments.forecasts import curves, forecast_cells, outlooks
from bara.experiments.grid import outcomes
from bara.experiments.results import read_result
from bara.experiments.runs import run
from bara.experiments.suites import settings
from bara.records import RoundRecord

MEMORY = Path(__file__).parents[1] / "docs" / "results" / "memory.csv"
COLUMNS = (
    *("setting", "goal", "seed", "target", "confidence", "accuracy_kept", "sure", "spent", "budget", "even_spent"),
    *("rounds", "max_rounds", "constant", "ended"),
)
AROUND = 5
NEAR = 0.005
CONSTANT = (1, 2, 3, 5)
REMEMBERED = {"training.memory": "extrapolated"}


def even_runs():
    """By setting: the whole budget's runs of `even` without a memory."""
    with MEMORY.open(newline="") as file:
        rows = [one for one in csv.DictReader(file) if (one["allocator"], one["variant"]) == ("even", "memory=off")]
    whole = {}
    for one in rows:
        whole[one["setting"]] = max(whole.get(one["setting"], 0.0), float(one["budget"]))
    found = {}
    for one in rows:
        if float(one["budget"]) == whole[one["setting"]]:
            found.setdefault(one["setting"], {})[int(one["seed"])] = one
    return found


def changed(config, **budget):
    """The configuration with another budget section, on one core."""
    federation = config.federation.model_copy(update={"workers": 1})
    return config.model_copy(update={"federation": federation, "budget": config.budget.model_copy(update=budget)})


def easy_target(config, seeds, folder, name):
    """The mean test accuracy of `even` without a memory about a third of the way, over the seeds."""
    kept = folder / f"third-{name}.json"
    if not kept.exists():
        third, reached = config.budget.max_rounds // 3, []
        plain = config.model_copy(update={"training": config.training.model_copy(update={"memory": "off"})})
        for seed in range(seeds):
            whole = changed(plain).with_allocator("even", seed)
            share = whole.budget.total / whole.budget.max_rounds
            rounds = third + AROUND
            short = changed(whole, total=share * rounds, max_rounds=rounds)
            history = run(short).history
            reached.append(fmean(entry["accuracy"] for entry in history[third - AROUND :]))
        kept.write_text(json.dumps(fmean(reached)))
    return json.loads(kept.read_text())


def measure(folder, suite, seeds, only, *, easy):
    """Run what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    even = even_runs()
    for setting in settings(suite, REMEMBERED, only=only):
        target = fmean(float(one["accuracy_final"]) for one in even[setting.name].values())
        if easy:
            target = easy_target(setting.config, seeds, folder, setting.name)
        for seed in range(seeds):
            path = folder / f"{'easy' if easy else 'even'}+{setting.name}+{seed}.json"
            if not path.exists():
                config = changed(setting.config, target=round(target, 4)).with_allocator("planner", seed)
                path.write_text(json.dumps(run(config).to_json() | {"setting": setting.name}))
                print(path.stem, config.budget.target, json.loads(path.read_text())["accuracy_kept"], flush=True)


class ReachedError(Exception):
    """A schedule in hindsight is done."""


def hindsight(folder, suite, seeds, only):
    """For easy targets: the least that any constant n spends until the test accuracy of a round is the target."""
    for setting in settings(suite, REMEMBERED, only=only):
        target = json.loads((folder / f"third-{setting.name}.json").read_text())
        for seed in range(seeds):
            path = folder / f"constant+{setting.name}+{seed}.json"
            if not path.exists():
                path.write_text(json.dumps([spent_until(setting.config, target, n, seed) for n in CONSTANT]))
                print(path.stem, path.read_text(), flush=True)


def spent_until(config, target, n, seed):
    """What n clients per round cost until a round's model has the target on the test set; None where it never has."""
    spent = []

    def watch(step):
        if isinstance(step, RoundRecord):
            spent.append(step.paid / 1e6)
            if step.evaluation.reported_accuracy >= target:
                raise ReachedError

    try:
        run(changed(config).with_allocator(f"fixed:n={n}:shortfall=shrink", seed), watch)
    except ReachedError:
        return sum(spent)
    return None


def forecast(folder, suite, only, seeds, draws):
    """What `bara plan` tells of a run towards `even`'s accuracy from that of the next seed, and what it came to."""
    even, told = even_runs(), []
    for setting in settings(suite, REMEMBERED, only=only):
        target = round(fmean(float(one["accuracy_final"]) for one in even[setting.name].values()), 4)
        runs = [read_result(path) for path in sorted(folder.glob(f"even+{setting.name}+*.json"))]
        for number, came in enumerate(runs[:seeds]):
            config = changed(setting.config, target=target).model_copy(update={"seed": 1000 + came.seed})
            drawn = curves(config, [runs[(number + 1) % len(runs)]], draws)
            cells = forecast_cells(config, ["planner"], [came.budget], drawn)
            one = next(outlooks(list(outcomes(cells, jobs=1))))
            low, mean, high = one.spent
            told.append(
                (one.reached, came.accuracy_kept >= target - NEAR, came.spent / mean, low <= came.spent <= high)
            )
            print(
                setting.name,
                came.seed,
                f"told {mean:.0f} ({low:.0f} to {high:.0f}), spent {came.spent:.0f}",
                flush=True,
            )
    chance, reached, ratio, held = map(fmean, zip(*told, strict=True))
    off = fmean(max(one[2], 1 / one[2]) for one in told)
    print(f"reached: told {chance:.2f}, was {reached:.2f}; spent: {ratio:.2f} of what was told, off by {off:.2f} times")
    print(f"the 90 % interval held the spend in {held:.2f} of {len(told)}")


def table(folder, path):
    """A line for each run."""
    even = even_runs()
    configs = {setting.name: setting.config for setting in settings("report")}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for found in sorted(folder.glob("e*+*.json")):
            goal, name, seed = found.stem.split("+")
            result, config = read_result(found), configs[name]
            target = fmean(float(one["accuracy_final"]) for one in even[name].values())
            if goal == "easy":
                target = json.loads((folder / f"third-{name}.json").read_text())
            constant = folder / f"constant+{name}+{seed}.json"
            told = json.loads(constant.read_text()) if goal == "easy" and constant.exists() else []
            least = min((spent for spent in told if spent is not None), default=None)
            sure = ((result.belief or {}).get("outlook") or {}).get("sure")
            writer.writerow(
                [
                    *(name, goal, seed, round(target, 4), config.budget.confidence, f"{result.accuracy_kept:.4f}"),
                    *(
                        "" if sure is None else f"{sure:.3f}",
                        result.spent,
                        config.budget.total,
                        even[name][int(seed)]["spent"],
                    ),
                    *(result.rounds, config.budget.max_rounds, "" if least is None else f"{least:.6f}", result.ended),
                ]
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--suite", default="report")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--easy", action="store_true")
    parser.add_argument("--hindsight", action="store_true")
    parser.add_argument("--forecast", action="store_true")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        table(given.runs, given.table)
    elif given.forecast:
        forecast(given.runs, given.suite, [name for name in given.only.split(",") if name], given.seeds, given.draws)
    else:
        names = [name for name in given.only.split(",") if name]
        measure(given.runs, given.suite, given.seeds, names, easy=given.easy)
        if given.hindsight:
            hindsight(given.runs, given.suite, given.seeds, names)
