"""The tables of a comparison as rows of text, for the terminal, for pages and for files."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from bara.records import tell_money
from bara.reports.baselines import baselines
from bara.reports.comparison import Comparison, Failure, label
from bara.reports.frontier import Frontier
from bara.reports.result import Result, measure_of, short_key, varied_keys
from bara.reports.standings import Standings
from bara.reports.statistics import (
    FEWEST,
    Estimate,
    differences,
    estimate,
    holm,
    paired,
    significance,
)
from bara.text import counted, headline

_INTERVALS = "mean ± half of the 95 % interval ([low, high] where that leaves the scale)"
"""The description of the accuracies in tables."""


class Best(str):
    """A cell that holds the best of its column or row."""

    __slots__ = ()


def show_estimate(value: Estimate | None, *, signed: bool = False) -> str:
    """Show a fraction in per cent, with half of its interval; "" for None.

    Where the interval goes beyond the possible values, both ends are shown instead, clipped.

    Args:
        value: The fraction, or the difference of two.
        signed: True for a difference, which may be negative and always shows its sign.

    >>> show_estimate(Estimate(0.78, 0.031, 5)), show_estimate(Estimate(0.78, 1.392, 2))
    ('78.0 ± 3.1', '78.0 [0, 100]')
    """
    if value is None:
        return ""
    sign, least = ("+", -1) if signed else ("", 0)
    shown = f"{round(100 * value.mean, 1) + 0.0:{sign}.1f}"  # + 0.0 turns -0.0 into 0.0
    if value.margin is None:
        return shown
    if value.mean - value.margin >= least and value.mean + value.margin <= 1:
        return f"{shown} ± {100 * value.margin:.1f}"
    ends = [f"{100 * end:{sign}.1f}".removesuffix(".0") for end in value.within(least, 1)]
    return f"{shown} [{', '.join(ends)}]"


def show_p(value: float | None) -> str:
    """Show a p-value with two digits; "" for None.

    >>> show_p(0.0432), show_p(0.00001), show_p(None)
    ('0.043', '<0.001', '')
    """
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def show_share(share: float, frontier: Frontier) -> str:
    """Show a share of the budget, and where the frontier ends before reaching it.

    Args:
        share: The share; infinity if no share that was tried suffices.
        frontier: The frontier that the share was found on.
    """
    if math.isinf(share):
        return f"more than {100 * frontier.shares[-1]:g} %"
    if share == frontier.shares[0]:
        return f"at most {100 * share:.3g} %"
    return f"{100 * share:.3g} %"


def frontier_rows(frontier: Frontier) -> list[list[str]]:
    """Return a head, then for each allocator the accuracy per share and the share it needs."""
    shares = [f"{100 * share:.3g} %" for share in frontier.shares]
    rows = [["allocator", *shares, f"needed for {100 * frontier.goal:.1f} %", "95 % interval"]]
    for name in frontier.names:
        accuracies = [show_estimate(frontier.accuracy(name, share)) for share in frontier.shares]
        found = frontier.needed(name)
        interval = ""
        if found.low is not None and found.high is not None:
            low = show_share(found.low, frontier)
            high = show_share(found.high, frontier)
            interval = low if low == high else f"{low} to {high}"
        rows.append([name, *accuracies, show_share(found.share, frontier), interval])
    return rows


def comparison_rows(results: Sequence[Result], against: str = "") -> list[list[str]]:
    """Return a head, then allocators side by side; differences are paired by seed, p after Holm.

    What else was varied has columns of its own; the allocator has none if it is always the same.

    Args:
        results: The runs in the table.
        against: What each line is measured against, as for `baselines`.
    """
    groups = _by_name(results)
    varied = varied_keys(results)
    tuned: dict[str, None] = {}
    for result in results:
        tuned |= dict.fromkeys(result.tuned)
    one_allocator = bool(varied) and len({result.allocator for result in results}) == 1
    shown = {"final": "accuracy_final", "last 10": "accuracy_last10"}
    if any(result.kept != "final" for result in results):
        shown = {"kept": "accuracy_kept", "final": "accuracy_final"}
    firsts = _firsts(groups, baselines(results, against))
    p_values = _p_values(groups, firsts)
    tested = any(value is not None for value in p_values.values())
    lying = any(result.lying for result in results)

    head = [] if one_allocator else ["allocator"]
    head += map(short_key, varied)
    head += [f"{short_key(key)}, tuned" for key in tuned]
    head += [*shown, versus(against)]
    if tested:
        head.append("p")
    head += ["spent", "rounds"]
    if lying:
        head.append("lying")

    means = {name: fmean(_taken_home(runs).values()) for name, runs in groups.items()}
    best = max(means.values()) if len(groups) > 1 else None
    rows = [head]
    for name, by_seed in groups.items():
        runs = list(by_seed.values())
        row = [] if one_allocator else [runs[0].allocator]
        row += [str(runs[0].varied.get(key, "")) for key in varied]
        row += [str(runs[0].tuned.get(key, "")) for key in tuned]
        accuracies = []
        for attribute in shown.values():
            found = estimate([getattr(run, attribute) for run in runs])
            accuracies.append(show_estimate(found))
        if means[name] == best:
            accuracies[0] = Best(accuracies[0])
        row += accuracies
        row.append(show_estimate(_difference(by_seed, firsts.get(name, {})), signed=True))
        if tested:
            row.append(show_p(p_values.get(name)))
        row += [_mean_spent(runs), f"{fmean(run.rounds for run in runs):.0f}"]
        if lying:
            row.append(_mean_lying(runs))
        rows.append(row)
    return rows


class Compared(NamedTuple):
    """A line of a table of allocators: its accuracy, and its difference from another line.

    Attributes:
        name: The allocator, with what else was varied.
        accuracy: The accuracy of the kept model.
        first: The line that it is compared with; None if others are compared with it.
        difference: Its accuracy less that of the other line, paired by seed.
    """

    name: str
    accuracy: Estimate
    first: str | None
    difference: Estimate | None


def compared(results: Sequence[Result], against: str = "") -> list[Compared]:
    """Return what the table of `comparison_rows` compares, as numbers."""
    groups = _by_name(results)
    measured = baselines(results, against)
    firsts = _firsts(groups, measured)
    lines = []
    for name, by_seed in groups.items():
        accuracy = estimate(list(_taken_home(by_seed).values()))
        difference = _difference(by_seed, firsts.get(name, {}))
        lines.append(Compared(name, accuracy, measured.get(name), difference))
    return lines


def _by_name(results: Sequence[Result]) -> dict[str, dict[int, Result]]:
    """Group runs by what is compared, each by seed."""
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        groups.setdefault(result.name, {})[result.seed] = result
    return groups


def _firsts(
    groups: Mapping[str, dict[int, Result]], measured: Mapping[str, str]
) -> dict[str, dict[int, Result]]:
    """Return the runs that each line is measured against, by its name; none for a baseline."""
    return {name: groups[measured[name]] for name in groups if name in measured}


def _p_values(
    groups: dict[str, dict[int, Result]], firsts: dict[str, dict[int, Result]]
) -> dict[str, float | None]:
    """Test each line against its first, corrected for the number of comparisons."""
    tests = [_test(groups[name], first) for name, first in firsts.items()]
    return dict(zip(firsts, holm(tests), strict=True))


def _mean_spent(runs: Sequence[Result]) -> str:
    mean = fmean(run.spent for run in runs)
    currency = runs[0].currency
    return tell_money(mean, currency) if currency else f"{mean:,.1f}"


def _mean_lying(runs: Sequence[Result]) -> str:
    """Show what strategic clients earned by lying, on average; "" if nobody was strategic."""
    gains = [run.lying["gain"] for run in runs if run.lying]
    if not gains:
        return ""
    mean = fmean(gains)
    shown = tell_money(mean, runs[0].currency)
    return f"+{shown}" if mean >= 0 else shown


def suite_rows(standings: Standings) -> list[list[str]]:
    """Return settings down, allocators across, best marked; below, each allocator's standing."""
    rows = [["setting", *standings.allocators]]
    for setting in standings.settings:
        finals = []
        for allocator in standings.allocators:
            by_seed = standings.final(setting.name, allocator)
            finals.append(estimate(list(by_seed.values())))
        best = max(final.mean for final in finals)
        row = [setting.name]
        for final in finals:
            shown = show_estimate(final)
            row.append(Best(shown) if final.mean == best else shown)
        rows.append(row)
    mean = ["mean"]
    last10 = ["mean, last 10 rounds"]
    gain = [f"minus {standings.baseline}"]
    error_removed = ["of its error, per cent"]
    over_rivals = ["minus the best rival"]
    for allocator in standings.allocators:
        one = standings.of(allocator)
        mean.append(f"{100 * one.final:.1f}")
        last10.append(f"{100 * one.last10:.1f}")
        gain.append(show_estimate(one.gain, signed=True))
        error_removed.append(f"{100 * (one.error_removed or 0):+.1f}")
        over_rivals.append(show_estimate(one.over_rivals, signed=True))
    return [*rows, mean, last10, gain, error_removed, over_rivals]


