"""Explanations of a round in plain words: why was this client paid that much?

An explanation tells the offer, the bids, the winners and what set the price, and works out what
clients would have been promised had they asked other prices.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from bara.errors import BaraError, LedgerError
from bara.ledger import Books
from bara.ledger.decisions import decisions
from bara.ledger.payouts import payments_of
from bara.ledger.retention import is_dropped
from bara.ledger.run_state import RoundDetails, round_details, state
from bara.market import BACKS_OFF, Backoff
from bara.mechanisms.client_cap import ClientCap
from bara.mechanisms.posted_price import PostedPrice, Tariff
from bara.mechanisms.standing import Standing
from bara.protocols import Mechanism
from bara.records import MAX_MONEY, AwardedRound, Bids, Menu, Offer, json_money
from bara.runs.factory import build_mechanism
from bara.runs.replay import learns, opened_config, past_of
from bara.text import counted, listing

MOST = 40
"""The largest number of clients for each of which other prices are worked out unasked."""

MOST_CAPS = 6
"""How many caps of an offer with a table are told."""

_SCORES = {
    "quality": "learned from the loss before and after its training, times its data",
    "reputation": "learned from what its training achieved and whether it delivered",
    "residue": "the share of its loss that its training left, as measured (less is better)",
    "scores": "its score less its price",
    "standing": "how long it was not heard, as far as prices stay (more is better)",
    "fee": "what its turn is paid, which its own price does not enter (0 if it has no turn)",
}
"""The methods with which mechanisms rate clients, and where each rating comes from, in words."""


@dataclass(frozen=True)
class WhatIf:
    """The promise that a client would have got for another price.

    Attributes:
        ask: The price, in micro-units.
        promised: What the client would have been promised, in micro-units; None if it would not
            have won.
    """

    ask: int
    promised: int | None


@dataclass(frozen=True)
class ClientExplanation:
    """The explanation of one client in one round; amounts in micro-units.

    Attributes:
        client: The client's name.
        asked: The price that the client asked; None if bids are dropped.
        quality: The mechanism's rating of the client (see `Explanation.quality`), if known.
        promised: What the client was promised; None if it did not win.
        paid: What the client was paid; None if it did not win or the round is not settled.
        reason: Why the client was not paid, if it was not.
        highest: The highest price with which the client would have won, if that was worked out.
        what_if: What the client would have been promised for other prices, if worked out.
    """

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
    """The explanation of one round.

    Attributes:
        round: The number of the round.
        sentences: The explanation in plain words.
        clients: The explanation client by client, the winners first.
        quality: What `ClientExplanation.quality` is and where it comes from; None if the mechanism
            rates no clients, or cannot be built.
        ended: Why the run ended, once it has.
    """

    round: int
    sentences: tuple[str, ...]
    clients: tuple[ClientExplanation, ...] = field(default_factory=tuple)
    quality: str | None = None
    ended: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a tree for JSON."""
        return {
            "round": self.round,
            "sentences": list(self.sentences),
            "quality": self.quality,
            "ended": self.ended,
            "clients": list(map(_client_json, self.clients)),
        }


