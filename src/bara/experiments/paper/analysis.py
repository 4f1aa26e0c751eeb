"""From runs to the rows behind each of the paper's figures and tables, and to a sentence of what was measured."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from bara.experiments.paper.exhibits import DATASETS, Exhibit, Scale
from bara.experiments.results import Result
from bara.experiments.statistics import Estimate, estimate, holm, paired, significance

Row = dict[str, Any]
"""One line of the data behind a figure; the same keys in every line of it."""

BASELINE = "EA"
"""The method that differences are measured against."""

SETTLED = 50
"""Over how many of the last rounds n counts as settled."""


class Runs:
    """Results by preset and allocator, each by seed."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._runs: dict[tuple[str, str], dict[int, Result]] = {}
        for result in results:
            self._runs.setdefault((result.setting or "", result.allocator), {})[result.seed] = result

    def of(self, setting: str, allocator: str) -> dict[int, Result]:
        """One allocator's, by seed; empty where none of them ended."""
        return dict(sorted(self._runs.get((setting, allocator), {}).items()))


@dataclass(frozen=True)
class ExhibitResult:
    """One exhibit with its data.

    Attributes:
        exhibit: What it is.
        rows: The data behind it.
        measured: What was found, in a sentence.
        size: How large its runs were, in a sentence.
        scale: The same as numbers.
    """

    exhibit: Exhibit
    rows: list[Row]
    measured: str
    size: str
    scale: Scale


def analyse(exhibit: Exhibit, results: Sequence[Result], datasets: Sequence[str], scale: Scale) -> ExhibitResult:
    """Make an exhibit of its runs."""
    runs, (find, _) = Runs(results), _of(exhibit)
    rows = [row for dataset in exhibit.datasets(datasets) for row in find(exhibit, runs, dataset, scale)]
    return described(exhibit, rows, datasets, scale)


def described(exhibit: Exhibit, rows: list[Row], datasets: Sequence[str], scale: Scale) -> ExhibitResult:
    """Make an exhibit of the data behind it."""
    measured = _of(exhibit)[1](rows) if rows else "No run ended."
    return ExhibitResult(exhibit, rows, measured, size_of(exhibit, exhibit.datasets(datasets), scale), scale)


def size_of(exhibit: Exhibit, datasets: Sequence[str], scale: Scale) -> str:
    """Samples, seeds and what else a reader must know of the size."""
    sizes = []
    for dataset in datasets:
        data = scale.config(exhibit.family, dataset).data
        train, held_out = (f"{n:,}" if n else "all" for n in (data.train_samples, data.evaluation_samples))
        sizes.append(f"{DATASETS[dataset]} {train} training and {held_out} evaluation samples")
    searched = f"; n* among {scale.searched} numbers of clients" if exhibit.searches else ""
    changed = f"; {', '.join(scale.changes)}" if scale.changes else ""
    return f"{'; '.join(sizes)}; {scale.seeds} seeds{searched}{changed}."


def accuracies(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """For each method the final accuracy and the mean of the last ten rounds, and how it differs from EA."""
    setting = f"{exhibit.family}-{dataset}"
    final = {
        method: {seed: run.accuracy_final for seed, run in runs.of(setting, allocator).items()}
        for method, allocator in exhibit.methods.items()
    }
    final = {method: values for method, values in final.items() if values}
    base = final.get(BASELINE, {})
    tested = [
        None if method == BASELINE else significance([values[seed] - base[seed] for seed in values if seed in base])
        for method, values in final.items()
    ]
    rows = []
    for (method, values), p in zip(final.items(), holm(tested), strict=True):
        ended = runs.of(setting, exhibit.methods[method])
        less = None if method == BASELINE else paired(values, base)
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "allocator": exhibit.methods[method],
                **_estimated("final", estimate(list(values.values()))),
                **_estimated("last10", estimate([run.accuracy_last10 for run in ended.values()])),
                **_estimated(f"less_{BASELINE}", less),
                "p": p,
                "spent": fmean(run.spent for run in ended.values()),
                "rounds": fmean(run.rounds for run in ended.values()),
                "paper": _reported(exhibit, dataset, method),
                "seeds": len(values),
                "train_samples": scale.config(exhibit.family, dataset).data.train_samples,
            }
        )
    return rows


