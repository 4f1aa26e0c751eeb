"""The Shapley value of each client's remembered update: its share of what a round's model gained.

Notation:
    N       the clients of which an update is remembered
    v(S)    the accuracy of the model that the updates of the clients in S make; v of none is that
            of the model before the round
    phi_i   the mean, over all orders of N, of what client i adds to those before it

The values add up to v(N) - v(none). They are estimated from remembered updates and evaluations on
the server alone, without training, after GTG-Shapley (Liu et al. 2022) and truncated Monte Carlo
(Ghorbani and Zou 2019): orders are drawn, and an order is cut where the clients so far come as near
to v(N) as `TOLERANCE`. Each draw is a *cycle*: one random order and all of its rotations, so that
every client stands once at every place. Cycles are independent, which gives each value its error.

For reports, never for payments: `docs/silos.md` says why.
"""

from collections.abc import Callable, Collection

import numpy as np

from bara.records import FloatArray, Shapley

TOLERANCE = 0.001
"""The accuracy that is near enough: to cut an order, and as the error to stop at."""

FEWEST, MOST = 3, 20
"""The fewest and the most cycles of orders."""


def estimate_shapley(
    clients: Collection[str],
    worth: Callable[[frozenset[str]], float],
    rng: np.random.Generator,
    tolerance: float = TOLERANCE,
) -> Shapley:
    """Estimate the Shapley value of each client.

    Args:
        clients: N, the clients.
        worth: v, the accuracy that a set of clients makes; asked once for each set.
        rng: The source of orders.
        tolerance: The accuracy that is near enough; 0 to cut no order and draw `MOST` cycles.

    >>> alike = estimate_shapley("ab", lambda some: 0.8 if some else 0.1, np.random.default_rng(0))
    >>> {client: round(value, 3) for client, value in alike.values.items()}
    {'a': 0.35, 'b': 0.35}
    """
    known: dict[frozenset[str], float] = {}

    def value_of(some: frozenset[str]) -> float:
        if some not in known:
            known[some] = worth(some)
        return known[some]

    names = sorted(clients)
    cycles: list[FloatArray] = []
    errors = np.full(len(names), np.inf)
    while len(cycles) < FEWEST or (len(cycles) < MOST and errors.max() >= tolerance):
        order = rng.permutation(len(names))
        added = np.zeros(len(names))
        for first in range(len(names)):
            added += _added(names, np.roll(order, -first), value_of, tolerance)
        cycles.append(added / len(names))
        if len(cycles) > 1:
            errors = np.std(cycles, axis=0, ddof=1) / len(cycles) ** 0.5
    values = np.mean(cycles, axis=0)
    return Shapley(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, errors.tolist(), strict=True)),
        len(known),
    )


def _added(
    names: list[str],
    order: np.ndarray[tuple[int], np.dtype[np.int64]],
    value_of: Callable[[frozenset[str]], float],
    tolerance: float,
) -> FloatArray:
    """Return what each client adds to those before it in one order."""
    added = np.zeros(len(names))
    whole = value_of(frozenset(names))
    some: frozenset[str] = frozenset()
    reached = value_of(some)
    for place in order.tolist():
        if some and abs(whole - reached) < tolerance:
            break
        some |= {names[place]}
        before, reached = reached, value_of(some)
        added[place] = reached - before
    return added