def _client_json(explained: ClientExplanation) -> dict[str, Any]:
    amounts = json_money(
        asked=explained.asked,
        promised=explained.promised,
        paid=explained.paid,
        highest=explained.highest,
    )
    asks = [json_money(ask=one.ask, promised=one.promised) for one in explained.what_if]
    return {
        "client": explained.client,
        "quality": explained.quality,
        **amounts,
        "reason": explained.reason,
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
        books: The books of the run.
        number: The number of the round.
        client: The only client to explain, in more detail; None for all clients.
        plugins: Whether to import a mechanism that is neither bara's nor installed.
        past: Whether to read the earlier rounds, too: they tell which clients had to sit this round
            out, and what a mechanism that learns had learned.
        what_if: Whether to work out what other prices would have brought, each with a menu.
    """
    details = round_details(books, number)
    awarded = books.promise(number)
    if details is None or awarded is None:
        raise LedgerError(
            f"round {number} of run {books.name!r} was not promised; nothing is known of it"
        )
    most = MOST if what_if else 0
    case = _Case(books, details, awarded, client, most)
    if case.seen:
        case.rebuild(plugins=plugins, past=past)
    return case.explanation()


class _Case:
    """A round to be explained: what the books say of it, and its mechanism, built again."""

    def __init__(
        self,
        books: Books,
        details: RoundDetails,
        awarded: AwardedRound,
        client: str | None,
        most: int,
    ) -> None:
        self._books = books
        self._details = details
        self._awarded = awarded
        self._client = client
        self._most = most
        self._show = awarded.purse.show
        self._unit = awarded.purse.unit
        self._winners = {line.client: line for line in details.winners}
        self.seen = details.bids is not None and not is_dropped(awarded.bids)
        self._mechanism: Mechanism | None = None
        self._why_not = ""  # the reason why there is no mechanism
        self._backoff = Backoff()

    def rebuild(self, *, plugins: bool, past: bool) -> None:
        """Build the mechanism as it was in this round, or note why that is not possible."""
        try:
            mechanism = build_mechanism(opened_config(self._books, plugins=plugins))
        except BaraError as error:
            self._why_not = str(error)
            return
        self._books.guide(mechanism)
        if past:
            self._backoff = past_of(self._books, mechanism, self._awarded.purse.round)
        elif learns(mechanism):
            self._why_not = "the mechanism learns from earlier rounds, which were not read"
            return
        self._mechanism = mechanism

    def explanation(self) -> Explanation:
        """Explain the round in words and client by client."""
        ratings = None
        quality = None
        menu = None
        if self._mechanism is not None:
            ratings, quality = _quality(self._mechanism, self._awarded.bids)
            menu = self._mechanism.menu(self._awarded.bids)
        clients = tuple(self._clients(ratings, menu))
        ended = state(self._books).ended
        told = [self._offer()]
        told += self._plan()
        told += self._asked()
        told += self._won(menu)
        told += self._decided()
        told += self._price(menu)
        for explained in clients:
            told += self._otherwise(explained)
        told += self._failed()
        if quality is not None:
            told.append(quality)
        if ended is not None:
            told.append(f"The run ended after round {state(self._books).closed}: {ended}.")
        told += self._paid()
        return Explanation(self._details.round, tuple(told), clients, quality, ended)

    # --- the sentences ---------------------------------------------------------------------------

    def _offer(self) -> str:
        purse = self._awarded.purse
        left = f"with {self._show(purse.left)} and {counted(purse.rounds_left, 'round')} left"
        words = offer_words(self._awarded.offer, self._payable)
        return (
            f"Round {purse.round}. Before any bid was opened, {left}, the allocator offered "
            f"{words}."
        )

    def _payable(self, cap: int) -> str:
        """Show a cap without the fraction of a unit, which is never paid."""
        return self._show(cap - cap % self._unit)

    def _plan(self) -> Iterator[str]:
        belief = self._awarded.belief
        if belief is None:
            return
        yield f"What it believed then: {belief.stage}."
        plan = belief.plan
        if plan is not None:
            main = (plan.main_n, round(plan.main_rounds))
            end = (plan.end_n, plan.end_rounds)
            phases = []
            for n, rounds in (main, end):
                if rounds:
                    phases.append(f"{counted(n, 'client')} for {counted(rounds, 'round')}")
            yield (
                f"Its plan: {', then '.join(phases)}; spending {self._show(plan.spend)} and ending "
                f"at {100 * plan.accuracy:.1f} % "
                f"({100 * plan.low:.1f} to {100 * plan.high:.1f})."
            )

    def _asked(self) -> Iterator[str]:
        if not self.seen:
            yield "What anybody asked is not shown: this ledger drops bids and menus."
            return
        asked = sorted((price, client) for client, price in (self._details.bids or {}).items())
        shown = [f"{client} {self._show(price)}" for price, client in asked]
        if asked:
            yield f"{counted(len(asked), 'client')} asked: {listing(shown, most=12)}."
        else:
            yield "Nobody bid."
        away = sorted(self._backoff.away(self._details.round))
        if away:
            yield f"{', '.join(away[:12])} had failed before and had to sit this round out."
        if self._awarded.left_out is not None:
            reasons = sorted(self._awarded.left_out.reasons.items())
            others = [(client, reason) for client, reason in reasons if reason != BACKS_OFF]
            for client, reason in others[:12]:
                yield f"{client} was left out: {reason}."

    def _won(self, menu: Menu | None) -> Iterator[str]:
        lines = self._details.winners
        if not lines:
            yield "Nobody was recruited."
            return
        n = len(lines)
        total = self._show(sum(line.promised for line in lines))
        names = ", ".join(line.client for line in lines)
        yield f"{counted(n, 'client')} won, for {total} in all: {names}."
        if menu is not None and n < len(menu):
            cost = menu.cost(n + 1)
            most = min(self._awarded.offer.cap(n + 1), self._awarded.purse.left)
            if cost > most:
                yield (
                    f"{n + 1} would have cost {self._show(cost)}; the offer was at most "
                    f"{self._payable(most)}."
                )

    def _decided(self) -> Iterator[str]:
        """Tell who approved the award or took it back, and why."""
        about = f"round {self._details.round}"
        for one in decisions(self._books):
            if one.about != about or one.what == "paid out":
                continue
            why = f": {one.reason}" if one.reason else ""
            yield f"{one.what.capitalize()} by {one.by or 'the operator'}{why}."

    def _price(self, menu: Menu | None) -> Iterator[str]:
        n = len(self._details.winners)
        if not n:
            return
        if menu is None:
            if self.seen and self._why_not:
                yield f"What set the price cannot be worked out: {self._why_not}."
            return
        if isinstance(_inner(self._mechanism), PostedPrice | Tariff | Standing):
            yield "What each winner is promised was set before anybody bid in this round."
            return
        if len(menu.order) <= n:
            yield "Nobody who bid is left over: the price was set before, by a reserve price."
            return
        place = int(menu.order[n])
        loser = menu.bids.clients[place]
        price = int(menu.bids.prices[place])
        sets = "and what each counts for set the winners' payments"
        if {line.promised for line in self._details.winners} == {price}:
            sets = "is what each winner is promised"
        yield f"The first who did not win is {loser}; its price, {self._show(price)}, {sets}."

    def _otherwise(self, explained: ClientExplanation) -> Iterator[str]:
        """Tell what other prices would have brought, if only one client is explained."""
        if self._client is None or not explained.what_if:
            return
        client = explained.client
        asked = self._show(explained.asked or 0)
        if explained.promised is not None:
            highest = self._show(explained.highest or 0)
            yield f"{client} asked {asked} and would have won up to {highest}."
        else:
            limit = "no price at all"
            if explained.highest is not None:
                limit = f"a price of at most {self._show(explained.highest)}"
            yield f"{client} asked {asked} and did not win; {limit} would have won."
        asks = []
        for one in explained.what_if:
            promised = "nothing" if one.promised is None else self._show(one.promised)
            asks.append(f"{promised} at {self._show(one.ask)}")
        yield f"What it would have been promised at other prices: {'; '.join(asks)}."

    def _failed(self) -> Iterator[str]:
        for line in self._details.winners:
            if line.reason is None:
                continue
            if " by the operator" in line.reason:  # an operator refuses all winners or none
                yield f"Nobody was paid: {line.reason}."
                break
            yield f"{line.client} was not paid: {line.reason}."
        if not self._details.settled:
            yield "The round is not settled yet."

    def _paid(self) -> Iterator[str]:
        """Tell what the client was paid, if only one client is explained."""
        line = self._winners.get(self._client or "")
        if line is not None and line.paid:
            yield f"{line.client} earned {self._show(line.paid)}: {self._where(line.client)}."
        for one in decisions(self._books):
            client, _, number = one.about.rpartition(", round ")
            is_here = one.what == "corrected" and number == str(self._details.round)
            if is_here and self._client in (None, client):
                way = "Added to" if (one.amount or 0) > 0 else "Taken back from"
                amount = self._show(abs(one.amount or 0))
                yield f"{way} what {client} was paid: {amount}, by {one.by}: {one.reason}."

    def _where(self, client: str) -> str:
        """Tell which batches pay what the client earned, and what became of each payment."""
        words = []
        for one in payments_of(self._books, client, self._details.round):
            became = "which no bank's statement has shown yet"
            if one["transferred"]:
                became = f"transferred on {one['transferred']} by the bank's statement"
            if one["returned"]:
                became = "which came back"
            words.append(f"in batch {one['batch']}, {became}")
        if not words or words[-1].endswith("came back"):
            words.append("in no batch yet")
        return "; ".join(words)

    # --- client by client ------------------------------------------------------------------------

    def _clients(
        self, ratings: Sequence[float] | None, menu: Menu | None
    ) -> Iterator[ClientExplanation]:
        """Explain each client: first the winners, then the losers from the lowest price up."""
        asked = self._details.bids or {}
        losers = sorted(asked.keys() - self._winners.keys(), key=lambda one: (asked[one], one))
        names = [*self._winners, *losers]
        if self._client is not None:
            if self._client not in names:
                raise LedgerError(
                    f"client {self._client!r} neither bid nor won in round {self._details.round}"
                )
            names = [self._client]
        works_out = menu is not None and len(names) <= self._most
        for name in names:
            rating = None
            highest = None
            what_if: tuple[WhatIf, ...] = ()
            if self.seen and name in self._awarded.bids.clients:
                if ratings is not None:
                    rating = float(ratings[self._awarded.bids.clients.index(name)])
                if works_out:
                    highest = self._highest(name)
                    what_if = tuple(self._what_if(name, asked[name], highest))
            line = self._winners.get(name)
            yield ClientExplanation(
                name,
                asked.get(name),
                rating,
                None if line is None else line.promised,
                None if line is None else line.paid,
                None if line is None else line.reason,
                highest,
                what_if,
            )

    def _promised_at(self, client: str, ask: int) -> int | None:
        """Return what the client would be promised at that price; None if it would not win."""
        assert self._mechanism is not None  # noqa: S101 - callers have its menu
        menu = self._mechanism.menu(self._awarded.bids.replace_price(client, ask))
        award = menu.unweighed(self._awarded.offer, self._awarded.purse)
        return dict(zip(award.clients, award.payments, strict=True)).get(client)

    def _highest(self, client: str) -> int | None:
        """Return the highest price with which the client would have won; None if there is none.

        A bisection over whole units: the client wins at `low` (or `low` is 0), and not at `high`.
        """
        bids = self._awarded.bids
        unit = bids.unit
        beyond = max(2 * int(bids.prices.max()), self._awarded.purse.left) // unit + 1
        valid = MAX_MONEY >> ((len(bids) + 1).bit_length() + unit.bit_length())
        low = 0
        high = min(beyond, valid)
        while high - low > 1:
            middle = (low + high) // 2
            if self._promised_at(client, middle * unit) is None:
                high = middle
            else:
                low = middle
        return low * unit or None

    def _what_if(self, client: str, asked: int, highest: int | None) -> Iterator[WhatIf]:
        """Try half and twice the client's price, and the prices where winning turns to losing."""
        unit = self._awarded.bids.unit
        half = asked // 2
        asks = {max(half - half % unit, unit), asked, 2 * asked}
        if highest is not None:
            asks |= {highest, highest + unit}
        for ask in sorted(asks):
            yield WhatIf(ask, self._promised_at(client, ask))


def offer_words(offer: Offer, show: Any) -> str:
    """Describe an offer in words.

    Args:
        offer: The offer.
        show: A function that formats an amount in micro-units.
    """
    if not offer.limit or (offer.table is not None and not any(offer.table)):
        return "nothing: it let the round pass"
    if offer.table is not None:
        caps = []
        for cap, alike in groupby(enumerate(offer.table, 1), key=itemgetter(1)):
            numbers = [n for n, _ in alike]
            which = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
            if cap:
                caps.append(f"{show(cap)} for {which}")
        more = ", ..." if len(caps) > MOST_CAPS else ""
        return f"up to {', '.join(caps[:MOST_CAPS])}{more} clients"
    if offer.budget >= MAX_MONEY:
        return f"to take {counted(offer.limit, 'client')}, whatever they cost"
    many = f"up to {counted(offer.limit, 'client')}"
    if offer.limit >= MAX_MONEY:
        many = "as many clients as that pays"
    return f"up to {show(offer.budget)} for {many}"


def _inner(mechanism: Mechanism | None) -> Mechanism | None:
    """Return the mechanism inside a cap on what a client is paid."""
    return mechanism.inner if isinstance(mechanism, ClientCap) else mechanism


def _quality(mechanism: Mechanism, bids: Bids) -> tuple[list[float] | None, str | None]:
    """Return a mechanism's ratings, in the order of the bids, and what they are, if it has any."""
    inner = _inner(mechanism)
    column = getattr(inner, "quality", None)
    if isinstance(column, str):
        return bids.column(column).tolist(), f"Quality is the column {column!r} of the bids."
    for name, source in _SCORES.items():
        method = getattr(inner, name, None)
        if callable(method):
            return method(bids).tolist(), f"Each client's {name} is {source}."
    return None, None
