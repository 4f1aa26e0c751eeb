"""The properties a mechanism may claim, each a function that tries to refute it in one round.

A property takes a mechanism and a `Case` (bids that are taken as the true costs, an offer, a purse)
and returns a `CounterExample`, or None if it finds none. Tests draw cases with hypothesis, `bara
audit` at random; a mechanism's `claims` name the properties that it promises.
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
    """A round to try a mechanism on; each client's price is its true cost of taking part.

    Attributes:
        bids: The true costs.
        offer: The offer, made before the bids.
        purse: The money there is to spend.
        lies: The part of the lies worth trying that is tried; all of them unless there are many
            rounds.
    """

    bids: Bids
    offer: Offer
    purse: Purse
    lies: slice = field(default_factory=lambda: slice(None))


@dataclass(frozen=True)
class CounterExample:
    """A round in which a property fails, in words that name the clients and the amounts."""

    text: str


Property = Callable[[Mechanism, Case], CounterExample | None]


def individually_rational(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that no winner is paid less than it asks."""
    award = _award(mechanism, case)
    for client, payment in zip(award.clients, award.payments, strict=True):
        price = case.bids.price_of(client)
        if payment < price:
            return CounterExample(
                f"{client} asks {show_money(price)} and is paid {show_money(payment)}; "
                f"{in_words(case)}"
            )
    return None


