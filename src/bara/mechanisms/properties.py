"""What a mechanism may promise, each as a function that looks for a counter-example in one round.

A property takes a mechanism and a `Case` (bids that are taken as the true costs, an offer, a purse)
and returns a `CounterExample`, or None if it found none. Tests draw cases with hypothesis, `bara
audit` at random; a mechanism's `claims` say which of them it promises.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from bara.protocols import Mechanism
from bara.records import MAX_MONEY, Award, Bids, Offer, Purse, Shortfall, show_money
from bara.text import counted


@dataclass(frozen=True, eq=False)
class Case:
    """One round to try a mechanism on; the prices are what taking part really costs each client.

    Attributes:
        bids: The true costs.
        offer: What the allocator said before.
        purse: What there is to spend.
        lies: Which of the lies worth trying are tried; all of them unless many rounds are looked
            at.
    """

    bids: Bids
    offer: Offer
    purse: Purse
    lies: slice = field(default_factory=lambda: slice(None))


@dataclass(frozen=True)
class CounterExample:
    """Where a property fails, in words that name the clients and the amounts."""

    text: str


Property = Callable[[Mechanism, Case], CounterExample | None]


def individually_rational(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """No winner is paid less than it asks."""
    award = _award(mechanism, case)
    for client, payment in zip(award.clients, award.payments, strict=True):
        price = case.bids.price_of(client)
        if payment < price:
            return CounterExample(
                f"{client} asks {show_money(price)} and is paid {show_money(payment)}; {_tell(case)}"
            )
    return None


def budget_feasible(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """The award costs no more than the offer's cap for its n, and no more than the purse holds."""
    award = _award(mechanism, case)
    for name, most in (
        ("its cap", case.offer.cap(award.n) if award.n else 0),
        ("the purse", case.purse.left),
    ):
        if award.cost > most:
            return CounterExample(
                f"{show_money(award.cost)} is paid to {counted(award.n, 'client')}, but {name} is {show_money(most)}; "
                f"{_tell(case)}"
            )
    return None


