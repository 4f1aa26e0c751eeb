"""What the market asks of its three partners. Small on purpose; implement one and the contract checks apply to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from bara.errors import ConfigError
from bara.records import (
    Award,
    Belief,
    Bids,
    Delivery,
    Evaluation,
    Goal,
    Menu,
    Offer,
    Purse,
    RoundRecord,
)


@runtime_checkable
class Allocator(Protocol):
    """Decides how much a round may cost."""

    def ask(self, purse: Purse) -> Offer:
        """What it would pay for each n, said before the bids are opened. Pure: asked twice, the same answer."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round, its whole menu included; the only thing that changes an allocator."""
        ...


class LearnsNothing:
    """What allocators and mechanisms share whose decisions depend on nothing that happened."""

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""


@runtime_checkable
class Believer(Protocol):
    """An allocator that can say what it believes."""

    def belief(self) -> Belief:
        """What it believes now."""
        ...


def check_goal(name: str, allocator: object, goal: Goal) -> None:
    """Refuse a goal that an allocator does not declare: in `goals`, a set of `target` and `worth`.

    One that does is made with a `goal` (`bara.records.Goal`), and stops by `Offer.stop(reason)`.
    """
    if goal.name is not None and goal.name not in getattr(allocator, "goals", ()):
        raise ConfigError(
            f"budget.{goal.name} is set, but allocator {name!r} has no such goal: it spends what it is given; use the "
            "planner"
        )


@runtime_checkable
class Mechanism(Protocol):
    """Decides who is recruited and what they are paid."""

    @property
    def claims(self) -> frozenset[str]:
        """The properties (`bara.mechanisms.properties`) it promises."""
        ...

    def menu(self, bids: Bids) -> Menu:
        """What each n would cost, and the payments behind it. Pure."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn quality or reputation from a settled round; one that learns nothing ignores it."""
        ...


Level = Literal["record", "client"]


@dataclass(frozen=True)
class Protection:
    """Local differential privacy that a mechanism asks clients to train with, by Laplace noise on a clipped gradient.

    Attributes:
        level: Who is protected: `record`, each sample of a client (every sample's gradient is
            clipped), or `client`, its whole data (the client's gradient is clipped once).
        clip: The largest L1 norm that a gradient may have.
    """

    level: Level = "record"
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a level nobody knows and a bound that is none."""
        if self.level not in ("record", "client"):
            raise ConfigError(
                f"the level of privacy must be 'record' or 'client', got {self.level!r}"
            )
        if not 0 < self.clip < float("inf"):
            raise ConfigError(f"the clipping bound must be finite and positive, got {self.clip}")


@dataclass(frozen=True)
class Requirements:
    """What a mechanism requires of a federation beside bids and training; it may carry one as `requirements`.

    Attributes:
        columns: What its bids must carry.
        evidence: Each client's loss before and after its training, measured by the server.
        outliers: Refuse updates whose distance to the others' is so many robust deviations too
            large; None for none.
        protection: Train with local differential privacy, with each bid's `epsilon`.
        weights: Aggregate with the weights that come with its awards, unless updates are
            remembered.
    """

    columns: tuple[str, ...] = ()
    evidence: bool = False
    outliers: float | None = None
    protection: Protection | None = None
    weights: bool = False

    def __post_init__(self) -> None:
        """A list of columns will do, too."""
        object.__setattr__(self, "columns", tuple(self.columns))

    def needed(self) -> dict[str, str]:
        """Those that are asked for, by name, in words."""
        words = {
            "columns": f"bids with {', '.join(self.columns)}",
            "evidence": "each client's loss before and after training, measured by the server",
            "outliers": "a filter for updates far from the others'",
            "protection": "local differential privacy",
            "weights": "aggregation with weights of its own",
        }
        return {name: text for name, text in words.items() if getattr(self, name)}


def requirements_of(mechanism: object) -> Requirements:
    """What this mechanism requires; nothing unless it says so."""
    requirements = getattr(mechanism, "requirements", None)
    return requirements if isinstance(requirements, Requirements) else Requirements()


@dataclass(frozen=True)
class Capabilities:
    """What a federation can do for a mechanism; a federation may carry one as `capabilities`.

    Attributes:
        protects: Clients train with local differential privacy where they are told to.
        repeatable: The same award trains to the same model again.
        lacks: What else of `Requirements` it cannot do, by name, each with what to do about it.
    """

    protects: bool = False
    repeatable: bool = True
    lacks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a name that no mechanism can require; what is not protected is lacking."""
        for name in self.lacks:
            if name not in Requirements.__dataclass_fields__:
                raise ConfigError(
                    f"what capabilities lack must be one of {', '.join(Requirements.__dataclass_fields__)}, got "
                    f"{name!r}"
                )
        unprotected = {
            "protection": "if its clients train with it, declare `Capabilities(protects=True)`"
        }
        object.__setattr__(self, "lacks", ({} if self.protects else unprotected) | dict(self.lacks))


def capabilities_of(federation: object) -> Capabilities:
    """What this federation can; unless it says so, everything but local differential privacy."""
    capabilities = getattr(federation, "capabilities", None)
    return capabilities if isinstance(capabilities, Capabilities) else Capabilities()


@runtime_checkable
class Federation(Protocol):
    """Who bids and trains."""

    def evaluate(self) -> Evaluation:
        """The initial model, for round 0."""
        ...

    def bids(self, round: int) -> Bids:
        """This round's sealed bids. Asked twice, the same answer."""
        ...

    def train(self, round: int, award: Award) -> Delivery:
        """Train with the winners and evaluate the model that results."""
        ...


def name_of(part: object) -> str:
    """What an allocator, mechanism or federation is called in an error, behind whatever wraps it."""
    inner = getattr(part, "inner", None)
    return type(part).__name__ if inner is None else name_of(inner)


def check_fit(mechanism: Mechanism, federation: object) -> None:
    """Refuse a mechanism that requires what the federation cannot do."""
    lacks = capabilities_of(federation).lacks
    for requirement, what in requirements_of(mechanism).needed().items():
        if requirement in lacks:
            raise ConfigError(
                f"mechanism {name_of(mechanism)} requires {what}, which {name_of(federation)} cannot do: "
                f"{lacks[requirement]}"
            )


@runtime_checkable
class Remembers(Protocol):
    """An allocator or mechanism that learns from bids or menus, and can say what, for ledgers that drop them."""

    def memory(self) -> Any:
        """What it has learned from bids and menus, as JSON can say it."""
        ...

    def restore(self, memory: Any) -> None:
        """Know it again, in a fresh one that is then told the rounds it came from, without their bids and menus."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A federation that keeps checkpoints; one that does not is trained again with the stored awards."""

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Load the newest whole checkpoint that is not later than round `last`; returns its round, 0 for none.

        Where the ledger has committed to a round's digest, one that comes to another digest is
        none.
        """
        ...

    def sealed(self, round: int) -> str | None:
        """The digest of that round's checkpoint, to which the ledger commits; None where there is none."""
        ...

    def replay(self, record: RoundRecord) -> None:
        """Pass a settled round, up to the loaded checkpoint, without training."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A federation that remembers updates of earlier rounds, and can let go of a client's."""

    def forget(self, client: str, round: int) -> None:
        """Let go of what that client taught before that round."""
        ...
