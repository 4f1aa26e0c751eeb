"""From runs to the rows behind each of the paper's figures and tables, and to a sentence of what was measured."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from bara.allocators import Reading
from bara.paper.exhibits import BARA, DATASETS, TITLES, UNLIMITED, Exhibit, Scale
from bara.paper.regimes import REGIMES
from bara.records import FloatArray
from bara.reports.result import Result
from bara.reports.statistics import Estimate, estimate, holm, paired, significance
from bara.text import counted

Row = dict[str, Any]
"""One line of the data behind a figure; the same keys in every line of it."""

BASELINE = "EA"
"""The method that differences are measured against."""

LESS = f"less_{BASELINE}"
"""The column of those differences."""

BOUND = "bound"
"""What no decision after stage 1 does better than."""

T_0 = Reading().exploration_rounds
"""The first round of stage 2, in every reading that is shown."""

SETTLED = 50
"""Over how many of the last rounds n counts as settled."""


class Runs:
    """Results by preset, allocator and part of the budget, each by seed."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._runs: dict[tuple[str, str, float | None], dict[int, Result]] = {}
        for result in results:
            self._runs.setdefault((result.setting or "", result.allocator, result.share), {})[
                result.seed
            ] = result

    def of(self, setting: str, allocator: str, share: float | None = None) -> dict[int, Result]:
        """One allocator's, by seed; empty where none of them ended."""
        return dict(sorted(self._runs.get((setting, allocator, share), {}).items()))

    def alone(
        self, setting: str, search: str, numbers: Sequence[int], share: float | None = None
    ) -> dict[int, float]:
        """The mean final accuracy of each n that was tried alone with that allocator."""
        return {
            n: fmean(run.accuracy_final for run in found.values())
            for n in numbers
            if (found := self.of(setting, f"{search}:n={n}", share))
        }


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


def analyse(
    exhibit: Exhibit, results: Sequence[Result], datasets: Sequence[str], scale: Scale
) -> ExhibitResult:
    """Make an exhibit of its runs."""
    runs, (find, _) = Runs(results), _of(exhibit)
    rows = [
        row for dataset in exhibit.datasets(datasets) for row in find(exhibit, runs, dataset, scale)
    ]
    return described(exhibit, rows, datasets, scale)


def described(
    exhibit: Exhibit, rows: list[Row], datasets: Sequence[str], scale: Scale
) -> ExhibitResult:
    """Make an exhibit of the data behind it."""
    measured = _of(exhibit)[1](rows) if rows else "No run ended."
    return ExhibitResult(
        exhibit, rows, measured, size_of(exhibit, exhibit.datasets(datasets), scale), scale
    )


def size_of(exhibit: Exhibit, datasets: Sequence[str], scale: Scale) -> str:
    """Samples, seeds and what else a reader must know of the size."""
    searched = f"; n* among {scale.searched} numbers of clients" if exhibit.search else ""
    changed = f"; {', '.join(scale.changes)}" if scale.changes else ""
    seeds = counted(exhibit.repeats * scale.seeds, "seed")
    if exhibit.name == "regimes":
        return f"{len(datasets)} regimes on learning curves in closed form, no data; {seeds} each{searched}{changed}."
    searched += " without the budget" if exhibit.search and scale.unlimited else ""
    sizes = []
    for dataset in datasets:
        data = scale.config(exhibit.family, dataset).data
        train, held_out = (
            f"{n:,}" if n else "all" for n in (data.train_samples, data.evaluation_samples)
        )
        sizes.append(f"{TITLES[dataset]} {train} training and {held_out} evaluation samples")
    return f"{'; '.join(sizes)}; {seeds}{searched}{changed}."


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
        None
        if method == BASELINE
        else significance([values[seed] - base[seed] for seed in values if seed in base])
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
                **_estimated(LESS, less),
                "p": p,
                "spent": fmean(run.spent for run in ended.values()),
                "rounds": fmean(run.rounds for run in ended.values()),
                "paper": _reported(exhibit, dataset, method),
                "seeds": len(values),
                "train_samples": scale.config(exhibit.family, dataset).data.train_samples,
            }
        )
    return rows


