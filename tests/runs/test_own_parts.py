"""Parts of one's own that lack something, or answer with something else, are told so at once."""

import pytest
from refusals import refused

import bara
from bara.errors import ConfigError, InvalidOfferError
from bara.simulator.synthetic import SyntheticFederation

SMALL = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 4}, "clients": 6}


class Mute:
    claims = frozenset()

    def menu(self, bids):
        return bara.mechanisms.critical_menu(bids)


class Boundless:
    def menu(self, bids):
        return bara.mechanisms.critical_menu(bids)

    def tell(self, record):
        pass


class Learningless:
    def ask(self, _purse):
        return bara.Offer.recruit(3)


class AmountOnly(Learningless):
    def ask(self, _purse):
        return 3.5

    def tell(self, record):
        pass


class Half(AmountOnly):
    def ask(self, purse):
        return bara.Offer.spend(purse.left / 2)


@pytest.mark.parametrize(
    "handed", [lambda kind: kind, lambda kind: kind()], ids=["class", "object"]
)
@pytest.mark.parametrize(
    ("part", "kind", "lacks"),
    [
        ("mechanism", Mute, "lacks tell"),
        ("mechanism", Boundless, "lacks claims"),
        ("allocator", Learningless, "lacks tell"),
    ],
)
def test_what_a_part_lacks_is_named_with_the_least_that_it_may_be(part, kind, lacks, handed):
    with refused(
        ConfigError, part, kind.__name__, lacks, "claims = " if "claims" in lacks else "def"
    ):
        bara.run(SMALL, **{part: handed(kind)})


@pytest.mark.parametrize(
    "handed", [lambda kind: kind, lambda kind: kind()], ids=["class", "object"]
)
def test_an_answer_that_is_no_offer_is_refused_before_round_0(handed, monkeypatch):
    evaluated = []
    monkeypatch.setattr(SyntheticFederation, "evaluate", lambda *_: evaluated.append(1))
    with refused(InvalidOfferError, "AmountOnly.ask", "3.5", "bara.Offer.spend"):
        bara.run(SMALL, allocator=handed(AmountOnly))
    with refused(InvalidOfferError, "AmountOnly.ask", "3.5"):
        bara.compare(SMALL, allocators=[handed(AmountOnly)], seeds=1, jobs=1)
    with refused(InvalidOfferError, "budget", "whole number", "//", "bara.money"):
        bara.run(SMALL, allocator=handed(Half))
    assert not evaluated


def test_an_allocator_that_needs_a_real_round_0_is_left_to_its_run():
    class Particular:
        def __init__(self):
            self.loss = None

        def ask(self, _purse):
            if self.loss is None:
                raise ValueError("no such model")
            return bara.Offer.recruit(3)

        def tell(self, record):
            self.loss = record.evaluation.loss

    assert bara.run(SMALL, allocator=Particular).rounds == 4
