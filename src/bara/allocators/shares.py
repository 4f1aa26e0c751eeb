"""A fixed, linear schedule of shares, spent as a budget a round."""

from collections.abc import Callable
from fractions import Fraction

from bara.records import Offer, Purse

Weight = Callable[[int], int]
"""The share of round t, in any unit; linear in t."""


def scheduled(purse: Purse, weight: Weight, unit: Fraction) -> Offer:
    """B_total times the weight of this round times what a weight of 1 is worth."""
    return Offer.spend(int(purse.total * weight(purse.round) * unit))


def carried_over(purse: Purse, weight: Weight) -> Offer:
    """What is left, split by weight among the rounds that are left."""
    first, last = weight(purse.round), weight(purse.max_rounds)
    twice_whole = (first + last) * purse.rounds_left  # an arithmetic series
    return Offer.spend(purse.left * 2 * first // twice_whole if twice_whole else 0)
