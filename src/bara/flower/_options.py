"""How a server on Flower goes about its work."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final, get_type_hints

from bara.errors import ConfigError
from bara.flower.identity import By
from bara.plugins import check_options
from bara.runs.config import Config
from bara.server.state import Keeping


@final
@dataclass(frozen=True)
class ServerOptions:
    """How a server on Flower goes about its work.

    Attributes:
        bid_seconds: How long a round's bids stay open; who is silent is not in this round's menu.
        train_seconds: How long winners may train; who is silent then is void.
        evaluate_seconds: How long clients may evaluate, where the strategy has them do so.
        fewest: Connected nodes without which no round begins.
        patience: Seconds to wait for them before the run stops between rounds.
        columns: What every bid must carry.
        evidence: Where a client's loss before and after comes from: nowhere, `server`, measured
            with the evaluation function on the server's own data, or `client`, its own metrics
            `loss-before` and `loss-after` (for simulated clients, which do not lie).
        outliers: Refuse updates so many robust deviations farther from the others than is usual;
            None for none.
        same_shapes: Refuse updates that are not shaped as the model; not so for trees, which grow.
        accuracy: The metric that decisions are made on; `loss`, `test-accuracy` and `test-loss` are
            read beside it.
        better: Whether that metric is better when `lower` (a loss) or `higher`, of any size; None
            for a fraction.
        known_by: What clients are known by.
        names: What clients are called, by the fingerprints of their keys; others are called what
            they say.
        partitions: The names of those that are known by their partition; numbered unless given.
        measured: Write down how long each winner took and how much was sent to and fro.
        blind: The allocator does not look at accuracy, so that a metric need not be mapped to one.
        seed: Decides, anew each round, who goes first of those who ask the same; None for the order
            of their names.
        keeping: What it keeps from round to round.
        unit: The smallest amount that can be paid, in micro-units; a bid that is no multiple of it
            is left out.
    """

    bid_seconds: float = 60.0
    train_seconds: float = 3600.0
    evaluate_seconds: float = 600.0
    fewest: int = 2
    patience: float = 600.0
    columns: tuple[str, ...] = ()
    evidence: Literal["none", "server", "client"] = "none"
    outliers: float | None = None
    same_shapes: bool = True
    accuracy: str = "accuracy"
    better: Literal["lower", "higher"] | None = None
    known_by: By = "key"
    names: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    measured: bool = False
    blind: bool = False
    seed: int | None = None
    keeping: Keeping = field(default_factory=Keeping)
    unit: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be waited for, or compared."""
        for name in ("bid_seconds", "train_seconds", "evaluate_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(
                    f"federation.{name} must be finite and positive, got {getattr(self, name)}"
                )
        if self.fewest < 1 or self.patience < 0:
            raise ConfigError(
                "federation.fewest must be at least 1 and federation.patience at least 0, got "
                f"{self.fewest} and {self.patience}"
            )
        if self.outliers is not None and not self.same_shapes:
            raise ConfigError(
                "federation.same_shapes must be true with a mechanism that refuses updates far from the others', got "
                "false; or choose a mechanism that does not (fair: mechanism.outliers = 0)"
            )
        if self.keeping.memory != "off" and not self.same_shapes:
            raise ConfigError(
                "federation.same_shapes must be true with training.memory, which adds updates of different rounds, got "
                'false; or set training.memory = "off"'
            )


def engine_options(
    whose: str, config: Config, *names: str, prefix: str = "federation."
) -> dict[str, Any]:
    """The engine's options in a configuration; refused where one is not among these or not of its type."""
    known = {"strategy": str, **get_type_hints(ServerOptions)}
    check_options(
        whose, config.federation.options, {name: known[name] for name in names}, prefix=prefix
    )
    return config.federation.options
