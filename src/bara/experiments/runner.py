"""Runs one experiment."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from bara.allocators import ALLOCATORS
from bara.experiments.accounting import privacy_spent
from bara.experiments.config import Config
from bara.experiments.engines import build_federation
from bara.experiments.results import Result, summarise
from bara.federations.bidding import Bidders
from bara.market import Market
from bara.mechanisms import MECHANISMS
from bara.protocols import Allocator, Federation, Mechanism, wishes_of
from bara.records import AwardedRound, RoundRecord, decimal_money

Observer = Callable[[AwardedRound | RoundRecord], None]
"""Is shown each round as awarded and as settled."""


@runtime_checkable
class Keeps(Protocol):
    """A federation that keeps models beside the final one."""

    def finish(self) -> dict[str, dict[str, float]]:
        """Save them, and say how good each is."""
        ...


def run(config: Config, *observers: Observer, folder: Path | None = None) -> Result:
    """Play a configuration's federation to its end; models and checkpoints go into the folder, if one is given."""
    allocator, mechanism = build_allocator(config), build_mechanism(config)
    with contextlib.ExitStack() as stack:
        federation = build_federation(config, folder)
        if isinstance(federation, contextlib.AbstractContextManager):
            stack.enter_context(federation)
        market = Market(allocator, mechanism, federation, config.purse())
        records: list[RoundRecord] = []
        for step in market.rounds():
            for observe in observers:
                observe(step)
            if isinstance(step, RoundRecord):
                records.append(step)
        models = federation.finish() if isinstance(federation, Keeps) else {}
        spent = privacy_spent(records) if wishes_of(mechanism).protection else None
        result = summarise(records, market.ended or "", models=models, privacy=spent, **_identity(config))
    return _with_lying(config, result, records, federation)


def build_allocator(config: Config) -> Allocator:
    """The allocator a configuration names."""
    return ALLOCATORS.build(
        config.allocator.name, config.allocator.options, clients=config.clients.count, seed=config.seed
    )


def build_mechanism(config: Config) -> Mechanism:
    """The mechanism a configuration names."""
    return MECHANISMS.build(config.mechanism.name, config.mechanism.options)


def _identity(config: Config) -> dict[str, object]:
    return {
        "allocator": config.allocator.label,
        "mechanism": config.mechanism.label,
        "dataset": config.dataset,
        "seed": config.seed,
        "clients": config.clients.count,
        "budget": decimal_money(config.purse().total),
    }


def _with_lying(config: Config, result: Result, records: list[RoundRecord], federation: Federation) -> Result:
    """Add what the strategic clients earned, beside what the same clients earn when they ask their cost instead."""
    bidders = getattr(federation, "bidders", None)
    if not config.clients.strategic or not isinstance(bidders, Bidders):
        return result
    honest = config.model_copy(update={"clients": config.clients.model_copy(update={"strategic": 0})})
    twin: list[RoundRecord] = []
    run(honest, lambda step: twin.append(step) if isinstance(step, RoundRecord) else None)
    lying, truthful = (profit(bidders, rounds, bidders.strategic) for rounds in (records, twin))
    earned = {"profit": decimal_money(lying), "truthful_profit": decimal_money(truthful)}
    return replace(result, lying={**earned, "gain": decimal_money(lying - truthful)})


def profit(bidders: Bidders, records: list[RoundRecord], clients: tuple[str, ...]) -> int:
    """Payments less costs of these clients over all rounds they were paid for."""
    earned = 0
    for record in records:
        paid = record.payments
        costs = dict(zip(bidders.clients, bidders.costs(record.round).tolist(), strict=True)) if paid else {}
        earned += sum(paid[client] - costs[client] for client in clients if client in paid)
    return earned
