"""How often the planner reaches a target, for how much money, and how sure it said to be.

python benchmarks/measure_goals.py RUNS             # runs what is missing into the folder RUNS
    --goal easy --hindsight                         # easy targets, and what a constant n costs
    --goal worth                                    # while a point is worth 1/100 of the budget
    --forecast docs/results/goals-forecast.csv      # what `bara plan` had told
    --table docs/results/goals.csv                  # writes what is there

A setting's target is what `even` without a memory reaches with the whole budget: the mean over the
seeds of the final accuracy, from docs/results/memory.csv; an easy one its mean accuracy a third of
the way, which is measured here.
"""

import argparse
import csv
import json
from pathlib import Path
from statistics import fmean

from bara.allocators.planner import Planner
from bara.records import Goal, RoundRecord
from bara.reports.result import read_result
from bara.runs.play import play_run
from bara.studies.forecast import curves, forecast_cells, outlooks
from bara.studies.grid import outcomes
from bara.studies.suites import settings

MEMORY = Path(__file__).parents[1] / "docs" / "results" / "memory.csv"
COLUMNS = (
    *(
        "setting",
        "goal",
        "seed",
        "target",
        "confidence",
        "accuracy_kept",
        "sure",
        "spent",
        "budget",
        "even_spent",
    ),
    *("rounds", "max_rounds", "lucky_constant", "constant", "ended"),
)
FORECAST = (
    *(
        "setting",
        "goal",
        "seed",
        "told_reached",
        "reached",
        "told_spent_low",
        "told_spent",
        "told_spent_high",
        "spent",
    ),
    *("told_accuracy_low", "told_accuracy", "told_accuracy_high", "accuracy_kept"),
)
AROUND = 5
NEAR = 0.005
CONSTANT = (1, 2, 3, 5)
REMEMBERED = {"training.memory": "extrapolated"}


def even_runs():
    """By setting: the whole budget's runs of `even` without a memory."""
    with MEMORY.open(newline="") as file:
        rows = [
            one
            for one in csv.DictReader(file)
            if (one["allocator"], one["variant"]) == ("even", "memory=off")
        ]
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
    return config.model_copy(
        update={"federation": federation, "budget": config.budget.model_copy(update=budget)}
    )


def easy_target(config, seeds, folder, name):
    """The mean test accuracy of `even` without a memory about a third of the way, over seeds."""
    kept = folder / f"third-{name}.json"
    if not kept.exists():
        third, reached = config.budget.max_rounds // 3, []
        plain = config.model_copy(
            update={"training": config.training.model_copy(update={"memory": "off"})}
        )
        for seed in range(seeds):
            whole = changed(plain).with_allocator("even", seed)
            share = whole.budget.total / whole.budget.max_rounds
            rounds = third + AROUND
            short = changed(whole, total=share * rounds, max_rounds=rounds)
            history = play_run(short).history
            reached.append(fmean(entry["accuracy"] for entry in history[third - AROUND :]))
        kept.write_text(json.dumps(fmean(reached)))
    return json.loads(kept.read_text())


def goal_of(name, setting, seeds, folder):
    """The keys of `budget` that say what the money is for."""
    if name == "worth":
        return {"worth": setting.config.budget.total / 100}
    if name == "easy":
        return {"target": round(easy_target(setting.config, seeds, folder, setting.name), 4)}
    return {
        "target": round(
            fmean(float(one["accuracy_final"]) for one in even_runs()[setting.name].values()), 4
        )
    }


