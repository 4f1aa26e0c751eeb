"""Replay: decides a run again from the bids in its books, and compares offers, menus and awards."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bara.allocators import ALLOCATORS
from bara.errors import ConfigError, LedgerError
from bara.ledger import Books
from bara.ledger.retention import is_dropped
from bara.market import Backoff, beyond_limits, strangers
from bara.mechanisms import MECHANISMS
from bara.protocols import Allocator, Mechanism, Remembers
from bara.records import Award, AwardedRound, Limits, Purse
from bara.runs.config import Config
from bara.runs.factory import build_allocator, build_mechanism, limits_of
from bara.text import counted


@dataclass(frozen=True)
class Replay:
    """The outcome of a replay.

    Attributes:
        offers: How many offers came out the same.
        awards: How many menus with their awards and payments came out the same.
        round: The first round with a different decision; None if there is none.
        problem: What differs in that round; None if nothing does.
        unknown: Which decisions cannot be made again, and why; None if all can.
    """

    offers: int = 0
    awards: int = 0
    round: int | None = None
    problem: str | None = None
    unknown: str | None = None

    @property
    def ok(self) -> bool:
        """True if every decision that could be made again came out the same."""
        return self.problem is None


def opened_config(books: Books, *, plugins: bool = False) -> Config:
    """Return the configuration that a run was opened with.

    Args:
        books: The books of the run.
        plugins: Whether to accept an allocator or mechanism that is neither bara's nor installed,
            and therefore would be imported.
    """
    tree = books.opening.get("config") or {}
    if "allocator" not in tree or "mechanism" not in tree:
        raise LedgerError(
            f"run {books.name!r} does not say which allocator and mechanism it was opened with"
        )
    config = Config.parse(tree)
    if plugins:
        return config
    for kind, registry, section in (
        ("allocator", ALLOCATORS, config.allocator),
        ("mechanism", MECHANISMS, config.mechanism),
    ):
        if section.name not in registry.names():
            raise ConfigError(
                f"the {kind} {section.name!r} is code of its own; say --plugins to import it"
            )
    return config


def learns(mechanism: Mechanism) -> bool:
    """Return whether a mechanism's menus may depend on earlier rounds.

    A frozen dataclass cannot change, so it cannot have learned anything.
    """
    parameters = getattr(type(mechanism), "__dataclass_params__", None)
    return parameters is None or not parameters.frozen


def replay(books: Books, *, plugins: bool = False) -> Replay:
    """Make every offer, menu and award again, in order, up to the first that differs.

    Args:
        books: The books of the run; they should be verified first.
        plugins: Whether to import an allocator or mechanism that is neither bara's nor installed.
    """
    config = opened_config(books, plugins=plugins)
    allocator = build_allocator(config)
    mechanism = build_mechanism(config)
    books.guide(mechanism)
    limits = limits_of(config)
    dropped = not books.keeps_bids
    can_offer = not (dropped and isinstance(allocator, Remembers))
    unknown = _unknown(allocator) if dropped else None
    offers = 0
    awards = 0
    for awarded, backoff in _told(books, allocator, mechanism, dropped=dropped):
        number = awarded.purse.round
        if can_offer:
            problem = _other_offer(allocator, awarded)
            if problem is not None:
                return Replay(offers, awards, number, problem, unknown)
            offers += 1
        if not is_dropped(awarded.bids):
            problem = _other_award(mechanism, awarded, backoff, limits)
            if problem is not None:
                return Replay(offers, awards, number, problem, unknown)
            awards += 1
    return Replay(offers, awards, unknown=unknown)


def _told(
    books: Books, allocator: Allocator, mechanism: Mechanism, *, dropped: bool
) -> Iterator[tuple[AwardedRound, Backoff]]:
    """Yield each promise once allocator, mechanism and back-off know the rounds settled before."""
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
    """Tell which decisions cannot be made again once bids are dropped."""
    what = "menus, awards and payments of settled rounds"
    if isinstance(allocator, Remembers):
        what = f"offers, {what}"
    return f"{what} cannot be made again: their bids are dropped (ledger.retention)"


def _other_offer(allocator: Allocator, awarded: AwardedRound) -> str | None:
    """Make an offer again; tell how it differs from the one in the books, if it does."""
    offer = allocator.ask(awarded.purse)
    if offer == awarded.offer:
        return None
    return f"the offer would be {offer}, the books have {awarded.offer}"


def _other_award(
    mechanism: Mechanism, awarded: AwardedRound, backoff: Backoff, limits: Limits
) -> str | None:
    """Make a menu and its award again; tell how they differ from the books, if they do."""
    away = backoff.away(awarded.purse.round)
    present = away & set(awarded.bids.clients)
    if present:
        return f"{min(present)!r} had failed and was to sit this round out"
    bids = awarded.bids
    unknown: dict[str, str] = {}
    beyond: set[str] = set()
    if awarded.left_out is not None:
        taking_part = awarded.opened.without(away)
        unknown = strangers(mechanism, taking_part)
        bids = taking_part.without(unknown)
        # Until 0.3 nobody was left out for absurd claims: who took part then, does so again.
        beyond = set(awarded.left_out.bids.clients) & set(
            beyond_limits(bids, awarded.purse, limits)
        )
    menu = mechanism.menu(bids.without(beyond))
    if awarded.left_out is not None:
        # Bids that could not be read are not in the books, only the reasons.
        seen = set(awarded.left_out.bids.clients)
        wrongly = seen - away - unknown.keys() - beyond - menu.left_out.keys()
        if wrongly:
            return (
                f"{min(wrongly)!r} was left out ({awarded.left_out.reasons[min(wrongly)]}), wrongly"
            )
    again = AwardedRound.of(awarded.purse, awarded.offer, menu)
    costs = zip(again.costs.tolist(), awarded.costs.tolist(), strict=False)
    for n, (now, then) in enumerate(costs, 1):
        if now != then:
            show = awarded.purse.show
            return (
                f"{counted(n, 'client')} would cost {show(now)}, "
                f"the menu in the books says {show(then)}"
            )
    if len(again.costs) != len(awarded.costs):
        return (
            f"the menu would be for n up to {len(again.costs)}, "
            f"the one in the books is for up to {len(awarded.costs)}"
        )
    return _differ(again.award, awarded.award, awarded.purse)


def _differ(again: Award, award: Award, purse: Purse) -> str | None:
    """Tell how an award that was made again differs from the one in the books, if it does."""
    if again.clients != award.clients:
        now = ", ".join(again.clients) or "nobody"
        then = ", ".join(award.clients) or "nobody"
        return f"the winners would be {now}, and are {then}"
    for client, pays, paid in zip(award.clients, again.payments, award.payments, strict=True):
        if pays != paid:
            return (
                f"{client!r} would be promised {purse.show(pays)}, "
                f"and is promised {purse.show(paid)}"
            )
    weights = zip(again.weights or (), award.weights or (), strict=False)
    alike = all(math.isclose(now, then, rel_tol=1e-9) for now, then in weights)
    if alike and (again.weights is None) == (award.weights is None):
        return None
    return "the weights would be others"


def past_of(books: Books, mechanism: Mechanism, until: int) -> Backoff:
    """Tell a mechanism every round before `until`; return the back-off after those rounds."""
    backoff = Backoff()
    for record in books.history():
        if record.round >= until:
            break
        mechanism.tell(record)
        backoff.tell(record)
    return backoff
