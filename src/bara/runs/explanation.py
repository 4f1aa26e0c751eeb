"""Why was X paid Y? One round in plain words: offer, bids, winners, what set the price, what other asks would bring."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bara.errors import BaraError, LedgerError
from bara.ledger import Books
from bara.ledger.payouts import batch_of
from bara.ledger.progress import RoundDetails, round_details, state
from bara.ledger.retention import is_dropped
from bara.market import Backoff
from bara.mechanisms.client_cap import ClientCap
from bara.protocols import Mechanism
from bara.records import MAX_MONEY, AwardedRound, Bids, Menu, Offer, json_money
from bara.runs.factory import build_mechanism
from bara.runs.replay import learns, opened_config, past_of
from bara.text import counted

MOST = 40
"""Clients of whom it is worked out, unless one is asked for, up to which price each would have won."""

_SCORES = {
    "quality": "learned from the loss before and after its training, times its data",
    "reputation": "learned from what its training achieved and whether it delivered",
    "residue": "the share of its loss that its training left, as measured (less is better)",
    "scores": "its score less its price",
}
"""Methods by which mechanisms tell what they think of clients, and where that comes from."""


@dataclass(frozen=True)
class WhatIf:
    """What a client would have been promised had it asked otherwise; None where it would not have won."""

    ask: int
    promised: int | None


@dataclass(frozen=True)
class Part:
    """One client in one round; amounts in micro-units, None where bids are dropped or nothing is known."""

    client: str
    asked: int | None
    quality: float | None
    promised: int | None
    paid: int | None
    reason: str | None
    highest: int | None = None
    what_if: tuple[WhatIf, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """One round, explained.

    Attributes:
        round: Which.
        sentences: In plain words.
        parts: Client by client; the winners first.
        quality: What `Part.quality` is and where it comes from; None where all clients count alike.
        ended: How the run ended and why, once it has.
    """

    round: int
    sentences: tuple[str, ...]
    parts: tuple[Part, ...] = field(default_factory=tuple)
    quality: str | None = None
    ended: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as a tree."""
        return {
            "round": self.round,
            "sentences": list(self.sentences),
            "quality": self.quality,
            "ended": self.ended,
            "clients": [_part_json(part) for part in self.parts],
        }


def _part_json(part: Part) -> dict[str, Any]:
    amounts = json_money(
        asked=part.asked, promised=part.promised, paid=part.paid, highest=part.highest
    )
    asks = [json_money(ask=one.ask, promised=one.promised) for one in part.what_if]
    return {
        "client": part.client,
        "quality": part.quality,
        **amounts,
        "reason": part.reason,
        "what_if": asks,
    }


def explain_round(
    books: Books,
    number: int,
    client: str | None = None,
    *,
    plugins: bool = False,
    past: bool = True,
    what_if: bool = True,
) -> Explanation:
    """Explain a round that was promised, as far as the run's retention lets it be seen.

    Args:
        books: Whose.
        number: Which round.
        client: Of whom to say more; None for everybody.
        plugins: Import a mechanism that is neither ours nor installed.
        past: Read the rounds before it, too: who had to sit it out, and what a mechanism that
            learns had learned.
        what_if: Work out what other asks would have brought, which takes a menu for each.
    """
    details = round_details(books, number)
    awarded = next((one for one, _ in books.promises(number, number) if one is not None), None)
    if details is None or awarded is None:
        raise LedgerError(
            f"round {number} of run {books.name!r} was not promised; nothing is known of it"
        )
    case = _Case(books, details, awarded, client, most=MOST if what_if else 0)
    if case.seen:
        case.rebuild(plugins=plugins, past=past)
    return case.explanation()