def budget_feasible(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that an award costs no more than its cap, and no more than the purse holds."""
    award = _award(mechanism, case)
    cap = case.offer.cap(award.n) if award.n else 0
    for name, most in (("its cap", cap), ("the purse", case.purse.left)):
        if award.cost > most:
            return CounterExample(
                f"{show_money(award.cost)} is paid to {counted(award.n, 'client')}, but {name} is "
                f"{show_money(most)}; {in_words(case)}"
            )
    return None


def truthful_in_price(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that no client gains by asking anything but its cost, under any offer before the bids.

    Costs are whole numbers of the bids' unit. A client with another cost asks the next whole number
    above, and gains less than a unit by anything else: where a lie wins and that does not, it is
    paid at most what it would have asked.
    """
    honest = _award(mechanism, case)
    for client, cost in zip(case.bids.clients, case.bids.prices.tolist(), strict=True):
        gain = profit(honest, client, cost)
        for lie in _lies(case.bids, client)[case.lies]:
            menu = mechanism.menu(case.bids.replace_price(client, lie))
            paid = menu.payment_of(client, case.offer, case.purse)
            lying = paid - cost if paid else 0
            if lying > gain:
                return CounterExample(
                    f"{client} has a cost of {show_money(cost)} and gains {show_money(gain)} by "
                    f"asking that, but {show_money(lying)} by asking {show_money(lie)}; "
                    f"{in_words(case)}"
                )
    return None


def monotone(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that a winner that asks less still wins, and that recruiting more never costs less.

    Asking less may end the run: at first price it makes more clients affordable within the caps,
    perhaps more than the purse can pay, and an offer whose shortfall is `stop` then recruits
    nobody. That is no counter-example.
    """
    award = _award(mechanism, case)
    for client in award.clients:
        asked = case.bids.price_of(client)
        for price in _lies(case.bids, client)[case.lies]:
            if price >= asked:
                continue
            other = _award_if(mechanism, case, client, price)
            ends = other.fell_short and case.offer.shortfall == "stop"
            if client not in other.clients and not ends:
                return CounterExample(
                    f"{client} wins at {show_money(asked)} but not at {show_money(price)}; "
                    f"{in_words(case)}"
                )
    menu = mechanism.menu(case.bids)
    costs = [menu.cost(n) for n in range(1, len(menu) + 1)]
    for n, (fewer, more) in enumerate(pairwise(costs), 1):
        if more < fewer:
            return CounterExample(
                f"recruiting {n} costs {show_money(fewer)} but {n + 1} only {show_money(more)}; "
                f"{in_words(case)}"
            )
    return None


def exact_sum(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that the payments for n clients add up to the menu's cost of n."""
    menu = mechanism.menu(case.bids)
    for n in range(1, len(menu) + 1):
        cost = menu.cost(n)
        tried = replace(case, offer=Offer.caps([0] * (n - 1) + [cost]), purse=Purse(MAX_MONEY, 1))
        award = menu.award(tried.offer, tried.purse)
        if award.n != n or award.cost != cost:
            return CounterExample(
                f"the menu's price for n = {n} is {show_money(cost)}; an offer of exactly that "
                f"recruits {award.n} for {show_money(award.cost)}; {in_words(tried)}"
            )
    return None


def spends_the_budget(mechanism: Mechanism, case: Case) -> CounterExample | None:
    """Check that an award spends the budget whole, but for less than a unit per winner."""
    budget = min(case.offer.budget, case.purse.left)
    tried = replace(case, offer=Offer.spend(budget))
    award = mechanism.menu(case.bids).award(tried.offer, tried.purse)
    if award.n and award.cost <= budget - award.n * case.bids.unit:
        return CounterExample(
            f"{show_money(budget)} is offered, but {show_money(award.cost)} paid to "
            f"{counted(award.n, 'client')}; {in_words(tried)}"
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
"""All properties, by name."""

EVERY_PROPERTY = frozenset(PROPERTIES)

CRITICAL_PAYMENTS = EVERY_PROPERTY - {"spends-the-budget"}
"""The claims of the critical-payment auction, which cannot promise to spend a budget whole.

Prices that nobody's own bid moves leave some of it over.
"""


_SCORES = np.array([1.0, 2.0, 3.0, 10.0, 1 / 3, 0.7])


def random_case(
    rng: np.random.Generator, columns: tuple[str, ...] = ("samples",), unit: int = 1
) -> Case:
    """Return a random case: few clients, many ties, any kind of offer, large and small purses."""
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
    """Return the award, without weights, if that client asked this price."""
    return mechanism.menu(case.bids.replace_price(client, price)).unweighed(case.offer, case.purse)


def profit(award: Award, client: str, cost: int) -> int:
    """Return a client's profit from an award: its payment less its cost, 0 if it loses."""
    if client not in award.clients:
        return 0
    return award.payments[award.clients.index(client)] - cost


def _lies(bids: Bids, client: str) -> list[int]:
    """Return prices at which outcomes may change: near every price, in between, and far off."""
    unit = bids.unit
    prices = bids.prices.tolist()
    own = bids.price_of(client)
    scores = [values[bids.clients.index(client)] / values for values in bids.columns.values()]
    if len(scores) > 1:  # some mechanisms multiply columns into the quality
        scores.append(np.prod(scores, axis=0))
    pivots = list(prices)
    for score in scores:
        pivots += [int(price * ratio) for price, ratio in zip(prices, score, strict=True)]
    lies = {unit, own // 2, 2 * own, 3 * max(prices) + unit}
    for pivot in pivots:
        lies.update((pivot - unit, pivot, pivot + unit, (pivot + own) // 2))
    payable = {lie - lie % unit for lie in lies}
    return sorted(lie for lie in payable if lie > 0 and lie != own)


def in_words(case: Case) -> str:
    """Return a case in words: costs, columns, offer, purse."""
    asks = []
    for client, price in zip(case.bids.clients, case.bids.prices.tolist(), strict=True):
        asks.append(f"{client} {show_money(price)}")
    words = [f"costs: {', '.join(asks)}"]
    for name, values in case.bids.columns.items():
        words.append(f"{name} {values.tolist()}")
    words += [f"offer: {_offer_in_words(case.offer)}", f"purse: {show_money(case.purse.left)}"]
    return "; ".join(words)


def _offer_in_words(offer: Offer) -> str:
    if offer.table is not None:
        words = "caps " + ", ".join(map(show_money, offer.table))
    elif offer.budget == MAX_MONEY:
        words = f"{offer.limit} clients"
    else:
        words = f"up to {show_money(offer.budget)}"
    if offer.shortfall == "stop":
        words += ", or stop"
    return words