def versus(against: str) -> str:
    """Return the head of the column of differences."""
    return f"vs {against}" if against else "vs first"


def explain_against(results: Sequence[Result], against: str) -> str:
    """Explain the column of differences where it is not against the table's first line."""
    if against:
        if against in {one.name for one in results if one.varied}:
            return ""
        return f' "{versus(against)}": with everything else equal.'
    allocators = list(dict.fromkeys(one.allocator for one in results))
    variants = {one.variant for one in results}
    if len(allocators) < 2 or len(variants) < 2:
        return ""
    return f' "vs first" is against {allocators[0]} with everything else equal.'


def explain_names(names: Iterable[str]) -> str:
    """Tell the allocator `bara` from this program and from the paper, where a table names it.

    >>> explain_names(["even", "planner"]), explain_names(["bara:preset=paper"])[:25]
    ('', ' "bara" is the allocator:')
    """
    if any(re.match(r"bara\b", name) for name in names):
        return ' "bara" is the allocator: BARA, the paper\'s algorithm, as this program reads it.'
    return ""


def comparison_note(
    results: Sequence[Result],
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    against: str = "",
) -> str:
    """Explain the numbers of a table of allocators side by side.

    Args:
        results: The runs in the table.
        head: The names of its columns.
        rows: Its rows without the head.
        against: What each line is measured against, as for `baselines`.
    """
    seeds = len({result.seed for result in results})
    over = f" over {seeds} paired seeds" if seeds > 1 else ""
    note = f"{headline(measure_of(results))} in per cent, {_INTERVALS}{over}."
    note += explain_against(results, against)
    if "kept" in head and len(rows) > 1:
        note += " Differences are of the kept model."
    if "p" in head:
        note += " p: paired t-test, corrected for how many are compared (Holm)."
    elif seeds < FEWEST and len(rows) > 1:
        note += f" With fewer than {FEWEST} seeds nothing is tested."
    if "lying" in head:
        note += " Lying: what the strategic clients earned beyond asking their cost."
    return note + explain_names(result.allocator for result in results)


