"""How long a grid of runs is going to take, tried out before it starts.

A run takes its rounds times what a round costs whoever takes part, its clients' turns times what
training one costs, and what its allocator thinks. The first two are timed in each setting, in two
short runs with few and many clients; how many rounds and turns an allocator plays, and how long it
thinks, is rehearsed on the synthetic federation, in the same market.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from joblib import Parallel, cpu_count, delayed

from bara.records import AwardedRound, RoundRecord
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.studies.grid import Cell, check_jobs

_TRIED = 3
"""Rounds that a setting is tried for with each number of clients; the first warms up, the fastest other one counts:
what else the machine does for a moment would be multiplied by hours."""


@dataclass(frozen=True)
class Pace:
    """Seconds that a setting takes for a round, and for each client that trains in it."""

    round: float
    client: float


@dataclass(frozen=True)
class Rehearsal:
    """How many rounds a run plays, how many times a client trains in them, and seconds of thought."""

    rounds: int
    turns: int
    seconds: float


def pace_of(config: Config) -> Pace:
    """Time a setting with a fifth and with three fifths of its clients."""
    few, many = (max(round(share * config.clients.count), 1) for share in (0.2, 0.6))
    if few == many:
        return Pace(_seconds_a_round(config, few), 0.0)
    with_few, with_many = (_seconds_a_round(config, n) for n in (few, many))
    client = max(with_many - with_few, 0.0) / (many - few)
    return Pace(max(with_few - few * client, 0.0), client)


def _seconds_a_round(config: Config, n: int) -> float:
    budget = config.budget.model_copy(update={"max_rounds": _TRIED})
    short = config.with_allocator(f"fixed:n={n}:shortfall=shrink", config.seed)
    settled: list[float] = []

    def watch(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord):
            settled.append(time.perf_counter())

    play_run(short.model_copy(update={"budget": budget}), watch)
    return min((end - start for start, end in pairwise(settled[1:])), default=0.0)


def rehearse(config: Config) -> Rehearsal:
    """Play a configuration's market and allocator where nobody trains."""
    clients = {"count": config.clients.count, "bids": config.clients.bids}
    empty = Config.parse(
        {"clients": clients, "federation": {"engine": "synthetic"}, "seed": config.seed}
    )
    started = time.perf_counter()
    played = play_run(
        empty.model_copy(update={"budget": config.budget, "allocator": config.allocator})
    )
    turns = sum(entry["n"] for entry in played.history)
    return Rehearsal(played.rounds, turns, time.perf_counter() - started)


def expected_seconds(
    grid: Sequence[Cell],
    jobs: int,
    pace: Callable[[Config], Pace] = pace_of,
    rehearsal: Callable[[Config], Rehearsal] = rehearse,
) -> dict[str, float]:
    """For each setting of a grid, how long its runs take on so many processes (-1 for all cores).

    Settings are tried side by side, as the runs will be: processes that share a memory slow each
    other down. Allocators are rehearsed once for each market, a market being a budget, a deadline
    and a number of clients.
    """
    check_jobs(jobs)
    settings = {cell.setting or "": cell.config for cell in grid}
    markets = {_market(cell.config): cell.config for cell in grid}
    paces = dict(
        zip(settings, Parallel(n_jobs=jobs)(map(delayed(pace), settings.values())), strict=True)
    )
    known = dict(
        zip(markets, Parallel(n_jobs=jobs)(map(delayed(rehearsal), markets.values())), strict=True)
    )
    processes = cpu_count() if jobs < 0 else jobs
    seconds = dict.fromkeys(settings, 0.0)
    for cell in grid:
        at, played = paces[cell.setting or ""], known[_market(cell.config)]
        alone = played.rounds * at.round + played.turns * at.client + played.seconds
        seconds[cell.setting or ""] += alone / processes
    return seconds


def _market(config: Config) -> tuple[str, str, int, int]:
    return (
        config.allocator.label,
        str(config.budget.total),
        config.budget.max_rounds,
        config.clients.count,
    )
