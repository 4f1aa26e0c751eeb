"""The market's records: bids, menus, offers, awards and rounds, immutable and checked when made.

Every amount of money is a whole number of micro-units (one millionth of the budget's unit); `money`
and `show_money` convert from and to decimals without loss.
"""

from bara.records.bids import TIE, Bids, FloatArray, IntArray
from bara.records.goals import Goal, Otherwise
from bara.records.limits import Limits
from bara.records.menus import Menu
from bara.records.money import (
    DECIMALS,
    MAX_MONEY,
    MICRO,
    decimal_money,
    json_money,
    money,
    plain_money,
    show_money,
    smallest_unit,
    tell_money,
)
from bara.records.offers import Award, Offer, Purse, Shortfall
from bara.records.register import Entry, Register
from bara.records.rounds import (
    AwardedRound,
    Belief,
    Delivery,
    Evaluation,
    Evidence,
    LeftOut,
    MoneyOutlook,
    Plan,
    Prospect,
    RoundRecord,
    Shapley,
    taken_home,
)

__all__ = [
    "DECIMALS",
    "MAX_MONEY",
    "MICRO",
    "TIE",
    "Award",
    "AwardedRound",
    "Belief",
    "Bids",
    "Delivery",
    "Entry",
    "Evaluation",
    "Evidence",
    "FloatArray",
    "Goal",
    "IntArray",
    "LeftOut",
    "Limits",
    "Menu",
    "MoneyOutlook",
    "Offer",
    "Otherwise",
    "Plan",
    "Prospect",
    "Purse",
    "Register",
    "RoundRecord",
    "Shapley",
    "Shortfall",
    "decimal_money",
    "json_money",
    "money",
    "plain_money",
    "show_money",
    "smallest_unit",
    "taken_home",
    "tell_money",
]