def truthful_in_price(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """No client gains by asking anything else than its cost, whatever the offer, which was made before the bids.

    Costs are whole numbers of the bids' unit. Who has another one asks the next whole one up, and
    gains less than a unit by anything else: where that wins and asking the truth does not, it is
    paid at most what it would have asked.
    """
    honest = _award(mechanism, case)
    for client, cost in zip(case.bids.clients, case.bids.prices.tolist(), strict=True):
        gain = profit(honest, client, cost)
        for lie in _lies(case.bids, client)[case.lies]:
            award = _award_if(mechanism, case, client, lie)
            if profit(award, client, cost) > gain:
                return CounterExample(
                    f"{client} has a cost of {show_money(cost)} and gains {show_money(gain)} by asking that, but "
                    f"{show_money(profit(award, client, cost))} by asking {show_money(lie)}; {_tell(case)}"
                )
    return None


def monotone(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """A winner that asks less still wins, and recruiting more never costs less.

    Unless asking less ends the run: at first price it makes more clients affordable within the
    caps, perhaps more than the purse can pay, and an offer whose shortfall is `stop` then recruits
    nobody.
    """
    award = _award(mechanism, case)
    for client in award.clients:
        for price in _lies(case.bids, client)[case.lies]:
            if price < case.bids.price_of(client):
                other = _award_if(mechanism, case, client, price)
                ends = other.fell_short and case.offer.shortfall == "stop"
                if client not in other.clients and not ends:
                    return CounterExample(
                        f"{client} wins at {show_money(case.bids.price_of(client))} but not at {show_money(price)}; "
                        f"{_tell(case)}"
                    )
    menu = mechanism.menu(case.bids)
    costs = [menu.cost(n) for n in range(1, len(menu) + 1)]
    for n, (fewer, more) in enumerate(pairwise(costs), 1):
        if more < fewer:
            return CounterExample(
                f"recruiting {n} costs {show_money(fewer)} but {n + 1} only {show_money(more)}; {_tell(case)}"
            )
    return None


def exact_sum(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """What the menu says n clients cost is what the payments for n clients add up to."""
    menu = mechanism.menu(case.bids)
    for n in range(1, len(menu) + 1):
        cost = menu.cost(n)
        tried = replace(case, offer=Offer.caps([0] * (n - 1) + [cost]), purse=Purse(MAX_MONEY, 1))
        award = menu.award(tried.offer, tried.purse)
        if award.n != n or award.cost != cost:
            return CounterExample(
                f"the menu's price for n = {n} is {show_money(cost)}; an offer of exactly that recruits {award.n} for "
                f"{show_money(award.cost)}; {_tell(tried)}"
            )
    return None


def spends_the_budget(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Offered a budget, an award that recruits anyone spends all of it, but for less than the least unit per winner."""
    budget = min(case.offer.budget, case.purse.left)
    tried = replace(case, offer=Offer.spend(budget))
    award = mechanism.menu(case.bids).award(tried.offer, tried.purse)
    if award.n and award.cost <= budget - award.n * case.bids.unit:
        return CounterExample(
            f"{show_money(budget)} is offered, but {show_money(award.cost)} paid to {counted(award.n, 'client')}; "
            f"{_tell(tried)}"
        )
    return None


PROPERTIES: dict[str, Property] = {
    check.__name__.replace("_", "-"): check
    for check in (
        individually_rational,
        budget_feasible,
        truthful_in_price,
        monotone,
        exact_sum,
        spends_the_budget,
    )
}
"""Every property by name."""

EVERY_PROPERTY = frozenset(PROPERTIES)

CRITICAL_PAYMENTS = EVERY_PROPERTY - {"spends-the-budget"}
"""What the critical-payment auction promises: a price that nobody's own bid moves leaves some of a budget over."""


_SCORES = np.array([1.0, 2.0, 3.0, 10.0, 1 / 3, 0.7])


def random_case(
    rng: np.random.Generator, columns: tuple[str, ...] = ("samples",), unit: int = 1
) -> Case:
    """A round as an audit draws it: few clients, many ties, every kind of offer, purses that do and do not suffice."""
    count = int(rng.integers(1, 9))
    scale = (3, 20, 10**6)[rng.integers(3)]
    prices = rng.integers(1, scale + 1, count) * unit
    names = tuple(f"client-{i}" for i in range(count))
    extra = {name: _SCORES[rng.integers(len(_SCORES), size=count)] for name in columns}
    bids = Bids(names, prices, extra, unit)
    most = int(prices.max()) * count
    offer = _random_offer(rng, count, most)
    return Case(bids, offer, Purse(int(rng.integers(1, 2 * most + 2)), 10))


def _random_offer(rng: np.random.Generator, count: int, most: int) -> Offer:
    shortfall: Shortfall = "shrink" if rng.random() < 0.5 else "stop"
    kind = rng.integers(3)
    if kind == 0:
        return Offer.recruit(int(rng.integers(0, count + 2)), shortfall=shortfall)
    if kind == 1:
        return Offer.spend(int(rng.integers(0, 2 * most + 1)), shortfall=shortfall)
    return Offer.caps(
        rng.integers(0, 2 * most + 1, int(rng.integers(0, count + 2))), shortfall=shortfall
    )


def _award(mechanism: Mechanism, case: Case) -> Award:
    return mechanism.menu(case.bids).award(case.offer, case.purse)


def _award_if(mechanism: Mechanism, case: Case, client: str, price: int) -> Award:
    """The award, but for its weights, had that client asked this price."""
    return mechanism.menu(case.bids.replace_price(client, price)).unweighed(case.offer, case.purse)


def profit(award: Award, client: str, cost: int) -> int:
    """What a client has of an award: its payment less its cost, nothing if it loses."""
    return award.payments[award.clients.index(client)] - cost if client in award.clients else 0


def _lies(bids: Bids, client: str) -> list[int]:
    """Prices at which an outcome can change: around everybody's price, in between, and far off."""
    prices = bids.prices.tolist()
    own = bids.price_of(client)
    scores = [values[bids.clients.index(client)] / values for values in bids.columns.values()]
    # Columns multiply into the quality of some mechanisms: their product is tried like each of
    # them.
    scores += [np.prod(scores, axis=0)] if len(scores) > 1 else []
    unit = bids.unit
    there = [*prices, *(int(b * s) for score in scores for b, s in zip(prices, score, strict=True))]
    near = {p + step for p in there for step in (-unit, 0, unit)} | {(p + own) // 2 for p in there}
    far = {unit, own // 2, 2 * own, 3 * max(prices) + unit}
    return sorted(p for p in {p - p % unit for p in near | far} if p > 0 and p != own)


def _tell(case: Case) -> str:
    asks = ", ".join(
        f"{c} {show_money(int(p))}"
        for c, p in zip(case.bids.clients, case.bids.prices, strict=True)
    )
    extra = "".join(f"; {name} {values.tolist()}" for name, values in case.bids.columns.items())
    return f"costs: {asks}{extra}; offer: {_in_words(case.offer)}; purse: {show_money(case.purse.left)}"


def _in_words(offer: Offer) -> str:
    words = (
        f"{offer.limit} clients"
        if offer.budget == MAX_MONEY
        else f"up to {show_money(offer.budget)}"
    )
    if offer.table is not None:
        words = "caps " + ", ".join(map(show_money, offer.table))
    return words + (", or stop" if offer.shortfall == "stop" else "")
