"""Checks of what every federation promises, made by training with a few winners."""

import warnings
from collections.abc import Callable
from dataclasses import replace

from bara.allocators import Fixed
from bara.mechanisms import bid_price_first
from bara.protocols import Federation, capabilities_of
from bara.records import Award, Bids, Delivery, Evaluation, Offer, Purse
from bara.testing._allocators import play
from bara.testing._mechanisms import rich
from bara.testing._selection import ContractHint, needs

MakeFederation = Callable[[int], Federation]
"""Takes a seed, returns a new federation."""

_THREE_AT_A_TIME = Fixed(n=3, shortfall="shrink")


def check_bids_are_repeatable(make: MakeFederation) -> None:
    """Check that a federation asked twice for a round's bids gives the same ones."""
    federation = make(1)
    first = federation.bids(1)
    second = federation.bids(1)
    assert first.clients == second.clients, "other clients"
    assert first.prices.tolist() == second.prices.tolist(), "other prices"


def _repeatable(federation: Federation) -> bool:
    return capabilities_of(federation).repeatable


def _measures_loss(federation: Federation) -> bool:
    return federation.evaluate().loss is not None


_REPEATABLE = needs(
    _repeatable, "training that comes to the same again (`Capabilities.repeatable`)"
)


@_REPEATABLE
def check_same_seed_same_history(make: MakeFederation) -> None:
    """Check that two federations with the same seed learn the same.

    Warn with a hint if another seed gives the same bids, which is right for real clients only.
    """
    assert _evaluations(make(1)) == _evaluations(make(1)), "two runs differ"
    prices = make(1).bids(1).prices.tolist()
    prices_of_other_seed = make(2).bids(1).prices.tolist()
    if prices == prices_of_other_seed:
        warnings.warn(
            ContractHint("another seed bids the same, which is right where the bids are real"),
            stacklevel=2,
        )


@_REPEATABLE
def check_training_again_comes_to_the_same(make: MakeFederation) -> None:
    """Check that a new federation, trained with stored awards, repeats the stored deliveries.

    A run without checkpoints is resumed that way.
    """
    records = play(_THREE_AT_A_TIME, make(4), Purse.of(60, 6))
    trained = [record for record in records if record.awarded.award.n]
    assert trained, "nobody was recruited"
    again = make(4)
    for record in trained:
        delivery = again.train(record.round, record.awarded.award)
        assert delivery == record.delivery, f"round {record.round} differs"


def check_deliveries_account_for_winners(make: MakeFederation) -> None:
    """Check that a delivery names every winner once, as delivered or void, and nobody else."""
    federation = make(3)
    federation.evaluate()
    for round_ in (1, 2, 3):
        award = _three_winners(federation.bids(round_))
        delivery = federation.train(round_, award)
        named = [*delivery.delivered, *delivery.void]
        assert sorted(named) == sorted(award.clients), (
            f"the winners are {award.clients}, the delivery names {named}"
        )


def check_training_is_evaluated(make: MakeFederation) -> None:
    """Check that training changes the evaluation of the initial model."""
    first, *others = _evaluations(make(3))
    assert any(evaluation != first for evaluation in others), (
        "after six rounds the evaluation is the initial model's"
    )


@_REPEATABLE
@needs(_measures_loss, "a loss in its evaluations, since accuracy may agree by chance")
def check_every_delivered_update_counts(make: MakeFederation) -> None:
    """Check that leaving out any winner that delivered changes the round's evaluation."""
    award, whole = _first_round(make(3))
    for client in whole.delivered:
        _, without = _first_round(make(3), absent=client)
        assert without.evaluation != whole.evaluation, (
            f"with {client!r}, which is named as delivered, and without it the model is the same: "
            "its update is not used, or the model not evaluated after the training "
            f"(winners {award.clients})"
        )


def _first_round(federation: Federation, absent: str = "") -> tuple[Award, Delivery]:
    """Return the award of the first round, and the delivery with one of the winners left out."""
    federation.evaluate()
    award = _three_winners(federation.bids(1))
    clients = []
    payments = []
    for client, payment in zip(award.clients, award.payments, strict=True):
        if client != absent:
            clients.append(client)
            payments.append(payment)
    fewer = replace(award, clients=tuple(clients), payments=tuple(payments))
    return award, federation.train(1, fewer)


def _three_winners(bids: Bids) -> Award:
    menu = bid_price_first().menu(bids)
    assert len(menu) >= 3, f"{len(bids)} clients bid; the checks need four or more"
    return menu.award(Offer.recruit(3), rich(menu.cost(3)))


def _evaluations(federation: Federation) -> list[Evaluation]:
    records = play(_THREE_AT_A_TIME, federation, Purse.of(60, 6))
    return [record.evaluation for record in records]


FEDERATION_CHECKS: tuple[Callable[[MakeFederation], None], ...] = (
    check_bids_are_repeatable,
    check_same_seed_same_history,
    check_training_again_comes_to_the_same,
    check_deliveries_account_for_winners,
    check_training_is_evaluated,
    check_every_delivered_update_counts,
)
