"""Runs one experiment, from its beginning or from where its books say it stopped."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from bara.allocators import ALLOCATORS
from bara.experiments.config import Config
from bara.experiments.factory import build_federation
from bara.experiments.privacy_accounting import PrivacyAccount
from bara.experiments.results import Result, Summary
from bara.federations.bidding import Bidders
from bara.ledger import Books
from bara.market import Market
from bara.mechanisms import MECHANISMS
from bara.mechanisms.client_cap import ClientCap
from bara.protocols import Allocator, Believer, Federation, Mechanism, requirements_of
from bara.records import AwardedRound, RoundRecord, decimal_money, money
from bara.session import sit

Observer = Callable[[AwardedRound | RoundRecord], None]
"""Is shown each round as awarded and as settled."""


@runtime_checkable
class Keeps(Protocol):
    """A federation that keeps models beside the final one."""

    def finish(self) -> dict[str, dict[str, float]]:
        """Save them, and say how good each is."""
        ...


def run(
    config: Config,
    *observers: Observer,
    folder: Path | None = None,
    books: Callable[[], Books] | None = None,
    federation: Federation | None = None,
) -> Result:
    """Play a configuration's federation to its end.

    Args:
        config: What to run.
        *observers: Shown each step, after it is in the books.
        folder: Where models and checkpoints go; None to keep none.
        books: Opens the run's books, once everything else is known to be in order; None to keep none. Rounds that
            they hold already are not played again but rebuilt.
        federation: Who bids and trains; None for the one the configuration names.
    """
    allocator, mechanism = build_allocator(config), build_mechanism(config)
    with contextlib.ExitStack() as stack:
        federation = federation or build_federation(config, folder)
        if isinstance(federation, contextlib.AbstractContextManager):
            stack.enter_context(federation)
        summary = Summary(_bidders(config, federation))
        account = PrivacyAccount() if requirements_of(mechanism).protection else None

        def watch(record: RoundRecord) -> None:
            summary.tell(record)
            if account is not None:
                account.tell(record)

        if books is None:
            market = Market(allocator, mechanism, federation, config.purse())
            steps = _watched(market, watch)
        else:
            market, play = sit(books(), allocator, mechanism, federation)
            steps = play(watch)
        for step in steps:
            for observe in observers:
                observe(step)
        models = federation.finish() if isinstance(federation, Keeps) else {}
    privacy = None if account is None else account.spent()
    belief = allocator.belief() if isinstance(allocator, Believer) else None
    result = summary.result(market.ended or "", belief, models=models, privacy=privacy, **_identity(config))
    return _with_lying(config, summary, result)


def _watched(market: Market, watch: Callable[[RoundRecord], None]) -> Iterator[AwardedRound | RoundRecord]:
    for step in market.rounds():
        if isinstance(step, RoundRecord):
            watch(step)
        yield step


def build_allocator(config: Config) -> Allocator:
    """The allocator a configuration names."""
    return ALLOCATORS.build(
        config.allocator.name, config.allocator.options, clients=config.clients.count, seed=config.seed
    )


def build_mechanism(config: Config) -> Mechanism:
    """The mechanism a configuration names, with the cap a client has."""
    mechanism = MECHANISMS.build(config.mechanism.name, config.mechanism.options)
    cap = config.ledger.client_cap
    return mechanism if cap is None else ClientCap(mechanism, money(cap))


def _identity(config: Config) -> dict[str, object]:
    return {
        "allocator": config.allocator.label,
        "mechanism": config.mechanism.label,
        "dataset": config.dataset,
        "seed": config.seed,
        "clients": config.clients.count,
    }


def _bidders(config: Config, federation: Federation) -> Bidders | None:
    """The bidders, where some of them are strategic and the federation lets us see."""
    bidders = getattr(federation, "bidders", None)
    return bidders if config.clients.strategic and isinstance(bidders, Bidders) else None


def _with_lying(config: Config, summary: Summary, result: Result) -> Result:
    """Add what the strategic clients earned, beside what the same clients earn when they ask their cost instead."""
    if summary.bidders is None:
        return result
    honest = config.model_copy(update={"clients": config.clients.model_copy(update={"strategic": 0})})
    twin = Summary(summary.bidders)
    run(honest, lambda step: twin.tell(step) if isinstance(step, RoundRecord) else None)
    earned = {"profit": decimal_money(summary.profit), "truthful_profit": decimal_money(twin.profit)}
    return replace(result, lying={**earned, "gain": decimal_money(summary.profit - twin.profit)})
