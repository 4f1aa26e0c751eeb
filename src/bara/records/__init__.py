"""The nouns of the market, frozen and checked at the door.

Money is a whole number of micro-units (one millionth of the budget's unit) everywhere; `money` and `show_money`
convert to and from decimals without loss.
"""

from bara.records.bids import TIE, Bids, FloatArray, IntArray
from bara.records.menus import Menu
from bara.records.money import MAX_MONEY, MICRO, decimal_money, json_money, money, show_money
from bara.records.offers import Award, Offer, Purse, Shortfall
from bara.records.rounds import AwardedRound, Belief, Delivery, Evaluation, Evidence, Plan, RoundRecord

__all__ = [
    "MAX_MONEY",
    "MICRO",
    "TIE",
    "Award",
    "AwardedRound",
    "Belief",
    "Bids",
    "Delivery",
    "Evaluation",
    "Evidence",
    "FloatArray",
    "IntArray",
    "Menu",
    "Offer",
    "Plan",
    "Purse",
    "RoundRecord",
    "Shortfall",
    "decimal_money",
    "json_money",
    "money",
    "show_money",
]