def measure(folder, suite, seeds, only, name):
    """Run what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for setting in settings(suite, REMEMBERED, only=only):
        goal = goal_of(name, setting, seeds, folder)
        for seed in range(seeds):
            path = folder / f"{name}+{setting.name}+{seed}.json"
            if not path.exists():
                result = play_run(changed(setting.config, **goal).with_allocator("planner", seed))
                path.write_text(json.dumps(result.to_json() | {"setting": setting.name}))
                print(path.stem, goal, result.accuracy_kept, result.spent, flush=True)


class ReachedError(Exception):
    """A schedule in hindsight is done."""


def hindsight(folder, suite, seeds, only):
    """For easy targets: what each constant n spends until it is there."""
    for setting in settings(suite, REMEMBERED, only=only):
        target = json.loads((folder / f"third-{setting.name}.json").read_text())
        for seed in range(seeds):
            path = folder / f"constant+{setting.name}+{seed}.json"
            if not path.exists():
                path.write_text(
                    json.dumps(
                        [spent_until(setting.config, round(target, 4), n, seed) for n in CONSTANT]
                    )
                )
                print(path.stem, path.read_text(), flush=True)


def spent_until(config, target, n, seed):
    """What n clients per round cost until a round's model has the target on the test set.

    That may be luck. So also: until a planner that watches, and decides nothing, is as sure of the
    kept model as is asked of it: the same evidence for the same target. None where it never is.
    """
    spent, lucky = 0.0, None
    watcher = Planner(
        config.clients.count, goal=Goal(target=target, confidence=config.budget.confidence)
    )

    def watch(step):
        nonlocal spent, lucky
        if isinstance(step, RoundRecord):
            spent += step.paid / 1e6
            if lucky is None and step.evaluation.reported_accuracy >= target:
                lucky = spent
            watcher.tell(step)
            if watcher.belief().stage.startswith("stop"):
                raise ReachedError

    try:
        play_run(changed(config).with_allocator(f"fixed:n={n}:shortfall=shrink", seed), watch)
    except ReachedError:
        return lucky, spent
    return lucky, None


def forecast(folder, suite, seeds, only, path, draws):
    """Write for each run what `bara plan` tells of it from the next seed's, and its result."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FORECAST)
        for setting in settings(suite, REMEMBERED, only=only):
            for name in ("even", "worth"):
                runs = [
                    read_result(one) for one in sorted(folder.glob(f"{name}+{setting.name}+*.json"))
                ]
                goal = goal_of(name, setting, seeds, folder) if runs else {}
                for number, came in enumerate(runs[:seeds]):
                    config = changed(setting.config, **goal).model_copy(
                        update={"seed": 1000 + came.seed}
                    )
                    drawn = curves(config, [runs[(number + 1) % len(runs)]], draws)
                    told = next(
                        outlooks(
                            list(
                                outcomes(
                                    forecast_cells(config, ["planner"], [came.budget], drawn),
                                    jobs=1,
                                )
                            )
                        )
                    )
                    chance = "" if told.reached is None else round(told.reached, 2)
                    reached = (
                        "" if name == "worth" else int(came.accuracy_kept >= goal["target"] - NEAR)
                    )
                    spent, accuracy = (
                        [round(value, 4) for value in one] for one in (told.spent, told.accuracy)
                    )
                    row = [
                        setting.name,
                        name,
                        came.seed,
                        chance,
                        reached,
                        *spent,
                        came.spent,
                        *accuracy,
                    ]
                    writer.writerow([*row, round(came.accuracy_kept, 4)])
                    file.flush()


def table(folder, path):
    """A line for each run."""
    even = even_runs()
    configs = {setting.name: setting.config for setting in settings("report")}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for found in sorted(folder.glob("[ew]*+*.json")):
            goal, name, seed = found.stem.split("+")
            result, config = read_result(found), configs[name]
            constant = folder / f"constant+{name}+{seed}.json"
            told = json.loads(constant.read_text()) if goal == "easy" and constant.exists() else []
            lucky, sure_of_it = (
                min((f"{spent:.6f}" for spent in some if spent is not None), key=float, default="")
                for some in (zip(*told, strict=True) if told else ((), ()))
            )
            sure = ((result.belief or {}).get("outlook") or {}).get("sure")
            writer.writerow(
                [
                    *(
                        name,
                        goal,
                        seed,
                        result.target,
                        config.budget.confidence,
                        f"{result.accuracy_kept:.4f}",
                    ),
                    *(
                        "" if sure is None else f"{sure:.3f}",
                        result.spent,
                        config.budget.total,
                        even[name][int(seed)]["spent"],
                    ),
                    *(result.rounds, config.budget.max_rounds, lucky, sure_of_it, result.ended),
                ]
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--suite", default="report")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--goal", choices=["even", "easy", "worth"], default="even")
    parser.add_argument("--hindsight", action="store_true")
    parser.add_argument("--forecast", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    which = given.runs, given.suite, given.seeds, [name for name in given.only.split(",") if name]
    if given.table:
        table(given.runs, given.table)
    elif given.forecast:
        forecast(*which, given.forecast, given.draws)
    else:
        measure(*which, given.goal)
        if given.hindsight:
            hindsight(*which)
