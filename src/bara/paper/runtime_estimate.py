"""An estimate of how long a grid of runs will take, made before the grid starts.

The time of a run is the sum of three terms: its rounds times the fixed time of a round, its
clients' turns times the time to train one client, and the time that its allocator thinks. The first
two times are measured in each setting, in two short runs with few and many clients. The numbers of
rounds and turns, and the thinking, come from a rehearsal on the synthetic federation in the same
market.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from joblib import Parallel, cpu_count, delayed

from bara.records import AwardedRound, RoundRecord
from bara.reports.frames import column
from bara.runs.config import Config
from bara.runs.engines import SYNTHETIC
from bara.runs.play import play_run
from bara.studies.grid import Cell, check_jobs

_TRIED = 3
"""The rounds that a setting is tried for with each number of clients.

The first warms up and the fastest other one counts: whatever else the machine does for a moment
would otherwise be multiplied by hours.
"""


@dataclass(frozen=True)
class Pace:
    """The speed of a setting.

    Attributes:
        round: The seconds of a round, apart from training.
        client: The seconds of training for each client in a round.
    """

    round: float
    client: float


@dataclass(frozen=True)
class Rehearsal:
    """The length of a run, from a rehearsal.

    Attributes:
        rounds: The number of rounds.
        turns: The number of times that any client trains.
        seconds: The time that the allocator thinks.
    """

    rounds: int
    turns: int
    seconds: float


def pace_of(config: Config) -> Pace:
    """Time a setting with a fifth and with three fifths of its clients."""
    few = max(round(0.2 * config.clients.count), 1)
    many = max(round(0.6 * config.clients.count), 1)
    with_few = _seconds_a_round(config, few)
    if few == many:
        return Pace(with_few, 0.0)
    with_many = _seconds_a_round(config, many)
    client = max(with_many - with_few, 0.0) / (many - few)
    return Pace(max(with_few - few * client, 0.0), client)


def _seconds_a_round(config: Config, n: int) -> float:
    """Return the time of the fastest of a few rounds with n clients, the first aside."""
    budget = config.budget.model_copy(update={"max_rounds": _TRIED})
    short = config.with_allocator(f"fixed:n={n}:shortfall=shrink", config.seed)
    settled: list[float] = []

    def watch(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord):
            settled.append(time.perf_counter())

    play_run(short.model_copy(update={"budget": budget}), watch)
    return min((end - start for start, end in pairwise(settled[1:])), default=0.0)


def rehearse(config: Config) -> Rehearsal:
    """Play a configuration's market and allocator on a federation in which nobody trains."""
    clients = {"count": config.clients.count, "bids": config.clients.bids}
    empty = Config.parse(
        {"clients": clients, "federation": {"engine": SYNTHETIC}, "seed": config.seed}
    )
    started = time.perf_counter()
    played = play_run(
        empty.model_copy(update={"budget": config.budget, "allocator": config.allocator})
    )
    turns = sum(column(played.history, "n"))
    return Rehearsal(played.rounds, turns, time.perf_counter() - started)


def expected_seconds(
    grid: Sequence[Cell],
    jobs: int,
    pace: Callable[[Config], Pace] = pace_of,
    rehearsal: Callable[[Config], Rehearsal] = rehearse,
) -> dict[str, float]:
    """Return the seconds that the runs of each setting of a grid will take.

    Settings are tried side by side, as the runs will be: processes that share a memory slow each
    other down. Allocators are rehearsed once for each market, a market being a budget, a deadline
    and a number of clients.

    Args:
        grid: The runs.
        jobs: The number of processes; -1 for all cores.
        pace: Measures the speed of a setting.
        rehearsal: Rehearses a run.
    """
    check_jobs(jobs)
    settings = {cell.setting or "": cell.config for cell in grid}
    markets = {_market(cell.config): cell.config for cell in grid}
    timed = Parallel(n_jobs=jobs)(map(delayed(pace), settings.values()))
    paces = dict(zip(settings, timed, strict=True))
    rehearsed = Parallel(n_jobs=jobs)(map(delayed(rehearsal), markets.values()))
    rehearsals = dict(zip(markets, rehearsed, strict=True))
    processes = cpu_count() if jobs < 0 else jobs
    seconds = dict.fromkeys(settings, 0.0)
    for cell in grid:
        at = paces[cell.setting or ""]
        played = rehearsals[_market(cell.config)]
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
