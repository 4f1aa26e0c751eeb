"""What keeps a run from being better: the deadline, the money, the cap per client, or how many clients there are."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from bara.records import decimal_money, money
from bara.reports.result import Result
from bara.runs.config import Config

MOST = 0.95
"""The part of the money from which on it counts as used up."""

EVERYBODY = 0.85
"""The part of the clients that can be recruited from which on nearly everybody is: some fail, and back off."""


def what_binds(runs: Sequence[Result], config: Config) -> str:
    """The limit that most of these runs came up against, in words."""
    return Counter(_limit(run, config) for run in runs).most_common(1)[0][0]


def _limit(run: Result, config: Config) -> str:
    recruited, cap = [entry["n"] for entry in run.history[1:]], config.ledger.client_cap
    if cap is not None and _is_used_up(run, decimal_money(money(cap))):
        return "the cap per client"
    usual = median(recruited) if recruited else 0
    if run.spent >= MOST * run.budget or run.ended.startswith("the money") or not usual:
        return "the money"
    if run.rounds < config.budget.max_rounds:
        return run.ended if config.budget.goal.name is None else f"the {config.budget.goal.name}"
    return "the number of clients" if usual >= EVERYBODY * (run.clients - 1) else "the deadline"


def _is_used_up(run: Result, cap: float) -> bool:
    """Whether clients have, on average, less left of their caps than one payment usually was."""
    paid = sum(entry["n"] for entry in run.history)
    return bool(paid) and cap * run.clients - run.spent < run.clients * run.spent / paid
