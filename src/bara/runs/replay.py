"""A run decided once more, from the bids in its books: would the same offers, menus and awards come out?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bara.allocators import ALLOCATORS
from bara.errors import ConfigError, LedgerError
from bara.ledger import Books
from bara.ledger.retention import is_dropped
from bara.market import Backoff
from bara.mechanisms import MECHANISMS
from bara.protocols import Allocator, Mechanism, Remembers
from bara.records import Award, AwardedRound, RoundRecord
from bara.runs.config import Config
from bara.runs.factory import build_allocator, build_mechanism
from bara.text import counted


@dataclass(frozen=True)
class Replay:
    """What deciding a run once more came to.

    Attributes:
        offers: How many offers were made again, and are the same.
        awards: How many menus and awards, with every payment, likewise.
        round: The first round that comes out otherwise, or None.
        problem: What differs there.
        unknown: What cannot be decided again, and why.
    """

    offers: int = 0
    awards: int = 0
    round: int | None = None
    problem: str | None = None
    unknown: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything that could be decided again came out the same."""
        return self.problem is None


def opened_config(books: Books, *, plugins: bool = False) -> Config:
    """The configuration that a run was opened with; code of others that it names is imported only if that is said."""
    tree = books.opening.get("config") or {}
    if "allocator" not in tree or "mechanism" not in tree:
        raise LedgerError(
            f"run {books.name!r} does not say which allocator and mechanism it was opened with"
        )
    config = Config.parse(tree)
    for kind, registry, section in (
        ("allocator", ALLOCATORS, config.allocator),
        ("mechanism", MECHANISMS, config.mechanism),
    ):
        if section.name not in registry.names() and not plugins:
            raise ConfigError(
                f"the {kind} {section.name!r} is code of its own; say --plugins to import it"
            )
    return config


def learns(mechanism: Mechanism) -> bool:
    """Whether its menus depend on earlier rounds; one that cannot change has learned nothing."""
    made = getattr(type(mechanism), "__dataclass_params__", None)
    return made is None or not made.frozen


def replay(books: Books, *, plugins: bool = False) -> Replay:
    """Make every offer, menu and award again, in the order in which they were made.

    Args:
        books: Whose record, which should be whole.
        plugins: Import what the configuration names that is neither ours nor installed.
    """
    config = opened_config(books, plugins=plugins)
    allocator, mechanism = build_allocator(config), build_mechanism(config)
    dropped = not books.keeps_bids
    offers, awards = 0, 0
    unknown = _unknown(allocator) if dropped else None
    for awarded, before in _told(books, allocator, mechanism, dropped=dropped):
        number, problem = awarded.purse.round, None
        if not (dropped and isinstance(allocator, Remembers)):
            problem, offers = _other_offer(allocator, awarded), offers + 1
        if problem is None and not is_dropped(awarded.bids):
            problem, awards = _other_award(mechanism, awarded, before), awards + 1
        if problem is not None:
            return Replay(offers - 1, awards - 1, number, problem, unknown)
    return Replay(offers, awards, unknown=unknown)


def _told(
    books: Books, allocator: Allocator, mechanism: Mechanism, *, dropped: bool
) -> Iterator[tuple[AwardedRound, Backoff]]:
    """Each promise, with everybody told what was settled before it."""
    backoff = Backoff()
    for awarded, record in books.promises():
        if awarded is not None:
            yield awarded, backoff
        if record is not None:
            for part in (allocator, mechanism):
                if not (dropped and isinstance(part, Remembers)):
                    part.tell(record)
            backoff.tell(record)


def _unknown(allocator: Allocator) -> str:
    what = "menus, awards and payments of settled rounds"
    if isinstance(allocator, Remembers):
        what = f"offers, {what}"
    return f"{what} cannot be made again: their bids are dropped (ledger.retention)"


def _other_offer(allocator: Allocator, awarded: AwardedRound) -> str | None:
    offer = allocator.ask(awarded.purse)
    return (
        None
        if offer == awarded.offer
        else f"the offer would be {offer}, the books have {awarded.offer}"
    )


def _other_award(mechanism: Mechanism, awarded: AwardedRound, backoff: Backoff) -> str | None:
    if away := backoff.away(awarded.purse.round) & set(awarded.bids.clients):
        return f"{min(away)!r} had failed and was to sit this round out"
    again = AwardedRound.of(awarded.purse, awarded.offer, mechanism.menu(awarded.bids))
    for n, (now, then) in enumerate(
        zip(again.costs.tolist(), awarded.costs.tolist(), strict=False), 1
    ):
        if now != then:
            show = awarded.purse.show
            return f"{counted(n, 'client')} would cost {show(now)}, the menu in the books says {show(then)}"
    if len(again.costs) != len(awarded.costs):
        return f"the menu would be for n up to {len(again.costs)}, the one in the books is for up to {len(awarded.costs)}"
    return _differ(again.award, awarded.award, awarded)


def _differ(again: Award, award: Award, awarded: AwardedRound) -> str | None:
    if again.clients != award.clients:
        now, then = (", ".join(one.clients) or "nobody" for one in (again, award))
        return f"the winners would be {now}, and are {then}"
    for client, pays, paid in zip(award.clients, again.payments, award.payments, strict=True):
        if pays != paid:
            return f"{client!r} would be promised {awarded.purse.show(pays)}, and is promised {awarded.purse.show(paid)}"
    weights = zip(again.weights or (), award.weights or (), strict=False)
    same = all(math.isclose(now, then, rel_tol=1e-9) for now, then in weights)
    return (
        None
        if same and (again.weights is None) == (award.weights is None)
        else "the weights would be others"
    )


def past_of(books: Books, mechanism: Mechanism, until: int) -> tuple[Backoff, RoundRecord | None]:
    """Tell a mechanism every round before that one; who had to sit it out, and the round before it."""
    backoff, last = Backoff(), None
    for record in books.history():
        if record.round >= until:
            break
        mechanism.tell(record)
        backoff.tell(record)
        last = record
    return backoff, last
