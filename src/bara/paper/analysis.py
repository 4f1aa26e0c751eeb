"""The rows behind each of the paper's figures and tables, and a sentence on what they show."""

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
from bara.reports.frames import column
from bara.reports.result import Result
from bara.reports.statistics import (
    Estimate,
    differences,
    estimate,
    holm,
    paired,
    significance,
    tested,
)
from bara.text import counted

Row = dict[str, Any]
"""One row of the data behind a figure; all rows of a figure have the same keys."""

BASELINE = "EA"
"""The method that differences are measured against."""

LESS = f"less_{BASELINE}"
"""The column of the differences from the baseline."""

BOUND = "bound"
"""The method that no decision after stage 1 can beat: the best n in hindsight."""

T_0 = Reading().exploration_rounds
"""The first round of stage 2, in every reading that is shown."""

SETTLED = 50
"""The number of last rounds over which n counts as settled."""


class Runs:
    """The results by preset, allocator and share of the budget, each by seed.

    Args:
        results: The runs that ended.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._runs: dict[tuple[str, str, float | None], dict[int, Result]] = {}
        for result in results:
            place = (result.setting or "", result.allocator, result.share)
            self._runs.setdefault(place, {})[result.seed] = result

    def of(self, setting: str, allocator: str, share: float | None = None) -> dict[int, Result]:
        """Return one allocator's runs by seed; empty if none of them ended."""
        return dict(sorted(self._runs.get((setting, allocator, share), {}).items()))

    def alone(
        self, setting: str, search: str, numbers: Sequence[int], share: float | None = None
    ) -> dict[int, float]:
        """Return the mean final accuracy of each n that was tried alone.

        Args:
            setting: The preset.
            search: The allocator that plays one n throughout.
            numbers: The n that were tried.
            share: The share of the budget; None for the preset's own budget.
        """
        means = {}
        for n in numbers:
            found = self.of(setting, f"{search}:n={n}", share)
            if found:
                means[n] = fmean(run.accuracy_final for run in found.values())
        return means


@dataclass(frozen=True)
class ExhibitResult:
    """An exhibit with its data.

    Attributes:
        exhibit: The figure or table.
        rows: The data behind the exhibit.
        measured: The finding, in a sentence.
        size: The size of its runs, in a sentence.
        scale: The size of its runs, as numbers.
    """

    exhibit: Exhibit
    rows: list[Row]
    measured: str
    size: str
    scale: Scale


def analyse(
    exhibit: Exhibit, results: Sequence[Result], datasets: Sequence[str], scale: Scale
) -> ExhibitResult:
    """Make an exhibit from its runs.

    Args:
        exhibit: The figure or table.
        results: Runs, among them those of the exhibit.
        datasets: The datasets that were asked for.
        scale: The size of the runs.
    """
    runs = Runs(results)
    make_rows, _ = _of(exhibit)
    rows = []
    for dataset in exhibit.datasets(datasets):
        rows += make_rows(exhibit, runs, dataset, scale)
    return described(exhibit, rows, datasets, scale)


def described(
    exhibit: Exhibit, rows: list[Row], datasets: Sequence[str], scale: Scale
) -> ExhibitResult:
    """Make an exhibit from the data behind it; see `analyse` for the other arguments."""
    _, say = _of(exhibit)
    measured = say(rows) if rows else "No run ended."
    size = size_of(exhibit, exhibit.datasets(datasets), scale)
    return ExhibitResult(exhibit, rows, measured, size, scale)


def size_of(exhibit: Exhibit, datasets: Sequence[str], scale: Scale) -> str:
    """Tell the size of an exhibit's runs: samples, seeds, searched n and changed keys."""
    searched = f"; n* among {scale.searched} numbers of clients" if exhibit.search else ""
    changed = f"; {', '.join(scale.changes)}" if scale.changes else ""
    seeds = counted(exhibit.repeats * scale.seeds, "seed")
    if exhibit.name == "regimes":
        curves_told = f"{len(datasets)} regimes on learning curves in closed form, no data"
        return f"{curves_told}; {seeds} each{searched}{changed}."
    if exhibit.search and scale.unlimited:
        searched += " without the budget"
    sizes = []
    for dataset in datasets:
        data = scale.config(exhibit.family, dataset).data
        train = _count(data.train_samples)
        held_out = _count(data.evaluation_samples)
        sizes.append(f"{TITLES[dataset]} {train} training and {held_out} evaluation samples")
    return f"{'; '.join(sizes)}; {seeds}{searched}{changed}."


