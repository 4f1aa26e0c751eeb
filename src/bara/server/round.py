"""The server's round, the same for every engine.

Forget, collect, refuse, weigh, aggregate, remember, judge, keep, save, deliver: `train_round` is
this sentence. An engine supplies only what differs: how updates are obtained and how they are
joined.
"""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from bara.records import Award, Delivery, Evaluation, Evidence
from bara.server.checkpoints import Arrays
from bara.server.memory import Fresh, UpdateMemory, Vector
from bara.server.state import ServerState

NOT_TAKEN = "the strategy took no update this round"
"""Why nobody is paid in a round whose updates the engine joined to no model."""


@dataclass
class Collected:
    """What came back from a round's winners; an engine's own kind holds the updates, too.

    Attributes:
        delivered: The clients whose updates can be used, each with what the server saw of it.
        void: The clients that did not deliver, each with the reason.
        blameless: Those of `void` that are not to blame: they were not asked.
    """

    delivered: dict[str, Evidence] = field(default_factory=dict)
    void: dict[str, str] = field(default_factory=dict)
    blameless: tuple[str, ...] = ()

    def take_none(self) -> None:
        """Count nobody as having delivered, and blame nobody for it."""
        self.void |= dict.fromkeys(self.delivered, NOT_TAKEN)
        self.blameless += tuple(self.delivered)
        self.delivered = {}


class Remembered(NamedTuple):
    """A memory that was told a round's updates, and the step that they all come to."""

    memory: UpdateMemory
    step: Vector


CollectedT = TypeVar("CollectedT", bound=Collected)
ModelT = TypeVar("ModelT")


class Engine(Protocol[ModelT, CollectedT]):
    """What an engine supplies to the server's round.

    Attributes:
        model: The global model.
    """

    model: ModelT

    def absent(self, round: int) -> Collection[str] | None:
        """Return the clients that do not bid in this round; None where that is not known."""
        ...

    def collect(self, round: int, award: Award) -> CollectedT:
        """Train the winners; refuse updates that did not arrive or cannot be used."""
        ...

    def weigh(self, collected: CollectedT, weights: Mapping[str, float] | None) -> None:
        """Weigh the updates by the mechanism's weights; by the engine's own where None."""
        ...

    def changes(self, collected: CollectedT) -> Mapping[str, Fresh]:
        """Return by how much each update changes the model, for the memory."""
        ...

    def join(
        self, round: int, collected: CollectedT, remembered: Remembered | None
    ) -> ModelT | None:
        """Join the updates, and those that are remembered, to the next model; None to join none.

        Args:
            round: The round.
            collected: The updates, weighed.
            remembered: The memory, told the updates; None where nothing is remembered.
        """
        ...

    def evaluate_after(self, round: int, model: ModelT) -> Evaluation:
        """Evaluate a model that a round led to."""
        ...

    def contributions(
        self, round: int, model: ModelT, evaluation: Evaluation
    ) -> Mapping[str, float]:
        """Return by how much each client's update makes the model better, where that is measured."""
        ...

    def arrays(self, model: ModelT) -> Arrays:
        """Return a model as arrays by name."""
        ...

    def save(self, round: int) -> None:
        """Save a checkpoint of the round, where one is due."""
        ...


def train_round(
    server: ServerState, engine: Engine[ModelT, CollectedT], round: int, award: Award
) -> Delivery:
    """Train one round with the winners, and evaluate the model that results.

    Args:
        server: What the server keeps from round to round.
        engine: Obtains the updates and joins them.
        round: The round.
        award: The winners, and the mechanism's weights.
    """
    forgotten = server.forget_outdated(round, engine.absent(round))
    collected = engine.collect(round, award)
    engine.weigh(collected, server.weights(award))
    model = _joined(server, engine, round, collected)
    evaluation = None
    contributions: Mapping[str, float] = {}
    if model is None:
        collected.take_none()
    else:
        evaluation = server.judged(partial(engine.evaluate_after, round, model))
    if model is None or evaluation is None:  # the model stays as it was
        model = engine.model
        evaluation = engine.evaluate_after(round, model)
    else:
        contributions = engine.contributions(round, model, evaluation)
    engine.model = model
    server.tell(round, engine.arrays(model), evaluation)
    engine.save(round)
    return Delivery(
        evaluation,
        collected.delivered,
        collected.void,
        server.ages(round) if collected.delivered else {},
        forgotten,
        collected.blameless,
        contributions=dict(contributions),
    )


def _joined(
    server: ServerState,
    engine: Engine[ModelT, CollectedT],
    round: int,
    collected: CollectedT,
) -> ModelT | None:
    """Join the updates to the next model; only updates that were joined are remembered."""
    if server.memory is None or not collected.delivered:
        return engine.join(round, collected, None)
    memory = copy(server.memory)
    step = memory.tell(round, engine.changes(collected))
    model = engine.join(round, collected, Remembered(memory, step))
    if model is not None:
        server.memory = memory
    return model
