"""Tables of a comparison as rows of text, for the terminal, for pages and for files."""

from collections.abc import Sequence

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


def comparison_rows(results: Sequence[Result]) -> list[list[str]]:
    """Allocators side by side, a head first; differences are paired by seed, against the first, p-values after Holm."""
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        groups.setdefault(result.allocator, {})[result.seed] = result
    first = _finals(next(iter(groups.values()), {}))
    tested = holm([_test(_finals(runs), first) if rank else None for rank, runs in enumerate(groups.values())])
    lying = any(result.lying for result in results)
    rows = [["allocator", "final", "last 10", "vs first", "p", "spent", "rounds", *(["lying"] if lying else [])]]
    for rank, (allocator, runs) in enumerate(groups.items()):
        row = [
            allocator,
            show_estimate(estimate(list(_finals(runs).values()))),
            show_estimate(estimate([result.accuracy_last10 for result in runs.values()])),
            show_estimate(paired(_finals(runs), first), signed=True) if rank else "",
            show_p(tested[rank]),
            f"{estimate([result.spent for result in runs.values()]).mean:,.1f}",
            f"{estimate([result.rounds for result in runs.values()]).mean:.0f}",
        ]
        if lying:
            gains = [result.lying["gain"] for result in runs.values() if result.lying]
            row.append(f"{estimate(gains).mean:+,.2f}" if gains else "")
        rows.append(row)
    return rows


def _finals(runs: dict[int, Result]) -> dict[int, float]:
    return {seed: result.accuracy_final for seed, result in runs.items()}


def _test(final: dict[int, float], first: dict[int, float]) -> float | None:
    return significance([final[seed] - first[seed] for seed in final if seed in first])
