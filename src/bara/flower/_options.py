"""The settings of a server on Flower."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final, get_type_hints

from bara.errors import ConfigError
from bara.flower.identity import By
from bara.options import check_options
from bara.runs.config import Config
from bara.server.state import Keeping

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class AppOptions:
    """The settings that an app's configuration may hold, in `bara.federation`.

    Attributes:
        bid_seconds: How long a round's bids stay open; a client that is silent is left out of the
            round's menu.
        train_seconds: How long winners may train; a winner that is silent until then is void.
        evaluate_seconds: How long clients may evaluate, if the strategy asks them to.
        fewest: The number of connected nodes that a round needs to begin.
        patience: How many seconds to wait for these nodes before the run stops between rounds.
        accuracy: The metric that decisions are based on; None to find it among those that the app
            reports. `loss`, `test-accuracy` and `test-loss` are read, too.
        better: Whether that metric, which may then have any size, is better when `lower` (a loss)
            or `higher`; None if the metric is a fraction, or its name says that it is a loss.
        same_shapes: Refuse updates whose arrays are not shaped as the model's; false for trees,
            which grow.
    """

    bid_seconds: float = 60.0
    train_seconds: float = 3600.0
    evaluate_seconds: float = 3600.0
    fewest: int = 2
    patience: float = 600.0
    accuracy: str | None = None
    better: Better | None = None
    same_shapes: bool = True


@final
@dataclass(frozen=True)
class ServerOptions(AppOptions):
    """All settings of a server on Flower: the app's, and those that follow from the run.

    Attributes:
        columns: The columns that every bid must have.
        evidence: Where a client's loss before and after training comes from: `none`, no losses;
            `server`, measured with the evaluation function on the server's own data; `client`, the
            client's metrics `loss-before` and `loss-after` (for simulated clients, which do not
            lie).
        outliers: Refuse updates that lie this many robust deviations farther from the others than
            is usual; None to refuse none.
        known_by: The kind of identity that clients are known by.
        names: The names of clients by the fingerprints of their keys; other clients have the names
            that they give themselves.
        partitions: The names of clients that are known by their partition; empty to number them.
        measured: Record how long each winner took and how many bytes were sent and received.
        blind: Neither the allocator nor a memory that learns its step looks at accuracy, so no
            metric need be mapped to one.
        seed: The seed of the order, new in each round, of clients with equal bids; None to order
            them by name.
        keeping: The settings for what lasts from round to round.
    """

    columns: tuple[str, ...] = ()
    evidence: Literal["none", "server", "client"] = "none"
    outliers: float | None = None
    known_by: By = "key"
    names: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    measured: bool = False
    blind: bool = False
    seed: int | None = None
    keeping: Keeping = field(default_factory=Keeping)

    def __post_init__(self) -> None:
        """Refuse times that cannot be waited for, and settings that contradict each other."""
        for name in ("bid_seconds", "train_seconds", "evaluate_seconds"):
            seconds = getattr(self, name)
            if not 0 < seconds < math.inf:
                raise ConfigError(f"federation.{name} must be finite and positive, got {seconds}")
        if self.fewest < 1 or self.patience < 0:
            raise ConfigError(
                "federation.fewest must be at least 1 and federation.patience at least 0, got "
                f"{self.fewest} and {self.patience}"
            )
        if self.outliers is not None and not self.same_shapes:
            raise ConfigError(
                "federation.same_shapes must be true with a mechanism that refuses updates far "
                "from the others', got false; or choose a mechanism that does not (fair: "
                "mechanism.outliers = 0)"
            )
        if self.keeping.memory != "off" and not self.same_shapes:
            raise ConfigError(
                "federation.same_shapes must be true with training.memory, which adds updates of "
                'different rounds, got false; or set training.memory = "off"'
            )


def app_options(config: Config) -> dict[str, Any]:
    """Return the options in an app's configuration; refuse unknown ones and wrong types."""
    options = config.federation.options
    types = get_type_hints(AppOptions)
    check_options("the Flower app", options, types, prefix="bara.federation.")
    return options