class _Case:
    """One round on the table."""

    def __init__(
        self,
        books: Books,
        details: RoundDetails,
        awarded: AwardedRound,
        client: str | None,
        most: int,
    ) -> None:
        self._books, self._details, self._awarded, self._client = books, details, awarded, client
        self._show, self._unit, self._most = awarded.purse.show, awarded.purse.unit, most
        self._winners = {line.client: line for line in details.winners}
        self.seen = details.bids is not None and not is_dropped(awarded.bids)
        self._mechanism: Mechanism | None = None
        self._why_not, self._backoff = "", Backoff()

    def rebuild(self, *, plugins: bool, past: bool) -> None:
        """The mechanism as it was then, or why it cannot be."""
        try:
            mechanism = build_mechanism(opened_config(self._books, plugins=plugins))
        except BaraError as error:
            self._why_not = str(error)
            return
        if past:
            self._backoff, _ = past_of(self._books, mechanism, self._awarded.purse.round)
        elif learns(mechanism):
            self._why_not = "the mechanism learns from earlier rounds, which were not read"
            return
        self._mechanism = mechanism

    def explanation(self) -> Explanation:
        """In words, and client by client."""
        known = {} if self._mechanism is None else _quality(self._mechanism, self._awarded.bids)
        menu = None if self._mechanism is None else self._mechanism.menu(self._awarded.bids)
        parts = tuple(self._parts(known.get("values"), menu))
        ended = state(self._books).ended
        told = [self._offer(), *self._plan(), *self._asked(), *self._won(menu), *self._price(menu)]
        told += [line for part in parts for line in self._otherwise(part)]
        told += [*self._failed(), *([known["words"]] if known else [])]
        if ended is not None:
            told.append(f"The run ended after round {state(self._books).closed}: {ended}.")
        told += self._paid()
        return Explanation(self._details.round, tuple(told), parts, known.get("words"), ended)

    def _offer(self) -> str:
        purse, offer = self._awarded.purse, self._awarded.offer
        left = f"with {self._show(purse.left)} and {counted(purse.rounds_left, 'round')} left"
        words = offer_words(
            offer, lambda cap: self._show(cap - cap % self._unit)
        )  # nothing smaller is ever paid
        return f"Round {purse.round}. Before any bid was opened, {left}, the allocator offered {words}."

    def _plan(self) -> Iterator[str]:
        belief = self._awarded.belief
        if belief is None:
            return
        yield f"What it believed then: {belief.stage}."
        if (plan := belief.plan) is not None:
            phases = [(plan.main_n, round(plan.main_rounds)), (plan.end_n, plan.end_rounds)]
            words = ", then ".join(
                f"{counted(n, 'client')} for {counted(k, 'round')}" for n, k in phases if k
            )
            yield (
                f"Its plan: {words}; spending {self._show(plan.spend)} and ending at {100 * plan.accuracy:.1f} % "
                f"({100 * plan.low:.1f} to {100 * plan.high:.1f})."
            )

    def _asked(self) -> Iterator[str]:
        if not self.seen:
            yield "What anybody asked is not shown: this ledger drops bids and menus."
            return
        asked = sorted((price, client) for client, price in (self._details.bids or {}).items())
        shown = [f"{client} {self._show(price)}" for price, client in asked[:12]]
        more = f" and {len(asked) - 12} more" if len(asked) > 12 else ""
        yield (
            f"{counted(len(asked), 'client')} asked: {', '.join(shown)}{more}."
            if asked
            else "Nobody bid."
        )
        if away := sorted(self._backoff.away(self._details.round)):
            yield f"{', '.join(away[:12])} had failed before and had to sit this round out."

    def _won(self, menu: Menu | None) -> Iterator[str]:
        lines = self._details.winners
        if not lines:
            yield "Nobody was recruited."
            return
        n, total = len(lines), self._show(sum(line.promised for line in lines))
        yield f"{counted(n, 'client')} won, for {total} in all: {', '.join(line.client for line in lines)}."
        if menu is not None and n < len(menu):
            cap = self._awarded.offer.cap(n + 1)
            most = min(cap, self._awarded.purse.left)
            if (cost := menu.cost(n + 1)) > most:
                most -= most % self._unit
                yield f"{n + 1} would have cost {self._show(cost)}; the offer was at most {self._show(most)}."

    def _price(self, menu: Menu | None) -> Iterator[str]:
        n = len(self._details.winners)
        if menu is None or not n:
            if n and self.seen and self._why_not:
                yield f"What set the price cannot be worked out: {self._why_not}."
            return
        if len(menu.order) > n:
            loser = menu.bids.clients[int(menu.order[n])]
            price = int(menu.bids.prices[int(menu.order[n])])
            alike = {line.promised for line in self._details.winners} == {price}
            sets = (
                "is what each winner is promised"
                if alike
                else "and what each counts for set the winners' payments"
            )
            yield f"The first who did not win is {loser}; its price, {self._show(price)}, {sets}."
        else:
            yield "Nobody who bid is left over: the price was set before, by a reserve price or a tariff."

    def _parts(self, quality: Sequence[float] | None, menu: Menu | None) -> Iterator[Part]:
        bids = self._awarded.bids if self.seen else None
        asked = self._details.bids or {}
        names = [
            *self._winners,
            *sorted(asked.keys() - self._winners.keys(), key=lambda one: (asked[one], one)),
        ]
        if self._client is not None:
            if self._client not in names:
                raise LedgerError(
                    f"client {self._client!r} neither bid nor won in round {self._details.round}"
                )
            names = [self._client]
        worked_out = menu is not None and len(names) <= self._most
        for name in names:
            line = self._winners.get(name)
            place = bids.clients.index(name) if bids is not None and name in bids.clients else None
            highest = self._highest(name) if worked_out and place is not None else None
            yield Part(
                name,
                asked.get(name),
                None if quality is None or place is None else float(quality[place]),
                None if line is None else line.promised,
                None if line is None else line.paid,
                None if line is None else line.reason,
                highest,
                tuple(self._what_if(name, asked[name], highest))
                if worked_out and place is not None
                else (),
            )

    def _promised_at(self, client: str, ask: int) -> int | None:
        """What that client would be promised had it asked this."""
        assert self._mechanism is not None  # noqa: S101 - who asks has looked
        menu = self._mechanism.menu(self._awarded.bids.replace_price(client, ask))
        award = menu.unweighed(self._awarded.offer, self._awarded.purse)
        return dict(zip(award.clients, award.payments, strict=True)).get(client)

    def _highest(self, client: str) -> int | None:
        """The highest price at which it would have won, by bisection over whole units; None where there is none."""
        unit = self._awarded.bids.unit
        low, high = (
            0,
            max(2 * int(self._awarded.bids.prices.max()), self._awarded.purse.left) // unit + 1,
        )
        high = min(
            high, MAX_MONEY >> (len(self._awarded.bids) + 1).bit_length() + unit.bit_length()
        )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high)
                if self._promised_at(client, middle * unit) is not None
                else (low, middle)
            )
        return low * unit or None

    def _what_if(self, client: str, asked: int, highest: int | None) -> Iterator[WhatIf]:
        unit = self._awarded.bids.unit
        near = [] if highest is None else [highest, highest + unit]
        asks = {max(asked // 2 - asked // 2 % unit, unit), asked, 2 * asked, *near}
        for ask in sorted(asks):
            yield WhatIf(ask, self._promised_at(client, ask))

    def _otherwise(self, part: Part) -> Iterator[str]:
        """Truthfulness on the case, of the one client that was asked for."""
        if self._client is None or not part.what_if:
            return
        if part.promised is None:
            limit = (
                "no price at all"
                if part.highest is None
                else f"a price of at most {self._show(part.highest)}"
            )
            yield f"{part.client} asked {self._show(part.asked or 0)} and did not win; {limit} would have won."
        else:
            highest = self._show(part.highest or 0)
            yield f"{part.client} asked {self._show(part.asked or 0)} and would have won up to {highest}."
        asks = [
            f"{'nothing' if one.promised is None else self._show(one.promised)} at {self._show(one.ask)}"
            for one in part.what_if
        ]
        yield f"What it would have been promised at other prices: {'; '.join(asks)}."

    def _paid(self) -> Iterator[str]:
        """The answer, where one client was asked for."""
        line = self._winners.get(self._client or "")
        if line is not None and line.paid:
            batch = batch_of(self._books, self._details.round)
            where = "which is in no batch yet" if batch is None else f"in batch {batch}"
            yield f"{line.client} was paid {self._show(line.paid)}, {where}."

    def _failed(self) -> Iterator[str]:
        unpaid = {
            line.client: line.reason for line in self._details.winners if line.reason is not None
        }
        refused = {
            reason for reason in unpaid.values() if " by the operator" in reason
        }  # of all winners, or of none
        if refused:
            yield f"Nobody was paid: {refused.pop()}."
        else:
            yield from (f"{client} was not paid: {reason}." for client, reason in unpaid.items())
        if not self._details.settled:
            yield "The round is not settled yet."


def offer_words(offer: Offer, show: Any, most: int = 6) -> str:
    """An offer in words."""
    if not offer.limit:
        return "nothing: it let the round pass"
    if offer.table is not None:
        caps = [f"{show(cap)} for {n}" for n, cap in enumerate(offer.table[:most], 1)]
        return f"up to {', '.join(caps)}{', ...' if len(offer.table) > most else ''} clients"
    if offer.budget >= MAX_MONEY:
        return f"to take {counted(offer.limit, 'client')}, whatever they cost"
    many = (
        "as many clients as that pays"
        if offer.limit >= MAX_MONEY
        else f"up to {counted(offer.limit, 'client')}"
    )
    return f"up to {show(offer.budget)} for {many}"


def _quality(mechanism: Mechanism, bids: Bids) -> dict[str, Any]:
    """What a mechanism thinks of each client, in the order of the bids, and in words where that comes from."""
    inner = mechanism.inner if isinstance(mechanism, ClientCap) else mechanism
    column = getattr(inner, "quality", None)
    if isinstance(column, str):
        return {
            "values": bids.column(column).tolist(),
            "words": f"Quality is the column {column!r} of the bids.",
        }
    for name, source in _SCORES.items():
        method = getattr(inner, name, None)
        if callable(method):
            return {"values": method(bids).tolist(), "words": f"Each client's {name} is {source}."}
    return {}
