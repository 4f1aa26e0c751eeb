"""Compares two checkouts, bit for bit: results, payments, ledgers and models, resumed ones too.

python scripts/same_results.py /path/to/the/other/checkout

Plays every mechanism with every allocator on the synthetic federation, every mechanism, algorithm,
model and memory on the simulator, some of them on Flower, a comparison and a forecast, once with
this checkout's code and once with the other's, and prints what differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1]
ALLOCATORS = (
    "bara",
    "even",
    "increasing",
    "decreasing",
    "random",
    "fixed",
    "explored",
    "finale",
    "overture",
    "pacing",
    "isp",
    "planner",
)
MECHANISMS = (
    "bid-price-first",
    "quality",
    "fair",
    "fl-market",
    "rrafl",
    "fmore",
    "proportional-share",
    "a-fl",
    "posted-price",
    "tariff",
)
OPTIONS = {
    "fixed": ["allocator.n=3"],
    "explored": ["allocator.n=3"],
    "posted-price": ["mechanism.price=0.9"],
    "tariff": ["mechanism.per_round=1"],
}
"""What some parts cannot do without."""

GOALS = ("target=0.4", "target=0.9", "worth=2")
READINGS = (
    "preset=paper",
    "reestimate=true",
    "estimator=curve",
    "horizon=left",
    "cost_average=menus",
)
SHORT = [
    "budget.total=60",
    "budget.max_rounds=25",
    "clients.count=8",
    "mechanism.name=bid-price-first",
]
SIMULATOR = [
    "federation.engine=simulator",
    "mechanism.name=bid-price-first",
    "data.train_samples=400",
    "budget.total=40",
    "budget.max_rounds=8",
]
TRAININGS = {
    "linear": ["training.model=linear"],
    "cnn": [
        "training.model=cnn",
        "training.algorithm=fedavg",
        "training.local_epochs=2",
        "training.learning_rate=0.05",
    ],
    "momentum": [
        "training.algorithm=fedavg",
        "training.momentum=0.9",
        "training.weight_decay=0.001",
    ],
    "fedprox": ["training.algorithm=fedavg", "training.proximal=0.1", "federation.workers=2"],
    "evidence": ["training.evidence=true", "training.outliers=4", "training.aggregation=equal"],
    "cheats": [
        "clients.noisy=1",
        "clients.free_riders=1",
        "clients.poisoners=1",
        "clients.failure_rate=0.2",
    ],
    "strategic": ["clients.strategic=2", "clients.strategy=learner(0.1)", "clients.drift=0.01"],
    "same": ["data.held_out=same", "clients.partition=dirichlet(0.3)", "clients.absence_rate=0.2"],
    "memory off": ["training.memory=off"],
    "memory plain": ["training.memory=plain", "training.contributions_every=1"],
    "memory extrapolated": ["training.memory=extrapolated", "clients.absence_rate=0.3"],
    "sizes": [
        "clients.partition=quantity(1.5)",
        "clients.cost_by=samples",
        "clients.bids=lognormal(0, 0.5)",
    ],
}
ADDED = {
    "never_paid": "results: who was never paid, and what they asked last",
    "never_paid_exact": "results: the same as text",
    "made_by": "results: fingerprints of what made them",
    "oldest": "results: the age of the oldest update in the model",
    "validated": "results: the accuracy of each model on validation data",
    "stability": "configurations: how stable the clients' prices are",
    "costs": "configurations: what each client costs, by name",
    "min_clients": "configurations: how many clients a target needs",
    "approvals": "configurations: how many people approve",
    "receipt_above": "configurations: the batch that needs a receipt",
    "shapley_every": "configurations: how often Shapley values are estimated",
    "clients": "configurations: the register of known clients; plans: how many clients there are",
    "correction": "lines: the correction that a line belongs to",
    "paid": "plans: how many clients would be paid",
    "few": "plans: the share of those that are paid most",
    "refused": "audits: whether a run would refuse what the mechanism did",
}
"""The keys that were added since 0.2, and what they hold: left out where the other lacks them."""

SHOWN = 100
"""How many characters of a value are shown where it differs."""

FAULTS = (
    "bids opened@4",
    "promised@5",
    "trained@5",
    "state saved@4",
    "settled@6",
    "result written@1",
)


def cases():
    """Every run by its name: what to change, and where to kill it, if anywhere."""
    for mechanism in MECHANISMS:
        for allocator in ALLOCATORS:
            yield (
                f"synthetic {mechanism} {allocator}",
                [*SHORT, "federation.engine=synthetic", *_named(mechanism, allocator)],
            )
    for reading in READINGS:
        yield (
            f"synthetic bara {reading}",
            [*SHORT, "federation.engine=synthetic", "allocator.name=bara", f"allocator.{reading}"],
        )
    for goal in GOALS:
        yield f"synthetic {goal}", [*SHORT, "federation.engine=synthetic", f"budget.{goal}"]
    for mechanism in MECHANISMS:
        yield f"simulator {mechanism}", [*SIMULATOR, "clients.count=6", *_named(mechanism, "even")]
    for name, changes in TRAININGS.items():
        yield f"simulator {name}", [*SIMULATOR, "clients.count=6", *changes]


def killed():
    """Runs with a folder that are killed and resumed."""
    for number, fault in enumerate(FAULTS):
        retention = f"ledger.retention={('keep', 'drop')[number % 2]}"
        yield f"synthetic {fault}", [*SHORT, "federation.engine=synthetic", retention], fault
        yield (
            f"simulator {fault}",
            [*SIMULATOR, "clients.count=6", "mechanism.name=fair", retention],
            fault,
        )
    flower = [
        *SIMULATOR,
        "federation.engine=FLOWER",
        "training.memory=extrapolated",
        "clients.count=4",
        "budget.max_rounds=5",
        "federation.workers=1",
    ]
    yield "flower", flower, "settled@3"
    yield "flower FedAdam", [*flower, "federation.strategy=FedAdam"], "trained@4"


def _named(mechanism, allocator):
    options = OPTIONS.get(mechanism, []) + OPTIONS.get(allocator, [])
    return [f"mechanism.name={mechanism}", f"allocator.name={allocator}", *options]


PLAY = """
import json, sys
import bara
for line in sys.stdin:
    name, changes = json.loads(line)
    result = bara.run(bara.Config.load(None, changes), progress=False)
    print(json.dumps([name, result.to_json()]), flush=True)
