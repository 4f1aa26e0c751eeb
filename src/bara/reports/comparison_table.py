"""Tables of a comparison as rows of text, for the terminal, for pages and for files."""

import math
from collections.abc import Sequence
from statistics import fmean

from bara.records import tell_money
from bara.reports.charts import headline
from bara.reports.comparison import Comparison
from bara.reports.frontier import Frontier
from bara.reports.result import Result, measure_of, short_key
from bara.reports.statistics import FEWEST, Estimate, estimate, holm, paired, significance
from bara.reports.standings import Standings

_INTERVALS = "mean ± half of the 95 % interval ([low, high] where that leaves the scale)"
"""What accuracies in tables are."""


class Best(str):
    """A cell that holds the best of its column or row."""

    __slots__ = ()


def show_estimate(value: Estimate | None, *, signed: bool = False) -> str:
    """A fraction, or a difference of two, as people read it: per cent, with half of its interval.

    Where the interval goes beyond what there can be, both ends are shown instead, as far as they
    mean something.

    >>> show_estimate(Estimate(0.78, 0.031, 5)), show_estimate(Estimate(0.78, 1.392, 2))
    ('78.0 ± 3.1', '78.0 [0, 100]')
    """
    if value is None:
        return ""
    sign, least = ("+", -1) if signed else ("", 0)
    shown = f"{round(100 * value.mean, 1) + 0.0:{sign}.1f}"  # 0.0 is never negative
    if value.margin is None:
        return shown
    low, high = value.within(least, 1)
    if value.mean - value.margin >= least and value.mean + value.margin <= 1:
        return f"{shown} ± {100 * value.margin:.1f}"
    return f"{shown} [{100 * low:{sign}.3g}, {100 * high:{sign}.3g}]"


def show_p(value: float | None) -> str:
    """A p-value with as many digits as it deserves.

    >>> show_p(0.0432), show_p(0.00001), show_p(None)
    ('0.043', '<0.001', '')
    """
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def show_share(share: float, frontier: Frontier) -> str:
    """A part of the budget as people read it, and where the search for it ended."""
    if math.isinf(share):
        return f"more than {100 * frontier.shares[-1]:g} %"
    return f"{'at most ' if share == frontier.shares[0] else ''}{100 * share:.3g} %"


def frontier_rows(frontier: Frontier) -> list[list[str]]:
    """Accuracy for each part of the budget, a head first, and what the baseline's accuracy costs each."""
    money = [f"{100 * share:.3g} %" for share in frontier.shares]
    rows = [["allocator", *money, f"needed for {100 * frontier.goal:.1f} %", "95 % interval"]]
    for name in frontier.names:
        found = frontier.needed(name)
        ends = () if found.low is None or found.high is None else (found.low, found.high)
        between = " to ".join(dict.fromkeys(show_share(end, frontier) for end in ends))
        accuracies = [show_estimate(frontier.accuracy(name, share)) for share in frontier.shares]
        rows.append([name, *accuracies, show_share(found.share, frontier), between])
    return rows


def comparison_rows(results: Sequence[Result]) -> list[list[str]]:
    """Allocators side by side, a head first; differences are paired by seed, p-values after Holm.

    What else was varied has a column of its own, and the allocator has none where it is always the
    same. "vs first" is against the first allocator with everything else equal, or against the first
    line where there is one allocator.
    """
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        groups.setdefault(result.name, {})[result.seed] = result
    varied = list(dict.fromkeys(key for result in results for key in result.varied))
    same = bool(varied) and len({result.allocator for result in results}) == 1
    selected = any(result.kept != "final" for result in results)
    shown = (
        {"kept": "accuracy_kept", "final": "accuracy_final"}
        if selected
        else {"final": "accuracy_final", "last 10": "accuracy_last10"}
    )
    variants = {name: None if same else runs[min(runs)].variant for name, runs in groups.items()}
    leaders = {variant: name for name, variant in reversed(variants.items())}
    firsts = {name: groups[leaders[one]] for name, one in variants.items() if leaders[one] != name}
    tested = dict(
        zip(
            firsts,
            holm([_test(groups[name], first) for name, first in firsts.items()]),
            strict=True,
        )
    )
    lying = any(result.lying for result in results)
    p = ["p"] if any(value is not None for value in tested.values()) else []
    whose = [*([] if same else ["allocator"]), *map(short_key, varied)]
    rows = [[*whose, *shown, "vs first", *p, "spent", "rounds", *(["lying"] if lying else [])]]
    best = (
        max(fmean(_taken_home(runs).values()) for runs in groups.values())
        if len(groups) > 1
        else None
    )
    for name, runs in groups.items():
        one = next(iter(runs.values()))
        accuracies = [
            show_estimate(estimate([getattr(result, key) for result in runs.values()]))
            for key in shown.values()
        ]
        if fmean(_taken_home(runs).values()) == best:
            accuracies[0] = Best(accuracies[0])
        row = [
            *([] if same else [one.allocator]),
            *(str(one.varied.get(key, "")) for key in varied),
            *accuracies,
            show_estimate(_difference(runs, firsts.get(name, {})), signed=True),
            *(show_p(tested.get(name)) for _ in p),
            _mean_spent(list(runs.values())),
            f"{estimate([result.rounds for result in runs.values()]).mean:.0f}",
        ]
        if lying:
            gains = [result.lying["gain"] for result in runs.values() if result.lying]
            row.append(
                f"{'+' * (fmean(gains) >= 0)}{tell_money(fmean(gains), one.currency)}"
                if gains
                else ""
            )
        rows.append(row)
    return rows


