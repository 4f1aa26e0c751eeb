"""How long a grid of runs is going to take, tried out before it starts."""

import time
from collections.abc import Callable, Sequence

from joblib import Parallel, cpu_count, delayed

from bara.experiments.comparison import Cell, check_jobs
from bara.experiments.config import Config
from bara.experiments.runs import run
from bara.records import AwardedRound, RoundRecord

_TRIED = 3
"""Rounds a setting is tried for; the first warms up and does not count."""

_THOUGHT = 40
"""Rounds an allocator is tried for."""


def seconds_a_round(config: Config) -> float:
    """How long a round takes with as many clients as an even share of the budget pays: about what all rounds cost."""
    n = max(round(0.4 * config.clients.count), 1)
    short = config.with_allocator(f"fixed:n={n}:shortfall=shrink", config.seed)
    settled: list[float] = []

    def watch(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord):
            settled.append(time.perf_counter())

    run(short.model_copy(update={"budget": config.budget.model_copy(update={"max_rounds": _TRIED})}), watch)
    return (settled[-1] - settled[1]) / max(len(settled) - 2, 1) if len(settled) > 1 else 0.0


def seconds_of_thought(config: Config) -> float:
    """How long a round takes with this allocator where nobody trains: the time that the allocator needs."""
    alone = Config.parse({"clients": {"count": config.clients.count}, "federation": {"engine": "synthetic"}})
    budget = alone.budget.model_copy(update={"max_rounds": _THOUGHT})
    started = time.perf_counter()
    rounds = run(alone.model_copy(update={"budget": budget, "allocator": config.allocator})).rounds
    return (time.perf_counter() - started) / max(rounds, 1)


def expected_seconds(
    grid: Sequence[Cell],
    jobs: int,
    pace: Callable[[Config], float] = seconds_a_round,
    thought: Callable[[Config], float] = seconds_of_thought,
) -> dict[str, float]:
    """For each setting of a grid, how long its runs take on so many processes (-1 for all cores).

    Settings are tried side by side, as the runs will be: processes that share a memory slow each other down. What an
    allocator needs to decide, which counts where training is short, is tried once for each.
    """
    check_jobs(jobs)
    settings = {cell.setting or "": cell.config for cell in grid}
    paces = dict(zip(settings, Parallel(n_jobs=jobs)(map(delayed(pace), settings.values())), strict=True))
    thoughts = {name: thought(config) for name, config in {c.config.allocator.name: c.config for c in grid}.items()}
    processes = cpu_count() if jobs < 0 else jobs
    seconds = dict.fromkeys(settings, 0.0)
    for cell in grid:
        each = paces[cell.setting or ""] + thoughts[cell.config.allocator.name]
        seconds[cell.setting or ""] += each * cell.config.budget.max_rounds / processes
    return seconds