def bounded(exhibit: Exhibit, runs: Runs, name: str, scale: Scale) -> list[Row]:
    """Accuracies, the bound among them: stage 1, then the n that turned out best (Yang et al. 2023, P2).

    The best n is that of the highest mean over the same seeds, which flatters it: of the n tried
    none does better.
    """
    setting = f"{exhibit.family}-{name}"
    alone = runs.alone(
        setting, exhibit.search, scale.numbers(scale.config(exhibit.family, name).clients.count)
    )
    bound = {BOUND: f"{exhibit.search}:n={max(alone, key=lambda n: alone[n])}"} if alone else {}
    return accuracies(replace(exhibit, methods={**exhibit.methods, **bound}), runs, name, scale)


def regimes(exhibit: Exhibit, runs: Runs, name: str, scale: Scale) -> list[Row]:
    """The same in one regime, with where on the map it lies and how often n changes."""
    setting, regime = f"{exhibit.family}-{name}", REGIMES[name]
    axes = {"learned": regime.learned, "swing": regime.swing, "money": regime.money}
    return [
        {**axes, **row, "n_changes": _changes(runs.of(setting, row["allocator"]).values())}
        for row in bounded(exhibit, runs, name, scale)
    ]


def _changes(played: Iterable[Result]) -> float | None:
    """The part of the rounds of stage 2, from the second on, whose n is not that of the round before."""
    stages = [[entry["n"] for entry in run.history[T_0:]] for run in played]
    changed = [
        fmean(n != before for before, n in pairwise(stage)) for stage in stages if len(stage) > 1
    ]
    return fmean(changed) if changed else None


def clients(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:  # noqa: ARG001 - one signature
    """Every round's n, for every seed and every reading of BARA."""
    return [
        {
            "dataset": dataset,
            "method": method,
            "seed": seed,
            "round": entry["round"],
            "n": entry["n"],
        }
        for method, allocator in exhibit.methods.items()
        for seed, run in runs.of(f"{exhibit.family}-{dataset}", allocator).items()
        for entry in run.history[1:]
    ]


def regrets(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """Reg_t / t, mean over the seeds that play so long, once as the paper defines it and once as it really was.

    The best n has the highest mean final accuracy a* of those tried alone with a whole budget, or
    without one. The paper's regret of a round is a* less what is predicted for the n played
    (`Reading.predicts`); the real one is a* less what that n really comes to alone in the same way,
    between tried numbers in proportion.
    """
    setting = f"{exhibit.family}-{dataset}"
    numbers = scale.numbers(scale.config(exhibit.family, dataset).clients.count)
    alone = runs.alone(setting, exhibit.search, numbers, UNLIMITED if scale.unlimited else None)
    if not alone:
        return []
    best = max(alone, key=lambda n: alone[n])
    rows: list[Row] = []
    for method, allocator in exhibit.methods.items():
        played = [run.history[1:] for run in runs.of(setting, allocator).values()]
        real = [
            alone[best] - np.interp([e["n"] for e in rounds], list(alone), list(alone.values()))
            for rounds in played
        ]
        predicted = [
            alone[best] - np.array([e.get("estimate", np.nan) for e in rounds]) for rounds in played
        ]
        for t in range(1, max(map(len, played), default=0) + 1):
            told = [
                float(known.mean())
                for values in _lasting(predicted, t)
                if len(known := values[np.isfinite(values)])
            ]
            true = [float(values.mean()) for values in _lasting(real, t)]
            rows.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "round": t,
                    **_estimated("predicted", estimate(told) if told else None),
                    **_estimated("real", estimate(true)),
                    "seeds": len(true),
                    "best_n": best,
                    "best_accuracy": alone[best],
                }
            )
    return rows


def _lasting(columns: Iterable[FloatArray], t: int) -> list[FloatArray]:
    """The first t values of those that have so many."""
    return [values[:t] for values in columns if len(values) >= t]


def curves(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:  # noqa: ARG001 - one signature
    """Each method's accuracy over rounds, mean over seeds; a run that has ended keeps its last value."""
    rows = []
    for method, allocator in exhibit.methods.items():
        ended = list(runs.of(f"{exhibit.family}-{dataset}", allocator).values())
        for t in range(max((run.rounds for run in ended), default=-1) + 1):
            accuracy = estimate([run.history[min(t, run.rounds)]["accuracy"] for run in ended])
            rows.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "round": t,
                    **_estimated("accuracy", accuracy),
                }
            )
    return rows