def _count(samples: int | None) -> str:
    return f"{samples:,}" if samples else "all"


def accuracies(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """Return each method's accuracy, final and over the last ten rounds, and its lead over EA."""
    setting = f"{exhibit.family}-{dataset}"
    train_samples = scale.config(exhibit.family, dataset).data.train_samples
    ended: dict[str, list[Result]] = {}
    final: dict[str, dict[int, float]] = {}
    for method, allocator in exhibit.methods.items():
        found = runs.of(setting, allocator)
        if found:
            ended[method] = list(found.values())
            final[method] = {seed: run.accuracy_final for seed, run in found.items()}
    base = final.get(BASELINE, {})
    tests = []
    for method, values in final.items():
        leads = differences(values, base)
        tests.append(None if method == BASELINE else significance(leads))
    rows = []
    for (method, values), p in zip(final.items(), holm(tests), strict=True):
        last10 = [run.accuracy_last10 for run in ended[method]]
        less = None if method == BASELINE else paired(values, base)
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "allocator": exhibit.methods[method],
                **_estimated("final", estimate(list(values.values()))),
                **_estimated("last10", estimate(last10)),
                **_estimated(LESS, less),
                "p": p,
                "spent": fmean(run.spent for run in ended[method]),
                "rounds": fmean(run.rounds for run in ended[method]),
                "paper": _reported(exhibit, dataset, method),
                "seeds": len(values),
                "train_samples": train_samples,
            }
        )
    return rows


def bounded(exhibit: Exhibit, runs: Runs, name: str, scale: Scale) -> list[Row]:
    """Return accuracies with those of the bound: stage 1, then the best n (Yang et al. 2023, P2).

    The best n has the highest mean over the same seeds, which flatters the bound: none of the n
    that were tried does better.
    """
    setting = f"{exhibit.family}-{name}"
    clients_in_all = scale.config(exhibit.family, name).clients.count
    alone = runs.alone(setting, exhibit.search, scale.numbers(clients_in_all))
    methods = dict(exhibit.methods)
    if alone:
        best = max(alone, key=lambda n: alone[n])
        methods[BOUND] = f"{exhibit.search}:n={best}"
    return accuracies(replace(exhibit, methods=methods), runs, name, scale)


def regimes(exhibit: Exhibit, runs: Runs, name: str, scale: Scale) -> list[Row]:
    """Return accuracies in one regime, with its place on the map and how often n changes."""
    regime = REGIMES[name]
    axes = {"learned": regime.learned, "swing": regime.swing, "money": regime.money}
    rows = bounded(exhibit, runs, name, scale)
    return [{**axes, **row} for row in _with_changes(rows, exhibit, runs)]


