"""The simulated federation: bidders with data, who train, fail and cheat."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import final

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.conduct import Conduct
from bara.clients.updates import State, Updates
from bara.errors import TrainingError
from bara.protocols import Capabilities
from bara.records import Award, Bids, Delivery, Evaluation, Evidence, RoundRecord
from bara.server.checkpoints import Arrays
from bara.server.memory import Fresh
from bara.server.round import Collected, Remembered, train_round
from bara.server.screening import refusals
from bara.server.state import Keeping, ServerState
from bara.simulator.aggregation import aggregate
from bara.simulator.engine import Engine


@dataclass(frozen=True)
class SimulationOptions:
    """How a simulated server works.

    Attributes:
        weigh_by_samples: Weigh updates by data size, otherwise equally; a mechanism's own weights
            come first where nothing is remembered.
        evidence: Measure each client's own loss before and after training, too.
        outliers: Refuse updates that many robust deviations farther from the others than is usual;
            None to refuse none.
        same_held_out: Decide and report on one and the same held-out set, as the paper does.
        keeping: What the server keeps from round to round.
        checkpoint_every: Rounds from one checkpoint to the next; 0 for none. A resumed run trains
            again what came after the last one.
        contributions_every: Rounds from one measurement of what each client contributes to the
            next; 0 for none.
    """

    weigh_by_samples: bool
    evidence: bool
    outliers: float | None
    same_held_out: bool
    keeping: Keeping
    checkpoint_every: int
    contributions_every: int = 0


@dataclass
class _CollectedUpdates(Collected):
    """The updates of a round in the simulator.

    Attributes:
        winners: The clients that trained, in the order of all clients.
        updates: What they sent back, in that order; None where nobody trained.
        weights: The weight of each update, in that order; 0 for those that are refused.
    """

    winners: list[str] = field(default_factory=list)
    updates: Updates | None = None
    weights: list[float] = field(default_factory=list)


@final
class SimulatedFederation(AbstractContextManager["SimulatedFederation"]):
    """A federation that trains a real model; a context manager, because the engine has processes.

    Args:
        engine: Trains and evaluates; it has the held-out parts `validation` and `test`.
        bidders: The clients as bidders.
        conduct: Who fails, is late, rides free or poisons.
        options: How the server works.

    Attributes:
        model: The global model, in one flat vector.
    """

    capabilities = Capabilities(protects=True)
    """The simulator trains with local differential privacy where it is told to."""

    def __init__(
        self, engine: Engine, bidders: Bidders, conduct: Conduct, options: SimulationOptions
    ) -> None:
        self.bidders = bidders
        self.model: State = engine.start()
        self._engine = engine
        self._conduct = conduct
        self._options = options
        self._server = ServerState(options.keeping, durable=False)
        self._index = {client: i for i, client in enumerate(bidders.clients)}

    def __exit__(self, *_: object) -> None:
        """End the worker processes."""
        self._engine.close()

    # --- the session's questions -----------------------------------------------------------------

    def evaluate(self) -> Evaluation:
        """Evaluate the model: on validation data for decisions, on test data for reports."""
        return self._evaluation(self.model)

    def bids(self, round: int) -> Bids:
        """Return what each client that is there asks."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:
        """Train the winners and evaluate the model that results."""
        self.bidders.tell(round, award)
        return train_round(self._server, self, round, award)

    def forget(self, client: str, round: int) -> None:
        """Forget the client's update of before that round."""
        self._server.forget(client, round)

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Load the newest whole checkpoint that is not later than that round."""
        found = self._server.restore(last, committed)
        if found is None:
            return 0
        self.model = np.array(found.state, np.float32)
        return found.round

    def sealed(self, round: int) -> str | None:
        """Return the digest of that round's checkpoint, where it has one."""
        return self._server.sealed(round)

    def replay(self, record: RoundRecord) -> None:
        """Pass a round up to the checkpoint: bidders learn, and saved models are known again."""
        self.bidders.tell(record.round, record.awarded.award)
        self._server.replay(record)

    def finish(self) -> dict[str, Evaluation]:
        """Evaluate the models of which one is kept, and save them."""
        evaluations, _ = self._server.finish(lambda model: self._evaluation(model["state"]))
        return evaluations

    # --- what the server's round asks of an engine -----------------------------------------------

    def absent(self, round: int) -> Sequence[str]:
        """Return the clients that do not bid in this round."""
        return self.bidders.away(round)

    def collect(self, round: int, award: Award) -> _CollectedUpdates:
        """Train the winners; refuse updates that did not arrive or cannot be used."""
        void = self._conduct.absent(round, award.clients)
        present = [client for client in award.clients if client not in void]
        # In the order of the clients, not of the auction: the sum does not depend on prices.
        winners = sorted(present, key=self._index.__getitem__)
        if not winners:
            return _CollectedUpdates(void=void)
        updates = self._updates(round, winners)
        refused = self._refused(updates)
        if len(refused) == len(winners):
            reason = next(iter(refused.values()))
            raise TrainingError(
                f"round {round}: no update can be used ({reason}), so nobody is paid; a smaller "
                "training.learning_rate may help"
            )
        delivered = {}
        for i, client in enumerate(winners):
            if i in refused:
                void[client] = refused[i]
            else:
                delivered[client] = _evidence(updates, i)
        return _CollectedUpdates(delivered, void, winners=winners, updates=updates)

    def weigh(self, collected: _CollectedUpdates, weights: Mapping[str, float] | None) -> None:
        """Weigh the updates by the mechanism's weights, by data size, or equally."""
        if collected.updates is None:
            return
        for client, samples in zip(collected.winners, collected.updates.samples, strict=True):
            weight = 1.0
            if weights is not None:
                weight = weights[client]
            elif self._options.weigh_by_samples:
                weight = float(samples)
            if client not in collected.delivered:
                weight = 0.0
            collected.weights.append(weight)

    def changes(self, collected: _CollectedUpdates) -> dict[str, Fresh]:
        """Return by how much each update changes what the model learns."""
        assert collected.updates is not None  # noqa: S101 - somebody has delivered
        learned = self._engine.layout.learned
        start = self.model[:learned]
        found = {}
        for i, client in enumerate(collected.winners):
            if client in collected.delivered:
                change = collected.updates.states[i][:learned] - start
                found[client] = Fresh(change, collected.weights[i])
        return found

    def join(
        self, _round: int, collected: _CollectedUpdates, remembered: Remembered | None
    ) -> State | None:
        """Aggregate the updates; with a memory, take its step: statistics stay the winners'."""
        if collected.updates is None:
            return None
        model = aggregate(collected.updates, collected.weights)
        if remembered is not None:
            learned = self._engine.layout.learned
            model[:learned] = self.model[:learned] + remembered.step
        return model

    def evaluate_after(self, _round: int, model: State) -> Evaluation:
        """Evaluate a model that a round led to."""
        return self._evaluation(model)

    def contributions(self, round: int, model: State, evaluation: Evaluation) -> dict[str, float]:
        """Return by how much the model is better for each remembered update.

        The model is evaluated once without each of them.
        """
        every = self._options.contributions_every
        memory = self._server.memory
        if memory is None or not every or round % every:
            return {}
        found: dict[str, float] = {}
        learned = self._engine.layout.learned
        for client, step in memory.steps_without():
            without = model.copy()
            without[:learned] = self.model[:learned] + step
            with suppress(
                TrainingError
            ):  # a model that is not finite without somebody says nothing
                accuracy = self._engine.evaluate(without, "test").accuracy
                found[client] = evaluation.reported_accuracy - accuracy
        return found

    def arrays(self, model: State) -> Arrays:
        """Return a model as arrays by name."""
        return {"state": model}

    def save(self, round: int) -> None:
        """Save a checkpoint of the round, where one is due."""
        every = self._options.checkpoint_every
        if every and round % every == 0:
            self._server.save(round, self.arrays(self.model))

    # --- inside ----------------------------------------------------------------------------------

    def _updates(self, round: int, winners: Sequence[str]) -> Updates:
        clients = [self._index[client] for client in winners]
        updates = self._engine.train(self.model, round, clients, evidence=self._options.evidence)
        return self._conduct.tamper(round, winners, self.model, updates)

    def _refused(self, updates: Updates) -> dict[int, str]:
        """Return the updates that cannot be used, by position, with the reason."""
        refused = refusals(self.model, list(updates.states), self._options.outliers)
        losses = zip(updates.loss_before, updates.loss_after, strict=True)
        for i, (before, after) in enumerate(losses):
            if not (_is_finite(before) and _is_finite(after)):
                refused[i] = "its loss is not finite"
        return refused

    def _evaluation(self, state: State) -> Evaluation:
        test = self._engine.evaluate(state, "test")
        if self._options.same_held_out:
            return Evaluation(test.accuracy, test.loss, samples=test.samples)
        validation = self._engine.evaluate(state, "validation")
        return Evaluation(
            validation.accuracy, validation.loss, test.accuracy, test.loss, validation.samples
        )


def _is_finite(loss: float | None) -> bool:
    return loss is None or bool(np.isfinite(loss))


def _evidence(updates: Updates, i: int) -> Evidence:
    return Evidence(updates.samples[i], updates.loss_before[i], updates.loss_after[i])
