"""The server's round, the same for every engine.

Forget, collect, refuse, limit, weigh, aggregate, remember, judge, keep, save, deliver:
`train_round` is this sentence. An engine supplies only what differs, such as how it obtains and
aggregates updates.
"""

import math
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from bara.errors import TrainingError
from bara.records import Award, Delivery, Evaluation, Evidence, Shapley
from bara.server.checkpoints import Arrays
from bara.server.memory import Fresh, Memory, Vector
from bara.server.state import ServerState

NOT_TAKEN = "the strategy took no update this round"
"""The reason why nobody is paid in a round in which the engine aggregated no update."""

NOT_FINITE = "the model that this round's updates make together is not finite"
"""The reason why nobody is paid in a round whose model cannot be used."""


@dataclass
class Collected:
    """The answers of a round's winners; each engine has a subclass that also holds the updates.

    Attributes:
        delivered: The clients whose updates can be used, each with the evidence of its delivery.
        void: The clients that did not deliver, each with the reason.
        blameless: The void clients that are not to blame, because they were not asked.
    """

    delivered: dict[str, Evidence] = field(default_factory=dict)
    void: dict[str, str] = field(default_factory=dict)
    blameless: tuple[str, ...] = ()

    def refuse(self, client: str, reason: str) -> None:
        """Make a client void that delivered: its update is not used."""
        del self.delivered[client]
        self.void[client] = reason

    def take_none(self, reason: str) -> None:
        """Make all clients that delivered void and blameless: no update was used."""
        self.void |= dict.fromkeys(self.delivered, reason)
        self.blameless += tuple(self.delivered)
        self.delivered = {}


class Remembered(NamedTuple):
    """A memory that includes a round's updates.

    Attributes:
        memory: The memory.
        step: The step that all its updates make together.
        changes: By how much each of the round's updates changes the model.
    """

    memory: Memory
    step: Vector
    changes: Mapping[str, Fresh]


CollectedT = TypeVar("CollectedT", bound=Collected)
ModelT = TypeVar("ModelT")


class TrainingEngine(Protocol[ModelT, CollectedT]):
    """An engine as the server's round uses it.

    Attributes:
        model: The global model.
        trains_here: Whether the engine itself trains, so that a model without finite metrics is the
            configuration's fault; otherwise one client may have spoiled it.
    """

    model: ModelT
    trains_here: bool

    def absent(self, round: int) -> Collection[str] | None:
        """Return the clients that do not bid in this round; None if that is not known."""
        ...

    def collect(self, round: int, award: Award) -> CollectedT:
        """Let the winners train; return their updates, and the reasons why some are missing."""
        ...

    def refuse(self, round: int, collected: CollectedT) -> None:
        """Make clients void whose updates cannot be used; add the others to `delivered`."""
        ...

    def claims(self, collected: CollectedT) -> Mapping[str, float]:
        """Return the weight, if any, that each usable update has by its client's own account."""
        ...

    def weigh(self, collected: CollectedT, weights: Mapping[str, float] | None) -> None:
        """Weigh the updates by the mechanism's weights; None for the engine's own weights."""
        ...

    def changes(self, collected: CollectedT) -> Mapping[str, Fresh]:
        """Return by how much each usable update changes the model, for the memory."""
        ...

    def aggregate(
        self, round: int, collected: CollectedT, remembered: Remembered | None
    ) -> ModelT | None:
        """Return the model that the updates make, or None if they make none.

        Args:
            round: The round.
            collected: The updates, weighed.
            remembered: The memory, with these updates in it; None to use these updates alone.
        """
        ...

    def evaluate_after(self, round: int, model: ModelT) -> Evaluation:
        """Evaluate the model after a round; raise a `TrainingError` unless its loss is finite."""
        ...

    def contributions(
        self, round: int, model: ModelT, evaluation: Evaluation
    ) -> Mapping[str, float]:
        """Return how much better the model is for each client's update, if that is measured."""
        ...

    def shapley(self, round: int, model: ModelT) -> Shapley | None:
        """Return each client's share of what the model gained, if that is estimated."""
        ...

    def arrays(self, model: ModelT) -> Arrays:
        """Return a model as arrays by name."""
        ...

    def save(self, round: int) -> None:
        """Save a checkpoint of the round if one is due."""
        ...


