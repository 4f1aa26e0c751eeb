"""The client's side of the auction: ready bidders, and the few lines that let a ClientApp answer.

Nothing here imports torch, so that answering a request stays cheap.
"""

import os
from collections.abc import Callable
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from bara.clients.costs import Distribution
from bara.errors import ConfigError
from bara.flower import _bid_messages as bid_messages
from bara.flower._bid_messages import Bid, Price
from bara.randomness import stream

Bidder = Callable[[int, Context], Bid | Price | None]
"""From a round and the node's context to what taking part costs it; None to sit the round out."""


def answer_bids(app: ClientApp, bidder: Bidder) -> None:
    """Let a ClientApp answer the server's requests for bids.

    Its mods do not see them: those that clip or hide a model (`fixedclipping_mod`) refuse a message
    that holds none.
    """

    def bid(message: Message, context: Context) -> Message:
        price = bidder(bid_messages.asked_round(message), context)
        return Message(bid_messages.answer(price, context.node_config), reply_to=message)

    mods, app._mods = app._mods, []  # noqa: SLF001 - Flower has no way to leave one handler out of an app's mods
    try:
        app.query(bid_messages.ACTION)(bid)
    finally:
        app._mods = mods  # noqa: SLF001


def fixed(price: Price) -> Bidder:
    """The same price every round."""
    return lambda _round, _context: price


def per_sample(price: float, samples: int | Callable[[Context], int]) -> Bidder:
    """So much for each sample this client trains on; the bid also says how many they are."""

    def bid(_round: int, context: Context) -> Bid:
        count = samples(context) if callable(samples) else samples
        return Bid(price * count, {"samples": count})

    return bid


def drawn(distribution: str, seed: int = 0) -> Bidder:
    """A cost drawn anew each round, from `uniform(0.5, 1.5)` say; it depends on the seed, the round and the node."""
    source = Distribution.parse(distribution)

    def bid(round: int, context: Context) -> Price:
        who = int(context.node_config.get("partition-id", context.node_id))
        return max(float(source.draw(stream(seed, "costs", round, who), 1)[0]), 1e-6)

    return bid


def from_environment(name: str = "BARA_PRICE") -> Bidder:
    """The price in an environment variable of the machine the client runs on; it never leaves it but as a bid."""

    def bid(_round: int, _context: Context) -> Price:
        if name not in os.environ:
            raise ConfigError(
                f"the environment variable {name} is not set; set it to this client's price"
            )
        return os.environ[name].strip()

    return bid


def from_file(path: str | Path | None = None) -> Bidder:
    """The price in a file of the client's own machine, read each round; None for the node configuration's `bid-file`.

    An empty file sits the round out.
    """

    def bid(_round: int, context: Context) -> Price | None:
        place = path if path is not None else context.node_config.get("bid-file")
        if place is None:
            raise ConfigError(
                "the node configuration has no bid-file; set it to the file with this client's price"
            )
        try:
            return Path(str(place)).read_text().strip() or None
        except OSError as error:
            raise ConfigError(f"cannot read this client's price: {error}") from None

    return bid
