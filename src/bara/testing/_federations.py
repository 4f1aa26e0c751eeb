"""What every federation promises, checked by training with a few winners."""

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
"""seed -> a fresh federation."""

_THREE_AT_A_TIME = Fixed(n=3, shortfall="shrink")


def check_bids_are_repeatable(make: MakeFederation) -> None:
    """Asked twice for a round's bids, a federation gives the same."""
    federation = make(1)
    first, second = federation.bids(1), federation.bids(1)
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
    """Two federations from one seed learn the same; a hint where another seed bids the same, as real clients do."""
    one, two = _evaluations(make(1)), _evaluations(make(1))
    assert one == two, "two runs differ"
    if make(1).bids(1).prices.tolist() == make(2).bids(1).prices.tolist():
        warnings.warn(
            ContractHint("another seed bids the same, which is right where the bids are real"),
            stacklevel=2,
        )


@_REPEATABLE
def check_training_again_comes_to_the_same(make: MakeFederation) -> None:
    """A fresh federation, trained with stored awards, delivers what is stored: a run without checkpoints resumes."""
    trained = [
        record
        for record in play(_THREE_AT_A_TIME, make(4), Purse.of(60, 6))
        if record.awarded.award.n
    ]
    assert trained, "nobody was recruited"
    again = make(4)
    for record in trained:
        assert again.train(record.round, record.awarded.award) == record.delivery, (
            f"round {record.round} differs"
        )


def check_deliveries_account_for_winners(make: MakeFederation) -> None:
    """A delivery names every winner once, as delivered or as void, and nobody else."""
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
    """Rounds of training leave another evaluation than that of the initial model."""
    first, *others = _evaluations(make(3))
    assert any(evaluation != first for evaluation in others), (
        "after six rounds the evaluation is the initial model's"
    )


@_REPEATABLE
@needs(_measures_loss, "a loss in its evaluations, since accuracy may agree by chance")
def check_every_delivered_update_counts(make: MakeFederation) -> None:
    """Without any one of the winners that delivered, the round comes to another evaluation."""
    award, whole = _first_round(make(3))
    for client in whole.delivered:
        _, without = _first_round(make(3), absent=client)
        assert without.evaluation != whole.evaluation, (
            f"with {client!r}, which is named as delivered, and without it the model is the same: its update is not "
            f"used, or the model not evaluated after the training (winners {award.clients})"
        )


def _first_round(federation: Federation, absent: str = "") -> tuple[Award, Delivery]:
    """The award of the first round and what comes of it when one of the winners is left out."""
    federation.evaluate()
    award = _three_winners(federation.bids(1))
    kept = [i for i, client in enumerate(award.clients) if client != absent]
    fewer = replace(
        award,
        clients=tuple(award.clients[i] for i in kept),
        payments=tuple(award.payments[i] for i in kept),
    )
    return award, federation.train(1, fewer)


def _three_winners(bids: Bids) -> Award:
    menu = bid_price_first().menu(bids)
    assert len(menu) >= 3, f"{len(bids)} clients bid; the checks need four or more"
    return menu.award(Offer.recruit(3), rich(menu.cost(3)))


def _evaluations(federation: Federation) -> list[Evaluation]:
    return [record.evaluation for record in play(_THREE_AT_A_TIME, federation, Purse.of(60, 6))]


FEDERATION_CHECKS: tuple[Callable[[MakeFederation], None], ...] = (
    check_bids_are_repeatable,
    check_same_seed_same_history,
    check_training_again_comes_to_the_same,
    check_deliveries_account_for_winners,
    check_training_is_evaluated,
    check_every_delivered_update_counts,
)