def readings(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """Return the accuracies of readings of Algorithm 1, and how often n changes."""
    return _with_changes(accuracies(exhibit, runs, dataset, scale), exhibit, runs)


def _with_changes(rows: Iterable[Row], exhibit: Exhibit, runs: Runs) -> list[Row]:
    changing = []
    for row in rows:
        played = runs.of(f"{exhibit.family}-{row['dataset']}", row["allocator"])
        changing.append({**row, "n_changes": _changes(played.values())})
    return changing


def _changes(played: Iterable[Result]) -> float | None:
    """Return the fraction of rounds in stage 2 whose n differs from that of the round before."""
    fractions = []
    for run in played:
        numbers = column(run.history[T_0:], "n")
        if len(numbers) > 1:
            changed = sum(n != before for before, n in pairwise(numbers))
            fractions.append(changed / (len(numbers) - 1))
    return fmean(fractions) if fractions else None


def clients(exhibit: Exhibit, runs: Runs, dataset: str, _scale: Scale) -> list[Row]:
    """Return the n of every round and what it predicts, for every seed and reading of BARA."""
    rows = []
    for method, allocator in exhibit.methods.items():
        for seed, run in runs.of(f"{exhibit.family}-{dataset}", allocator).items():
            for entry in run.history[1:]:
                row = {"dataset": dataset, "method": method, "seed": seed, "round": entry["round"]}
                rows.append({**row, "n": entry["n"], "estimate": entry.get("estimate")})
    return rows


def regrets(exhibit: Exhibit, runs: Runs, dataset: str, scale: Scale) -> list[Row]:
    """Return Reg_t / t, the mean over the seeds that play t rounds: as predicted, and as it was.

    The best n has the highest mean final accuracy a* of those tried alone with a whole budget, or
    without one. The paper's regret of a round is a* less the prediction for the n played
    (`Reading.predicts`). The real one is a* less the accuracy that this n reaches when tried alone
    in the same way, interpolated between the n that were tried.
    """
    setting = f"{exhibit.family}-{dataset}"
    numbers = scale.numbers(scale.config(exhibit.family, dataset).clients.count)
    alone = runs.alone(setting, exhibit.search, numbers, UNLIMITED if scale.unlimited else None)
    if not alone:
        return []
    best = max(alone, key=lambda n: alone[n])
    rows: list[Row] = []
    for method, allocator in exhibit.methods.items():
        real = []
        predicted = []
        for run in runs.of(setting, allocator).values():
            played = run.history[1:]
            reached = np.interp(column(played, "n"), list(alone), list(alone.values()))
            real.append(alone[best] - reached)
            estimates = np.array([entry.get("estimate", np.nan) for entry in played])
            predicted.append(alone[best] - estimates)
        for t in range(1, max(map(len, real), default=0) + 1):
            told = []
            for values in _lasting(predicted, t):
                known = values[np.isfinite(values)]
                if len(known):
                    told.append(float(known.mean()))
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
    """Return the first t values of each column that has at least t."""
    return [values[:t] for values in columns if len(values) >= t]


def accuracy_curves(exhibit: Exhibit, runs: Runs, dataset: str, _scale: Scale) -> list[Row]:
    """Return the accuracy of every round, for every seed and every method."""
    rows = []
    for method, allocator in exhibit.methods.items():
        for seed, run in runs.of(f"{exhibit.family}-{dataset}", allocator).items():
            for entry in run.history:
                row = {"dataset": dataset, "method": method, "seed": seed, "round": entry["round"]}
                rows.append({**row, "accuracy": entry["accuracy"]})
    return rows


def mean_curve(rows: Sequence[Row]) -> list[float]:
    """Return one method's mean accuracy by round; an ended run counts with its last value."""
    curves = [column(own, "accuracy") for _, own in grouped(rows, "seed")]
    means = []
    for t in range(max(map(len, curves))):
        means.append(fmean(curve[min(t, len(curve) - 1)] for curve in curves))
    return means


def _estimated(name: str, value: Estimate | None) -> Row:
    if value is None:
        return {name: None, f"{name}_margin": None}
    return {name: value.mean, f"{name}_margin": value.margin}


def _reported(exhibit: Exhibit, dataset: str, method: str) -> float | None:
    """Return the accuracy in the paper, which reports its mechanisms alone and with BARA."""
    alone, lifted = exhibit.reported.get(dataset, (None, None))
    if method in BARA:
        return lifted
    return alone if method == BASELINE else None


def _say_accuracies(rows: Sequence[Row]) -> str:
    said = []
    for (dataset,), own in grouped(rows, "dataset"):
        best = max(own, key=lambda row: row["final"])
        text = f"{TITLES[dataset]}: best {best['method']} ({100 * best['final']:.1f})"
        against = []
        for row in own:
            if row["method"] in BARA and row[LESS] is not None:
                against.append(f"{row['method']} {_points(row)}")
        if against:
            text += f", against {BASELINE}: {', '.join(against)}"
        said.append(text)
    tested = any(row["p"] is not None for row in rows)
    return "; ".join(said) + (" (p corrected for the methods compared)." if tested else ".")


def _points(row: Row) -> str:
    """Tell a difference from the baseline: points, half of the interval, and p if there is one."""
    text = f"{100 * row[LESS]:+.1f}"
    if row[f"{LESS}_margin"] is not None:
        text += f" ± {100 * row[f'{LESS}_margin']:.1f}"
    if row["p"] is not None:
        text += f" (p = {row['p']:.2g})"
    return text


def _say_regimes(rows: Sequence[Row]) -> str:
    """Count the regimes in which each method is ahead of EA, and behind, by its 95 % interval."""
    said = []
    for (method,), own in grouped(rows, "method"):
        if method == BASELINE:
            continue
        standings = list(map(standing, own))
        leads = column(own, LESS)
        text = (
            f"{method}: ahead of {BASELINE} in {standings.count(1)}, "
            f"behind in {standings.count(-1)} of {len(own)} "
            f"({100 * min(leads):+.1f} to {100 * max(leads):+.1f} points"
        )
        if (kept := after_correction(own)) is not None:
            text += f"; corrected for {len(own)} regimes, ahead in {kept[0]}, behind in {kept[1]}"
        said.append(f"{text})")
    return "; ".join(said) + "."


def after_correction(rows: Sequence[Row]) -> tuple[int, int] | None:
    """Count rows ahead of EA and behind at p < 0.05, corrected for all of them (Holm).

    None where none of them is tested.
    """
    values = [tested(Estimate(row[LESS], row[f"{LESS}_margin"], row["seeds"])) for row in rows]
    if all(p is None for p in values):
        return None
    ahead = behind = 0
    for row, p in zip(rows, holm(values), strict=True):
        if p is not None and p < 0.05:
            ahead += row[LESS] > 0
            behind += row[LESS] < 0
    return ahead, behind


def standing(row: Row) -> int:
    """Return 1 if a method is ahead of EA, -1 if behind, 0 if its interval includes zero."""
    if row[f"{LESS}_margin"] is None or abs(row[LESS]) <= row[f"{LESS}_margin"]:
        return 0
    return 1 if row[LESS] > 0 else -1


def _say_clients(rows: Sequence[Row]) -> str:
    said = []
    for (dataset, method), own in grouped(rows, "dataset", "method"):
        last = [column(of_seed, "n")[-SETTLED:] for _, of_seed in grouped(own, "seed")]
        means = ", ".join(f"{fmean(numbers):.1f}" for numbers in last)
        deviation = fmean(map(pstdev, last))
        said.append(
            f"{DATASETS[dataset]}, {method}: n in the last {SETTLED} rounds {means}, "
            f"deviation {deviation:.1f}"
        )
    return "; ".join(said) + "."


def _say_regrets(rows: Sequence[Row]) -> str:
    said = []
    for (dataset, method), own in grouped(rows, "dataset", "method"):
        with_all_seeds = [row for row in own if row["seeds"] == own[0]["seeds"]]
        row = with_all_seeds[-1]
        said.append(
            f"{DATASETS[dataset]}, {method}: n* = {row['best_n']} "
            f"({100 * row['best_accuracy']:.1f} %), Reg_t / t at t = {row['round']}, "
            f"the last round of all {row['seeds']} seeds: "
            f"{row['predicted'] or math.nan:+.2g} by what it predicts, {row['real']:+.2f} really"
        )
    return "; ".join(said) + "."


def grouped(rows: Sequence[Row], *keys: str) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Group rows by their values of the keys, in the order in which these first occur."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.items())


def _say_curves(rows: Sequence[Row]) -> str:
    said = []
    for (method,), own in grouped(rows, "method"):
        accuracy = mean_curve(own)
        last = len(accuracy) - 1
        marks = [f"{100 * accuracy[min(t, last)]:.1f}" for t in (50, 150, last)]
        said.append(f"{method} {' / '.join(marks)}")
    return "Accuracy after 50 / 150 / all rounds: " + "; ".join(said) + "."


_MAKERS: dict[str, tuple[Callable[..., list[Row]], Callable[[Sequence[Row]], str]]] = {
    "fig2": (clients, _say_clients),
    "fig3": (regrets, _say_regrets),
    "fig4": (accuracy_curves, _say_curves),
    "ablation": (readings, _say_accuracies),
    "regimes": (regimes, _say_regimes),
    "border": (bounded, _say_accuracies),
}
"""For an exhibit, what makes its rows and what describes them; the others show accuracies."""


def _of(exhibit: Exhibit) -> tuple[Callable[..., list[Row]], Callable[[Sequence[Row]], str]]:
    return _MAKERS.get(exhibit.name, (accuracies, _say_accuracies))
