"""Mechanisms, which decide who is recruited and what they are paid: one file each."""

from bara.mechanisms._critical import critical_menu
from bara.mechanisms.quality_auction import QualityAuction, bid_price_first
from bara.plugins import Registry
from bara.protocols import Mechanism

MECHANISMS: Registry[Mechanism] = Registry(
    "mechanism",
    {
        "turns": "bara.mechanisms.turns:Turns",
        "standing": "bara.mechanisms.standing:Standing",
        "bid-price-first": "bara.mechanisms.quality_auction:bid_price_first",
        "quality": "bara.mechanisms.quality_auction:QualityAuction",
        "fair": "bara.mechanisms.fair:Fair",
        "fl-market": "bara.mechanisms.fl_market:FLMarket",
        "rrafl": "bara.mechanisms.rrafl:Rrafl",
        "fmore": "bara.mechanisms.fmore:FMore",
        "proportional-share": "bara.mechanisms.proportional_share:ProportionalShare",
        "a-fl": "bara.mechanisms.a_fl:AFL",
        "posted-price": "bara.mechanisms.posted_price:PostedPrice",
        "tariff": "bara.mechanisms.posted_price:Tariff",
    },
    Mechanism,
)
"""Every mechanism by name; others by import path or by the entry-point group `bara.mechanisms`."""

__all__ = ["MECHANISMS", "QualityAuction", "bid_price_first", "critical_menu"]
