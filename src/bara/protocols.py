"""The protocols that plug-ins implement: allocators, mechanisms and federations.

In every round, the market

1. asks the allocator for an offer (`Allocator.ask`),
2. collects the sealed bids (`Federation.bids`), has the mechanism make a menu of them
   (`Mechanism.menu`), and awards the largest number of clients that the offer pays for,
3. trains with the winners (`Federation.train`), and
4. tells allocator and mechanism the settled round (`tell`).

A run is resumed by telling new instances all stored rounds again. Therefore only `tell` may change
an allocator or a mechanism, and randomness must derive from the seed and the round
(`bara.randomness.stream`). The contract checks in `bara.testing` test an implementation for this.
"""

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
    """An allocator: decides how much each round may cost."""

    def ask(self, purse: Purse) -> Offer:
        """Return the most to pay for each number of clients, before this round's bids are opened.

        Must be pure: asked twice, it gives the same answer.

        Args:
            purse: The money and the rounds left.
        """
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; no other method may change an allocator.

        Called once for each round in order, beginning with round 0, the evaluation of the initial
        model. The record holds the whole menu, unless the ledger drops bids and menus (see
        `Remembers`).

        Args:
            record: The settled round.
        """
        ...


class LearnsNothing:
    """A base class for allocators and mechanisms whose decisions do not depend on past rounds."""

    def tell(self, record: RoundRecord) -> None:
        """Ignore the settled round."""


@runtime_checkable
class Believer(Protocol):
    """An allocator that can state what it believes, for logs, reports and the dashboard."""

    def belief(self) -> Belief:
        """Return what the allocator believes after the rounds told so far.

        Must be pure, like `ask`. The columns `arms`, `mean` and `deviation` must be equally long,
        means finite and deviations not negative.
        """
        ...


def check_goal(name: str, allocator: object, goal: Goal) -> None:
    """Refuse a goal that the allocator does not declare.

    An allocator declares the goals that it can pursue in an attribute `goals`, a set of `target`
    and `worth`. The constructor of such an allocator gets the goal as its argument `goal`; the
    allocator ends the run with `Offer.stop(reason)`.

    Args:
        name: The allocator's name, for the error.
        allocator: The allocator, or the class or function that makes it.
        goal: The goal that the run is configured with.
    """
    if goal.name is not None and goal.name not in getattr(allocator, "goals", ()):
        raise ConfigError(
            f"budget.{goal.name} is set, but allocator {name!r} has no such goal: "
            "it spends what it is given; use the planner"
        )


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism: decides which clients are recruited and what they are paid."""

    @property
    def claims(self) -> frozenset[str]:
        """The names of the properties that the mechanism promises (`bara.mechanisms.properties`).

        `bara audit` looks for counter-examples to each of these claims.
        """
        ...

    def menu(self, bids: Bids) -> Menu:
        """Return what each number of clients would cost, and how they would be paid.

        Must be pure: asked twice, it gives the same answer.

        Args:
            bids: The opened bids of this round.
        """
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round, for instance the clients' quality or reputation.

        Called like `Allocator.tell`; no other method may change a mechanism.

        Args:
            record: The settled round.
        """
        ...


Level = Literal["record", "client"]
"""What local differential privacy protects: each sample of a client, or all of its data."""


@dataclass(frozen=True)
class Protection:
    """Local differential privacy for training: Laplace noise on clipped gradients.

    Attributes:
        level: What is protected: `record`, each sample of a client (every sample's gradient is
            clipped), or `client`, all of its data (the client's whole gradient is clipped).
        clip: The largest L1 norm that a gradient may have; larger ones are clipped to it.
    """

    level: Level = "record"
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an unknown level, and a bound that is not finite and positive."""
        if self.level not in ("record", "client"):
            raise ConfigError(
                f"the level of privacy must be 'record' or 'client', got {self.level!r}"
            )
        if not 0 < self.clip < float("inf"):
            raise ConfigError(f"the clipping bound must be finite and positive, got {self.clip}")


@dataclass(frozen=True)
class Requirements:
    """The requirements of a mechanism on the federation, besides prices and training.

    A mechanism with such requirements has them in an attribute `requirements`; before a run
    starts, they are compared with the federation's `Capabilities`.

    Attributes:
        columns: The columns that bids must have besides prices.
        evidence: Whether the server must measure each client's loss before and after training.
        outliers: Refuse updates that lie more than this many robust standard deviations farther
            from the other updates than is usual; None to refuse none.
        protection: The local differential privacy with which clients must train, with the `epsilon`
            of each bid; None for none.
        weights: Whether updates must be aggregated with the weights in the mechanism's awards; a
            federation that remembers updates uses its own weights all the same.
        standing: Whether a client's costs must stay the same from round to round, because the
            mechanism takes its first price for the whole run.
    """

    columns: tuple[str, ...] = ()
    evidence: bool = False
    outliers: float | None = None
    protection: Protection | None = None
    weights: bool = False
    standing: bool = False

    def __post_init__(self) -> None:
        """Accept any sequence of columns."""
        object.__setattr__(self, "columns", tuple(self.columns))

    def needed(self) -> dict[str, str]:
        """Return the requirements that are set: by name, described in words."""
        words = {
            "columns": f"bids with {', '.join(self.columns)}",
            "evidence": "each client's loss before and after training, measured by the server",
            "outliers": "a filter for updates far from the others'",
            "protection": "local differential privacy",
            "weights": "aggregation with weights of its own",
            "standing": "clients whose costs stay the same from round to round",
        }
        return {name: text for name, text in words.items() if getattr(self, name)}


def requirements_of(mechanism: object) -> Requirements:
    """Return what a mechanism requires: its attribute `requirements`, or nothing without one."""
    requirements = getattr(mechanism, "requirements", None)
    if isinstance(requirements, Requirements):
        return requirements
    return Requirements()


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a federation, which decide what mechanisms it can be used with.

    A federation states its capabilities in an attribute `capabilities`. Without one, it is expected
    to meet all `Requirements` except local differential privacy, and to be repeatable.

    Attributes:
        protects: Whether clients train with local differential privacy if a mechanism asks for it.
        repeatable: Whether training again with the same awards gives exactly the same models, so
            that a run can be resumed without a checkpoint.
        lacks: The fields of `Requirements` that the federation cannot meet, each with advice to the
            user. Missing protection is added to it.
    """

    protects: bool = False
    repeatable: bool = True
    lacks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse names that are no field of `Requirements`; add missing protection to `lacks`."""
        known = Requirements.__dataclass_fields__
        for name in self.lacks:
            if name not in known:
                raise ConfigError(
                    f"what capabilities lack must be one of {', '.join(known)}, got {name!r}"
                )
        lacks: dict[str, str] = {}
        if not self.protects:
            advice = "if its clients train with it, declare `Capabilities(protects=True)`"
            lacks["protection"] = advice
        lacks.update(self.lacks)
        object.__setattr__(self, "lacks", lacks)


def capabilities_of(federation: object) -> Capabilities:
    """Return what a federation can do: its attribute `capabilities`, or the default without one."""
    capabilities = getattr(federation, "capabilities", None)
    if isinstance(capabilities, Capabilities):
        return capabilities
    return Capabilities()


@runtime_checkable
class Federation(Protocol):
    """A federation: the clients that bid and train, and the server that aggregates."""

    def evaluate(self) -> Evaluation:
        """Return the evaluation of the initial model, which becomes round 0.

        Called when a run begins, but not when it is resumed.
        """
        ...

    def bids(self, round: int) -> Bids:
        """Return the sealed bids of a round; asked twice, it gives the same answer.

        Args:
            round: The number of the round, from 1.
        """
        ...

    def train(self, round: int, award: Award) -> Delivery:
        """Train with the winners of a round and evaluate the model that results.

        The delivery must name every winner exactly once: as delivered, to be paid, or as void, with
        the reason. If the round fails as a whole, raise `bara.errors.TrainingError`: nothing is
        paid. Not called for rounds without winners.

        A resumed run trains settled rounds again with their stored awards, and refuses to go on if
        the deliveries differ. To avoid this, implement `Resumable`; a federation that cannot repeat
        its training also declares `Capabilities(repeatable=False)`.

        Args:
            round: The number of the round, from 1.
            award: The winners and what each is promised.
        """
        ...


def name_of(part: object) -> str:
    """Return the class name of an allocator, mechanism or federation, inside any wrappers.

    Args:
        part: The allocator, mechanism or federation, or a wrapper that holds one as `inner`.
    """
    inner = getattr(part, "inner", None)
    if inner is not None:
        return name_of(inner)
    return type(part).__name__


def check_fit(mechanism: Mechanism, federation: object) -> None:
    """Refuse a mechanism that requires what the federation cannot do."""
    lacks = capabilities_of(federation).lacks
    for requirement, what in requirements_of(mechanism).needed().items():
        if requirement in lacks:
            raise ConfigError(
                f"mechanism {name_of(mechanism)} requires {what}, "
                f"which {name_of(federation)} cannot do: {lacks[requirement]}"
            )


@runtime_checkable
class Remembers(Protocol):
    """An allocator or mechanism that can save what it has learned from bids and menus.

    A ledger may be told to drop bids and menus, which are sensitive. Then the stored rounds alone
    cannot rebuild what was learned from them. Without this protocol, an allocator or mechanism is
    never shown them in the first place: reading `bids` or `costs` in a told round raises an error.
    """

    def memory(self) -> Any:
        """Return what was learned from bids and menus, as a value that JSON can hold.

        Called after each settled round, if the ledger drops bids and menus.
        """
        ...

    def restore(self, memory: Any) -> None:
        """Restore saved knowledge into a new instance.

        Afterwards the instance is told the settled rounds again, without their bids and menus. It
        must then answer and believe exactly as the one that saved the memory.

        Args:
            memory: What `memory` returned, after a round trip through JSON.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """A federation that saves checkpoints, so that a resumed run need not train rounds again.

    Save a checkpoint at the end of `Federation.train`, before it returns. If the run is killed
    before the round is settled, the round is trained again from the checkpoint before it, which
    must therefore still exist.
    """

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Load the newest intact checkpoint of round `last` or earlier; return its round, or 0.

        Called once before any other method, whenever a run with a ledger starts or is resumed.

        Args:
            last: The last settled round; -1 for a new run.
            committed: Returns the digest of a round's checkpoint that the ledger holds, or None if
                it holds none. A checkpoint with a different digest must not be loaded.
        """
        ...

    def sealed(self, round: int) -> str | None:
        """Return the digest of a round's checkpoint, which the ledger stores; None without one.

        Args:
            round: The round that is being settled.
        """
        ...

    def replay(self, record: RoundRecord) -> None:
        """Take note of a settled round that the loaded checkpoint includes, without training.

        Called in order for each round with winners, up to the round of the loaded checkpoint. Later
        settled rounds are trained again.

        Args:
            record: The settled round.
        """
        ...


@runtime_checkable
class Forgets(Protocol):
    """A federation that remembers clients' updates from earlier rounds and can forget them."""

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught before a round, because an operator asked for it.

        From then on, new models are made without the client's earlier updates.

        Args:
            client: The client's name.
            round: The first round that is to be trained without them.
        """
        ...
