"""Mechanisms, which decide who is recruited and what they are paid: one file each.

To write your own, use what ours are made of: `critical_menu` is the auction over any quality that
the server knows, `learned_menu` and `capped_menu` are two variants of it; `sizes`, `by_client` and
`loss_drop` make qualities; `CRITICAL_PAYMENTS` names what such an auction promises.
"""

from bara.mechanisms._critical import capped_menu, critical_menu, reserve_price
from bara.mechanisms._learned import by_client, learned_menu, loss_drop, sizes
from bara.mechanisms.properties import CRITICAL_PAYMENTS, EVERY_PROPERTY
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

__all__ = [
    "CRITICAL_PAYMENTS",
    "EVERY_PROPERTY",
    "MECHANISMS",
    "QualityAuction",
    "bid_price_first",
    "by_client",
    "capped_menu",
    "critical_menu",
    "learned_menu",
    "loss_drop",
    "reserve_price",
    "sizes",
]