def frontier_note(frontier: Frontier) -> str:
    """Explain the numbers of a frontier's table."""
    budget = "the budget"
    if frontier.whole is not None:
        budget += f" of {tell_money(frontier.whole).removesuffix('.00')}"
    return (
        f"{headline(frontier.measure)} of the kept model in per cent for each part of {budget}, "
        f"{_INTERVALS}. Needed: which part reaches what {frontier.baseline} reaches with "
        f"{100 * frontier.full:.3g} % of it.{explain_names(frontier.names)}"
    )


def suite_note(standings: Standings) -> str:
    """Explain the numbers of a suite's table."""
    return (
        f"{headline(standings.measure)} of the kept model in per cent, {_INTERVALS} over paired "
        "seeds. The part of the error is over settings that are not IID; the best rival is another "
        "allocator, chosen in each setting in hindsight."
        f"{explain_names(standings.allocators)}"
    )


def explain_failures(failures: Sequence[Failure]) -> str:
    """Say what is missing in a table because its runs failed; "" where none did."""
    if not failures:
        return ""
    first, *others = failures
    told = f" Missing, because it failed: {label(first)} ({first.error})"
    if others:
        told += f", and {counted(len(others), 'more run')}"
    return f"{told}."


def note_of(comparison: Comparison) -> str:
    """Explain the numbers of a comparison's main table, the one that `rows_of` returns."""
    missing = explain_failures(comparison.failures)
    if comparison.frontier is not None:
        return frontier_note(comparison.frontier) + missing
    if comparison.standings is not None:
        return suite_note(comparison.standings) + missing
    head, *rows = comparison_rows(comparison.results, comparison.against)
    note = comparison_note(comparison.results, head, rows, comparison.against)
    return note + missing


def words(head: Sequence[str]) -> int:
    """Return how many columns of a table describe its rows, before the first accuracy."""
    for place, name in enumerate(head):
        if name in {"kept", "final"}:
            return place
    return 1


def rows_of(comparison: Comparison) -> list[list[str]]:
    """Return a comparison's main table: the frontier, the suite, or allocators side by side."""
    if comparison.frontier is not None:
        return frontier_rows(comparison.frontier)
    if comparison.standings is not None:
        return suite_rows(comparison.standings)
    return comparison_rows(comparison.results, comparison.against)


def _taken_home(runs: dict[int, Result]) -> dict[int, float]:
    """Return the accuracies of the kept models, by seed."""
    return {seed: result.accuracy_kept for seed, result in runs.items()}


def _difference(runs: dict[int, Result], first: dict[int, Result]) -> Estimate | None:
    return paired(_taken_home(runs), _taken_home(first))


def _test(runs: dict[int, Result], first: dict[int, Result]) -> float | None:
    return significance(differences(_taken_home(runs), _taken_home(first)))
