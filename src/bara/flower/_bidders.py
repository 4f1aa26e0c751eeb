"""The client's side of the auction: ready bidders, and `answer_bids` to use one in a ClientApp.

Nothing here imports torch, so that answering a request stays cheap.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from bara.clients.costs import Distribution, price_shares
from bara.errors import ConfigError, InvalidBidError
from bara.flower import _bid_messages as bid_messages
from bara.flower._bid_messages import Bid, Price, checked_price
from bara.randomness import stream

Bidder = Callable[[int, Context], Bid | Price | None]
"""Takes the round and the node's context, returns the node's bid; None to sit the round out."""


def answer_bids(app: ClientApp, bidder: Bidder) -> None:
    """Let a ClientApp answer the server's requests for bids.

    The app's mods do not see these requests: mods that clip or hide a model (`fixedclipping_mod`)
    refuse a message without one.

    Args:
        app: The app that answers.
        bidder: Decides what to bid.
    """

    def bid(message: Message, context: Context) -> Message:
        price = bidder(bid_messages.asked_round(message), context)
        return Message(bid_messages.answer(price, context.node_config), reply_to=message)

    # Flower has no public way to exempt one handler from an app's mods. A handler gets the mods
    # that the app has when it is registered, so the app has none for that moment.
    mods, app._mods = app._mods, []  # noqa: SLF001 - see above
    try:
        app.query(bid_messages.ACTION)(bid)
    finally:
        app._mods = mods  # noqa: SLF001 - see above


def fixed(price: Price) -> Bidder:
    """Return a bidder that asks the same price every round."""
    checked_price(price, "the price of `fixed`")
    return lambda _round, _context: price


def per_sample(price: float, samples: int | Callable[[Context], int]) -> Bidder:
    """Return a bidder that asks a price per training sample and reports the number of samples.

    Args:
        price: The price per sample, in units of the budget; it may be below a millionth.
        samples: The number of samples, or a function that counts them in the node's context.
    """
    for what, number in (("price", price), ("number of samples", samples)):
        is_number = isinstance(number, SupportsFloat) and not isinstance(number, bool)
        if not callable(number) and not (is_number and math.isfinite(number) and number > 0):
            raise InvalidBidError(
                f"the {what} of `per_sample` must be a finite positive number, got {number!r}"
            )

    def bid(_round: int, context: Context) -> Bid:
        count = samples(context) if callable(samples) else samples
        return Bid(price * count, {"samples": count})

    return bid


def drawn(
    distribution: str, seed: int = 0, *, stability: float = 0.0, drift: float = 0.0
) -> Bidder:
    """Return a bidder that draws its costs from the seed and the node.

    Args:
        distribution: The distribution of the costs, such as `uniform(0.5, 1.5)`.
        seed: The seed of the draws.
        stability: How much of a cost is the client's own and stays: 0 if costs are redrawn every
            round, 1 if the node's is drawn once (as `clients.stability` in a simulation).
        drift: The fraction by which costs grow each round.
    """
    source = Distribution.parse(distribution)
    if not 0 <= stability <= 1:
        raise ConfigError(f"the stability of `drawn` must be within 0 and 1, got {stability!r}")
    if not -1 < drift < math.inf:
        raise ConfigError(f"the drift of `drawn` must be finite and above -1, got {drift!r}")

    def bid(round: int, context: Context) -> Price:
        node = int(context.node_config.get("partition-id", context.node_id))
        redrawn = stream(seed, "costs", round, node)
        if stability:
            own = stream(seed, "own costs", node).standard_normal(1)
            shares = price_shares(own, redrawn.standard_normal(1), stability)
            costs = source.quantiles(shares)
        else:
            costs = source.draw(redrawn, 1)
        return max(float(costs[0]) * (1 + drift) ** (round - 1), 1e-6)

    return bid


def from_environment(name: str = "BARA_PRICE") -> Bidder:
    """Return a bidder that asks the price in an environment variable of the client's machine.

    Args:
        name: The variable; it is read each round.
    """

    def bid(_round: int, _context: Context) -> Price:
        if name not in os.environ:
            raise ConfigError(
                f"the environment variable {name} is not set; set it to this client's price"
            )
        price = os.environ[name].strip()
        checked_price(price, f"the price in the environment variable {name}")
        return price

    return bid


def from_file(path: str | Path | None = None) -> Bidder:
    """Return a bidder that asks the price in a file on the client's machine.

    The file is read each round; while it is empty, the client sits out.

    Args:
        path: The file; None to use `bid-file` from the node's configuration.
    """

    def bid(_round: int, context: Context) -> Price | None:
        place = path if path is not None else context.node_config.get("bid-file")
        if place is None:
            raise ConfigError(
                "the node configuration has no bid-file; "
                "set it to the file with this client's price"
            )
        try:
            price = Path(str(place)).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read this client's price: {error}") from None
        if not price:
            return None
        checked_price(price, f"the price in the file {place}")
        return price

    return bid