"""


def play_in_process(root, folder):
    """Results of all cases that need no folder."""
    asked = "".join(json.dumps(case) + "\n" for case in cases())
    done = _python(root, folder, "-c", PLAY, text=asked)
    return dict(json.loads(line) for line in done.splitlines())


def play_with_folders(root, folder):
    """Results, ledgers and models of runs that are killed and resumed, and of the other verbs."""
    found = {}
    for name, asked, fault in killed():
        place = folder / name.replace(" ", "-")
        changes = [change.replace("FLOWER", _flower_in(root)) for change in asked]
        words = [word for change in changes for word in ("--set", change)]
        _python(
            root,
            folder,
            "-m",
            "bara.cli",
            "run",
            "--out",
            str(place),
            "--json",
            *words,
            fault=fault,
        )
        _python(root, folder, "-m", "bara.cli", "resume", str(place), "--json")
        result = json.loads((place / "result.json").read_text())
        if "flower" in name:
            result.pop("dataset")  # an engine of one's own has none
        found[f"killed {name}"] = result
        export = json.loads(_python(root, folder, "-m", "bara.cli", "ledger", str(place), "export"))
        found[f"ledger of {name}"] = [
            [one["kind"], one["round"], _plain(one["body"])] for one in export["events"]
        ]
        for line in export["lines"]:
            line.pop("at")
        found[f"lines of {name}"] = export["lines"]
        for model in sorted(place.glob("model-*.npz")):
            with np.load(model) as arrays:
                found[f"{model.name} of {name}"] = {
                    k: arrays[k].tolist() for k in arrays.files if k != "about"
                }
    quick = [
        word for change in [*SHORT, "federation.engine=synthetic"] for word in ("--set", change)
    ]
    compare = [
        "compare",
        "--allocators",
        "even,planner,bara",
        "--seeds",
        "2",
        "--json",
        "--history",
        *quick,
    ]
    found["compare"] = json.loads(_python(root, folder, "-m", "bara.cli", *compare))
    found["plan"] = json.loads(
        _python(root, folder, "-m", "bara.cli", "plan", "--draws", "3", "--json", *quick)
    )
    audit = ["audit", "fmore", "--trials", "200", "--json"]
    found["audit"] = json.loads(_python(root, folder, "-m", "bara.cli", *audit, codes=(0, 1)))
    return found


def _plain(body):
    """What an event says, but for salted digests, places, and how an engine is named."""
    body = {k: v for k, v in body.items() if k not in {"menu", "bids", "memories", "place"}}
    if "config" in body:
        body["config"]["training"].pop("precision", None)
        if body["config"]["federation"]["engine"] == _flower_in(HERE):
            body["config"]["federation"]["engine"] = "flower"
    return body


def differences(theirs, ours, place=""):
    """Every place where two trees differ, with what stands there in either."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            if key in theirs and key in ours:
                yield from differences(theirs[key], ours[key], f"{place}.{key}")
            elif key in theirs:
                yield f"{place}.{key}: only there"
            elif key not in ADDED:
                yield f"{place}.{key}: only here"
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(their, our, f"{place}[{number}]")
    else:
        there, here = json.dumps(theirs), json.dumps(ours)
        if there != here:
            yield f"{place}: {there[:SHOWN]} there, {here[:SHOWN]} here"


def _flower_in(root):
    """The engine on Flower's simulation: a name in 0.2, then for tests only, by import path."""
    if (root / "src" / "bara" / "flower" / "engine.py").exists():
        return "flower"
    return "ray_engine:simulated"


def _python(root, folder, *words, text=None, fault=None, codes=(0,)):
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root / 'src'}:{root / 'tests' / 'flower'}",
        "OMP_NUM_THREADS": "1",
    }
    environment |= {} if fault is None else {"BARA_FAULT": fault}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", *words],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    if done.returncode not in ((0, -9) if fault else codes):
        raise SystemExit(f"{root}: {' '.join(words)}\n{done.stderr}")
    return done.stdout


def main():
    """Play both, compare, and say how many were the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path)
    other = parser.parse_args().other.resolve()
    found = {}
    for root in (other, HERE):
        with tempfile.TemporaryDirectory() as name:
            found[root] = play_in_process(root, Path(name)) | play_with_folders(root, Path(name))
    theirs, ours = found[other], found[HERE]
    different = 0
    for name in sorted(theirs.keys() | ours.keys()):
        places = list(differences(theirs.get(name), ours.get(name)))
        if places:
            different += 1
            sys.stdout.write(f"DIFFERENT: {name}, in {len(places)} places, such as {places[0]}\n")
    sys.stdout.write(f"{len(ours) - different} of {len(ours)} are the same, bit for bit\n")
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