def _estimated(name: str, value: Estimate | None) -> Row:
    return {
        name: None if value is None else value.mean,
        f"{name}_margin": None if value is None else value.margin,
    }


def _reported(exhibit: Exhibit, dataset: str, method: str) -> float | None:
    alone, lifted = exhibit.reported.get(dataset, (None, None))
    return lifted if method in BARA else {"EA": alone}.get(method)


def _say_accuracies(rows: Sequence[Row]) -> str:
    said = []
    for (dataset,), own in grouped(rows, "dataset"):
        ranked = sorted(own, key=lambda row: -row["final"])
        against = [
            f"{row['method']} {_points(row)}"
            for row in own
            if row["method"] in BARA and row[LESS] is not None
        ]
        text = f"{TITLES[dataset]}: best {ranked[0]['method']} ({100 * ranked[0]['final']:.1f})"
        said.append(f"{text}, against {BASELINE}: {', '.join(against)}" if against else text)
    tested = any(row["p"] is not None for row in rows)
    return "; ".join(said) + (" (p corrected for the methods compared)." if tested else ".")


def _points(row: Row) -> str:
    """A difference from the baseline as people say it: points, half of the interval, p where there is one."""
    margin = "" if row[f"{LESS}_margin"] is None else f" ± {100 * row[f'{LESS}_margin']:.1f}"
    return f"{100 * row[LESS]:+.1f}{margin}" + (
        "" if row["p"] is None else f" (p = {row['p']:.2g})"
    )


def _say_regimes(rows: Sequence[Row]) -> str:
    """In how many regimes each is ahead of EA, behind it, or neither, by its 95 % interval."""
    said = []
    for (method,), own in grouped(rows, "method"):
        if method != BASELINE:
            ahead, behind = (sum(standing(row) == sign for row in own) for sign in (1, -1))
            ends = " to ".join(f"{100 * end(row[LESS] for row in own):+.1f}" for end in (min, max))
            said.append(
                f"{method}: ahead of {BASELINE} in {ahead}, behind in {behind} of {len(own)} ({ends} points)"
            )
    return "; ".join(said) + "."


def standing(row: Row) -> int:
    """Whether a method is ahead of EA (1), behind it (-1) or neither (0): on which side of zero its interval lies."""
    if row[f"{LESS}_margin"] is None or abs(row[LESS]) <= row[f"{LESS}_margin"]:
        return 0
    return 1 if row[LESS] > 0 else -1


def _say_clients(rows: Sequence[Row]) -> str:
    said = []
    for (dataset, method), own in grouped(rows, "dataset", "method"):
        last = [[row["n"] for row in of][-SETTLED:] for _, of in grouped(own, "seed")]
        ends, spread = (
            ", ".join(f"{fmean(played):.1f}" for played in last),
            fmean(map(pstdev, last)),
        )
        said.append(
            f"{DATASETS[dataset]}, {method}: n in the last {SETTLED} rounds {ends}, deviation {spread:.1f}"
        )
    return "; ".join(said) + "."


def _say_regrets(rows: Sequence[Row]) -> str:
    said = []
    for (dataset, method), own in grouped(rows, "dataset", "method"):
        row = [row for row in own if row["seeds"] == own[0]["seeds"]][-1]
        said.append(
            f"{DATASETS[dataset]}, {method}: n* = {row['best_n']} ({100 * row['best_accuracy']:.1f} %), Reg_t / t at "
            f"t = {row['round']}, the last round of all {row['seeds']} seeds: {row['predicted'] or math.nan:+.2g} by "
            f"what it predicts, {row['real']:+.2f} really"
        )
    return "; ".join(said) + "."


def grouped(rows: Sequence[Row], *keys: str) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Rows that have the same values there, in the order in which they came."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.items())


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
    "regimes": (regimes, _say_regimes),
    "border": (bounded, _say_accuracies),
}
"""How an exhibit's rows are made, and what is said of them; the others are of accuracies."""


def _of(exhibit: Exhibit) -> tuple[Callable[..., list[Row]], Callable[[Sequence[Row]], str]]:
    return _MAKERS.get(exhibit.name, (accuracies, _say_accuracies))