def _mean_spent(runs: Sequence[Result]) -> str:
    mean, currency = fmean(run.spent for run in runs), runs[0].currency
    return tell_money(mean, currency) if currency else f"{mean:,.1f}"


def suite_rows(standings: Standings) -> list[list[str]]:
    """Settings down, allocators across, the best of each setting marked; below, where each allocator stands."""
    rows = [["setting", *standings.allocators]]
    for setting in standings.settings:
        finals = [
            estimate(list(standings.final(setting.name, one).values()))
            for one in standings.allocators
        ]
        best = max(final.mean for final in finals)
        shown = [
            Best(show_estimate(one)) if one.mean == best else show_estimate(one) for one in finals
        ]
        rows.append([setting.name, *shown])
    every = [standings.of(allocator) for allocator in standings.allocators]
    rows.append(["mean", *(f"{100 * one.final:.1f}" for one in every)])
    rows.append(["mean, last 10 rounds", *(f"{100 * one.last10:.1f}" for one in every)])
    rows.append(
        [f"less {standings.baseline}", *(show_estimate(one.gain, signed=True) for one in every)]
    )
    rows.append(
        ["of its error, per cent", *(f"{100 * (one.error_removed or 0):+.1f}" for one in every)]
    )
    rows.append(
        ["less the best rival", *(show_estimate(one.over_rivals, signed=True) for one in every)]
    )
    return rows


def explain_first(results: Sequence[Result]) -> str:
    """What "vs first" is against, where that is not the table's first line."""
    allocators, variants = (
        {getattr(one, key): None for one in results} for key in ("allocator", "variant")
    )
    if min(len(allocators), len(variants)) < 2:
        return ""
    return f' "vs first" is against {next(iter(allocators))} with everything else equal.'


def comparison_note(
    results: Sequence[Result], head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """What the numbers of allocators side by side are, in words."""
    seeds = len({result.seed for result in results})
    over = f" over {seeds} paired seeds" if seeds > 1 else ""
    note = (
        f"{headline(measure_of(results))} in per cent, {_INTERVALS}{over}.{explain_first(results)}"
    )
    if "kept" in head and len(rows) > 1:
        note += " Differences are of the kept model."
    if "p" in head:
        note += " p: paired t-test, corrected for how many are compared (Holm)."
    elif seeds < FEWEST and len(rows) > 1:
        note += f" With fewer than {FEWEST} seeds nothing is tested."
    if "lying" in head:
        note += " Lying: what the strategic clients earned beyond asking their cost."
    return note


def frontier_note(frontier: Frontier) -> str:
    """What the numbers of a frontier are, in words."""
    budget = (
        "the budget"
        if frontier.whole is None
        else f"the budget of {tell_money(frontier.whole).removesuffix('.00')}"
    )
    return (
        f"{headline(frontier.measure)} of the kept model in per cent for each part of {budget}, {_INTERVALS}. "
        f"Needed: which part reaches what {frontier.baseline} reaches with {100 * frontier.full:.3g} % of it."
    )


def suite_note(standings: Standings) -> str:
    """What the numbers of a suite are, in words."""
    return (
        f"{headline(standings.measure)} of the kept model in per cent, {_INTERVALS} over paired seeds. The part of the "
        "error is over settings that are not IID; the best rival is another allocator, chosen in each setting in "
        "hindsight."
    )


def note_of(comparison: Comparison) -> str:
    """What the numbers of the table that says the most are, in words."""
    if comparison.frontier is not None:
        return frontier_note(comparison.frontier)
    if comparison.standings is not None:
        return suite_note(comparison.standings)
    head, *rows = comparison_rows(comparison.results)
    return comparison_note(comparison.results, head, rows)


def words(head: Sequence[str]) -> int:
    """How many columns of a table of accuracies say what a row is of, before the numbers."""
    return next((place for place, name in enumerate(head) if name in ("kept", "final")), 1)


def rows_of(comparison: Comparison) -> list[list[str]]:
    """The table that says the most: the frontier, the suite, or allocators side by side."""
    if comparison.frontier is not None:
        return frontier_rows(comparison.frontier)
    return (
        suite_rows(comparison.standings)
        if comparison.standings
        else comparison_rows(comparison.results)
    )


def _taken_home(runs: dict[int, Result]) -> dict[int, float]:
    """Accuracies of the models that one takes home."""
    return {seed: result.accuracy_kept for seed, result in runs.items()}


def _difference(runs: dict[int, Result], first: dict[int, Result]) -> Estimate | None:
    return paired(_taken_home(runs), _taken_home(first))


def _test(runs: dict[int, Result], first: dict[int, Result]) -> float | None:
    own, theirs = _taken_home(runs), _taken_home(first)
    return significance([own[seed] - theirs[seed] for seed in own if seed in theirs])
