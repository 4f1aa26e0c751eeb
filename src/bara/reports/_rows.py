"""Tables of a comparison as rows of text, for the terminal, for pages and for files."""

import math
from collections.abc import Sequence

from bara.experiments.frontier import Frontier
from bara.experiments.results import Result
from bara.experiments.statistics import Estimate, estimate, holm, paired, significance


def show_estimate(value: Estimate | None, *, signed: bool = False) -> str:
    """A fraction as people read it: per cent, with half of its interval."""
    if value is None:
        return ""
    margin = "" if value.margin is None else f" ± {100 * value.margin:.1f}"
    return f"{100 * value.mean:{'+' if signed else ''}.1f}{margin}"


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
    money = [f"{100 * share:g} %" for share in frontier.shares]
    rows = [["allocator", *money, f"needed for {100 * frontier.goal:.1f} %", "95 % interval"]]
    for name in frontier.names:
        found = frontier.needed(name)
        ends = () if found.low is None or found.high is None else (found.low, found.high)
        between = " to ".join(dict.fromkeys(show_share(end, frontier) for end in ends))
        accuracies = [show_estimate(frontier.accuracy(name, share)) for share in frontier.shares]
        rows.append([name, *accuracies, show_share(found.share, frontier), between])
    return rows


def comparison_rows(results: Sequence[Result]) -> list[list[str]]:
    """Allocators side by side, a head first; differences are paired by seed, against the first, p-values after Holm."""
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        groups.setdefault(result.name, {})[result.seed] = result
    selected = any(result.kept != "final" for result in results)
    shown = (
        {"kept": "accuracy_kept", "final": "accuracy_final"}
        if selected
        else {"final": "accuracy_final", "last 10": "accuracy_last10"}
    )
    first = _taken_home(next(iter(groups.values()), {}))
    tested = holm([_test(_taken_home(runs), first) if rank else None for rank, runs in enumerate(groups.values())])
    lying = any(result.lying for result in results)
    p = ["p"] if any(value is not None for value in tested) else []
    rows = [["allocator", *shown, "vs first", *p, "spent", "rounds", *(["lying"] if lying else [])]]
    for rank, (allocator, runs) in enumerate(groups.items()):
        row = [
            allocator,
            *(show_estimate(estimate([getattr(result, key) for result in runs.values()])) for key in shown.values()),
            show_estimate(paired(_taken_home(runs), first), signed=True) if rank else "",
            *(show_p(tested[rank]) for _ in p),
            f"{estimate([result.spent for result in runs.values()]).mean:,.1f}",
            f"{estimate([result.rounds for result in runs.values()]).mean:.0f}",
        ]
        if lying:
            gains = [result.lying["gain"] for result in runs.values() if result.lying]
            row.append(f"{estimate(gains).mean:+,.2f}" if gains else "")
        rows.append(row)
    return rows


def _taken_home(runs: dict[int, Result]) -> dict[int, float]:
    """Accuracies of the models that one takes home."""
    return {seed: result.accuracy_kept for seed, result in runs.items()}


def _test(final: dict[int, float], first: dict[int, float]) -> float | None:
    return significance([final[seed] - first[seed] for seed in final if seed in first])