def clients(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:  # noqa: ARG001 - one signature
    """Every round's n, for every seed of BARA."""
    return [
        {"dataset": dataset, "seed": seed, "round": entry["round"], "n": entry["n"]}
        for seed, run in runs.of(f"{exhibit.family}-{dataset}", "bara").items()
        for entry in run.history[1:]
    ]


def regrets(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """Reg_t / t, mean over the seeds that play so long, once as the paper defines it and once as it really was.

    The best n has the highest mean final accuracy a* of those tried alone with a whole budget. The paper's regret of a
    round is a* less what the estimator predicts for the n played; the real one is a* less what that n really comes to
    alone, between tried numbers in proportion.
    """
    setting = f"{exhibit.family}-{dataset}"
    alone = {
        n: fmean(run.accuracy_final for run in found.values())
        for n in scale.numbers(scale.config(exhibit.family, dataset).clients.count)
        if (found := runs.of(setting, f"fixed:n={n}"))
    }
    played = runs.of(setting, "bara")
    if not alone or not played:
        return []
    best = max(alone, key=lambda n: alone[n])
    predicted, real = [], []
    for run in played.values():
        rounds = run.history[1:]
        real.append(alone[best] - np.interp([entry["n"] for entry in rounds], list(alone), list(alone.values())))
        predicted.append(alone[best] - np.array([entry.get("estimate", np.nan) for entry in rounds]))
    shared = min(map(len, real))
    rows = []
    for t in range(1, shared + 1):
        told = [float(known.mean()) for values in predicted if len(known := values[:t][np.isfinite(values[:t])])]
        true = [float(values[:t].mean()) for values in real]
        rows.append(
            {
                "dataset": dataset,
                "round": t,
                **_estimated("predicted", estimate(told) if told else None),
                **_estimated("real", estimate(true)),
                "best_n": best,
                "best_accuracy": alone[best],
            }
        )
    return rows


def curves(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:  # noqa: ARG001 - one signature
    """Each method's accuracy over rounds, mean over seeds; a run that has ended keeps its last value."""
    rows = []
    for method, allocator in exhibit.methods.items():
        ended = list(runs.of(f"{exhibit.family}-{dataset}", allocator).values())
        for t in range(max((run.rounds for run in ended), default=-1) + 1):
            accuracy = estimate([run.history[min(t, run.rounds)]["accuracy"] for run in ended])
            rows.append({"dataset": dataset, "method": method, "round": t, **_estimated("accuracy", accuracy)})
    return rows


def _estimated(name: str, value: Estimate | None) -> Row:
    return {name: None if value is None else value.mean, f"{name}_margin": None if value is None else value.margin}


def _reported(exhibit: Exhibit, dataset: str, method: str) -> float | None:
    alone, lifted = exhibit.reported.get(dataset, (None, None))
    return {"EA": alone, "BARA": lifted}.get(method)


def _say_accuracies(rows: Sequence[Row]) -> str:
    said = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        ranked = sorted(own, key=lambda row: -row["final"])
        bara = next((row for row in own if row["method"] == "BARA"), None)
        text = f"{DATASETS[dataset]}: best {ranked[0]['method']} ({100 * ranked[0]['final']:.1f})"
        if bara is not None and bara[f"less_{BASELINE}"] is not None:
            p = "" if bara["p"] is None else f", p = {bara['p']:.2g}"
            text += f", BARA {100 * bara[f'less_{BASELINE}']:+.1f} against {BASELINE}{p}"
        said.append(text)
    return "; ".join(said) + " (p corrected for the methods compared)."


def _say_clients(rows: Sequence[Row]) -> str:
    said = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        seeds: dict[int, list[int]] = {}
        for row in rows:
            if row["dataset"] == dataset:
                seeds.setdefault(row["seed"], []).append(row["n"])
        means = [fmean(played[-SETTLED:]) for played in seeds.values()]
        spread = fmean(pstdev(played[-SETTLED:]) for played in seeds.values())
        ends = ", ".join(f"{mean:.1f}" for mean in means)
        said.append(f"{DATASETS[dataset]}: n in the last {SETTLED} rounds {ends}, deviation {spread:.1f}")
    return "; ".join(said) + "."


def _say_regrets(rows: Sequence[Row]) -> str:
    last = {row["dataset"]: row for row in rows}
    return (
        "; ".join(
            f"{DATASETS[dataset]}: n* = {row['best_n']} ({100 * row['best_accuracy']:.1f} %), Reg_t / t at "
            f"t = {row['round']}: {row['predicted'] or math.nan:+.2f} by the estimator, {row['real']:+.2f} really"
            for dataset, row in last.items()
        )
        + "."
    )


def _say_curves(rows: Sequence[Row]) -> str:
    said = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row["accuracy"] for row in rows if row["method"] == method]
        if own:
            marks = [own[min(t, len(own) - 1)] for t in (50, 150, len(own) - 1)]
            said.append(f"{method} {' / '.join(f'{100 * mark:.1f}' for mark in marks)}")
    return "Accuracy after 50 / 150 / all rounds: " + "; ".join(said) + "."


_MAKERS: dict[str, tuple[Callable[..., list[Row]], Callable[[Sequence[Row]], str]]] = {
    "fig2": (clients, _say_clients),
    "fig3": (regrets, _say_regrets),
    "fig4": (curves, _say_curves),
}
"""How an exhibit's rows are made, and what is said of them; the others are of accuracies."""


def _of(exhibit: Exhibit) -> tuple[Callable[..., list[Row]], Callable[[Sequence[Row]], str]]:
    return _MAKERS.get(exhibit.name, (accuracies, _say_accuracies))