def train_round(
    server: ServerState, engine: TrainingEngine[ModelT, CollectedT], round: int, award: Award
) -> Delivery:
    """Train one round with the winners, and evaluate the model that results.

    Args:
        server: The server's state, which lasts from round to round.
        engine: The engine that trains.
        round: The round.
        award: The winners, and the mechanism's weights.
    """
    forgotten = server.forget_outdated(round, engine.absent(round))
    collected = engine.collect(round, award)
    engine.refuse(round, collected)
    for client, reason in server.limited(engine.claims(collected)).items():
        collected.refuse(client, reason)
    engine.weigh(collected, server.weights(award))

    remembered = _with_updates(server.memory, engine, round, collected)
    model = engine.aggregate(round, collected, remembered)
    evaluation = None
    if model is None:
        collected.take_none(NOT_TAKEN)
    else:
        evaluation = _judged(server, engine, round, model, collected, remembered)

    contributions: Mapping[str, float] = {}
    shapley = None
    if model is None or evaluation is None:
        # There is no new model, or it is too bad: the global model stays as it was.
        evaluation = engine.evaluate_after(round, engine.model)
    else:
        contributions = engine.contributions(round, model, evaluation)
        shapley = engine.shapley(round, model)
        engine.model = model

    server.tell(round, engine.arrays(engine.model), evaluation)
    engine.save(round)
    ages: dict[int, int] = {}
    if collected.delivered:
        ages = server.ages(round)
    return Delivery(
        evaluation,
        collected.delivered,
        collected.void,
        ages,
        forgotten,
        collected.blameless,
        contributions,
        shapley,
    )


def _judged(
    server: ServerState,
    engine: TrainingEngine[ModelT, CollectedT],
    round: int,
    model: ModelT,
    collected: CollectedT,
    remembered: Remembered | None,
) -> Evaluation | None:
    """Return the evaluation of a new model; None if the global model is to stay as it was."""
    evaluation = None
    fault = None
    if _is_finite(engine.arrays(model)):
        try:
            evaluation = engine.evaluate_after(round, model)
        except TrainingError as error:
            fault = error
    if evaluation is not None:
        if remembered is not None:
            server.memory = remembered.memory
        return evaluation if server.accepts(evaluation) else None
    if not engine.trains_here:
        if server.memory is not None and server.memory.clients:
            server.memory.judge(math.inf)  # perhaps its step was too long: the next is shorter
        collected.take_none(NOT_FINITE)
    elif remembered is not None and not remembered.memory.judge(math.inf):
        # The memory's step was too long: it is taken back, and the updates stay remembered.
        server.memory = remembered.memory
    elif fault is not None:
        raise fault
    else:
        collected.take_none(NOT_FINITE)
    return None


def _is_finite(model: Arrays) -> bool:
    """Return whether all numbers of a model are finite."""
    floats = [array for array in model.values() if array.dtype.kind in "fc"]
    return all(bool(np.isfinite(array).all()) for array in floats)


def _with_updates(
    memory: Memory | None,
    engine: TrainingEngine[ModelT, CollectedT],
    round: int,
    collected: CollectedT,
) -> Remembered | None:
    """Return a copy of the memory with a round's updates in it; None if there is nothing to add.

    A copy, because an update is remembered only once the engine has used it.
    """
    if memory is None or not collected.delivered:
        return None
    told = copy(memory)
    changes = engine.changes(collected)
    step = told.tell(round, changes)
    return Remembered(told, step, changes)
