"""The simulated federation: bidders with data that train, fail and cheat."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import final

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.conduct import Conduct, State, Updates
from bara.errors import TrainingError
from bara.protocols import Capabilities
from bara.randomness import stream
from bara.records import Award, Bids, Delivery, Evaluation, Evidence, RoundRecord, Shapley
from bara.server.checkpoints import Arrays
from bara.server.memory import Fresh, Vector
from bara.server.round import Collected, Remembered, train_round
from bara.server.screening import refusals
from bara.server.shapley import estimate_shapley
from bara.server.state import Keeping, ServerState
from bara.simulator.aggregation import aggregate
from bara.simulator.engine import Engine


@dataclass(frozen=True)
class SimulationOptions:
    """The settings of a simulated server.

    Attributes:
        weigh_by_samples: Weigh updates by data size instead of equally. A mechanism's own weights
            take precedence if no update is remembered.
        add_up: Add the updates up, instead of taking their weighted mean; without a memory.
        evidence: Measure each client's own loss before and after training, too.
        outliers: Refuse updates that lie this many robust deviations farther from the others than
            is usual; None to refuse none.
        same_held_out: Decide and report on one and the same held-out set, as the paper does.
        keeping: The settings for what lasts from round to round.
        checkpoint_every: The number of rounds between checkpoints; 0 for no checkpoints. A resumed
            run trains the rounds after the last checkpoint again.
        contributions_every: The number of rounds between measurements of what each client
            contributes; 0 for no measurements.
        shapley_every: The number of rounds between estimates of Shapley values; 0 for none.
    """

    weigh_by_samples: bool
    evidence: bool
    outliers: float | None
    same_held_out: bool
    keeping: Keeping
    checkpoint_every: int
    contributions_every: int = 0
    add_up: bool = False
    shapley_every: int = 0


@dataclass
class _CollectedUpdates(Collected):
    """The updates of a round in the simulator.

    Attributes:
        winners: The clients that trained, in the order of all clients.
        updates: Their updates, in the order of `winners`; None if nobody trained.
        weights: The weight of each update, in the order of `winners`; 0 for a refused update.
    """

    winners: list[str] = field(default_factory=list)
    updates: Updates | None = None
    weights: list[float] = field(default_factory=list)


@final
class SimulatedFederation(AbstractContextManager["SimulatedFederation"]):
    """A federation that trains a real model; a context manager, because the engine has processes.

    Args:
        engine: Trains and evaluates; it has the held-out sets `validation` and `test`.
        bidders: The clients as bidders.
        conduct: The misconduct of clients: failing, being late, free riding, poisoning.
        options: The settings of the server.

    Attributes:
        bidders: The clients as bidders.
        model: The global model, as one flat vector.
    """

    trains_here = True

    def __init__(
        self, engine: Engine, bidders: Bidders, conduct: Conduct, options: SimulationOptions
    ) -> None:
        self.bidders = bidders
        # It trains with local differential privacy if the configuration asks for it.
        self.capabilities = Capabilities(protects=True, lacks=bidders.lacks)
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
        """Evaluate the global model: on validation data for decisions, on test data for reports."""
        return self._evaluation(self.model)

    def bids(self, round: int) -> Bids:
        """Return the bid of each client that takes part in the round."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:
        """Train the winners and evaluate the model that results."""
        self.bidders.tell(round, award)
        return train_round(self._server, self, round, award)

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught before a round."""
        self._server.forget(client, round)

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Restore the newest whole checkpoint; return its round, or 0 if there is none.

        Args:
            last: The last round whose checkpoint may be used.
            committed: Returns the digest of a round's checkpoint that the ledger holds.
        """
        found = self._server.restore(last, committed)
        if found is None:
            return 0
        self.model = np.array(found.state, np.float32)
        return found.round

    def sealed(self, round: int) -> str | None:
        """Return the digest of a round's checkpoint; None if the round has no checkpoint."""
        return self._server.sealed(round)

    def replay(self, record: RoundRecord) -> None:
        """Take in a round up to the checkpoint: bidders learn, and its model is restored."""
        self.bidders.tell(record.round, record.awarded.award)
        self._server.replay(record)

    def finish(self) -> dict[str, Evaluation]:
        """Choose the model to keep; return the evaluation of each model that could be kept."""
        evaluations, _ = self._server.finish(lambda model: self._evaluation(model["state"]))
        return evaluations

    # --- what the server's round asks of an engine -----------------------------------------------

    def absent(self, round: int) -> Sequence[str]:
        """Return the clients that do not bid in this round."""
        return self.bidders.away(round)

    def collect(self, round: int, award: Award) -> _CollectedUpdates:
        """Train the winners that neither fail nor are late."""
        void = self._conduct.absent(round, award.clients)
        present = [client for client in award.clients if client not in void]
        # In the order of the clients, not of the auction: the sum does not depend on prices.
        winners = sorted(present, key=self._index.__getitem__)
        if not winners:
            return _CollectedUpdates(void=void)
        clients = [self._index[client] for client in winners]
        updates = self._engine.train(self.model, round, clients, evidence=self._options.evidence)
        updates = self._conduct.tamper(round, winners, self.model, updates)
        return _CollectedUpdates(void=void, winners=winners, updates=updates)

    def refuse(self, round: int, collected: _CollectedUpdates) -> None:
        """Make clients void whose updates or losses are not finite, or whose updates are outliers.

        Raises:
            TrainingError: when no update can be used.
        """
        if collected.updates is None:
            return
        refused = self._refused(collected.updates)
        if len(refused) == len(collected.winners):
            reason = next(iter(refused.values()))
            raise TrainingError(
                f"round {round}: no update can be used ({reason}), so nobody is paid; a smaller "
                "training.learning_rate may help"
            )
        for i, client in enumerate(collected.winners):
            if i in refused:
                collected.void[client] = refused[i]
            else:
                collected.delivered[client] = _evidence(collected.updates, i)

    def claims(self, collected: _CollectedUpdates) -> dict[str, float]:
        """Return the data size of each client that delivered, if updates are weighed by it."""
        found: dict[str, float] = {}
        if self._options.weigh_by_samples:
            for client, evidence in collected.delivered.items():
                found[client] = float(evidence.samples or 1)
        return found

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
        """Return by how much each usable update changes the learned parameters."""
        if collected.updates is None:
            return {}
        learned = self._engine.layout.learned
        start = self.model[:learned]
        found = {}
        for i, client in enumerate(collected.winners):
            if client in collected.delivered:
                change = collected.updates.states[i][:learned] - start
                found[client] = Fresh(change, collected.weights[i])
        return found

    def aggregate(
        self, _round: int, collected: _CollectedUpdates, remembered: Remembered | None
    ) -> State | None:
        """Return the mean of the updates, or None if nobody trained.

        With a memory, the learned parameters take the memory's step instead; batch norm's
        statistics are still the winners'.
        """
        if collected.updates is None or not collected.delivered:
            return None
        model = aggregate(collected.updates, collected.weights)
        if self._options.add_up:
            learned = self._engine.layout.learned
            step = model[:learned] - self.model[:learned]
            model[:learned] += (len(collected.delivered) - 1) * step
        if remembered is not None:
            learned = self._engine.layout.learned
            model[:learned] = self.model[:learned] + remembered.step
        return model

    def evaluate_after(self, _round: int, model: State) -> Evaluation:
        """Evaluate the model after a round."""
        return self._evaluation(model)

    def contributions(self, round: int, model: State, evaluation: Evaluation) -> dict[str, float]:
        """Return how much more accurate the model is for each remembered update, if measured.

        The model is evaluated once without each of them.
        """
        every = self._options.contributions_every
        memory = self._server.memory
        if memory is None or not every or round % every:
            return {}
        clients = set(memory.clients)
        if len(clients) < 2:  # there is no model without the only one
            return {}
        found: dict[str, float] = {}
        for client in sorted(clients):
            accuracy = self._accuracy_with(model, memory.step_of(clients - {client}))
            if accuracy is not None:
                found[client] = evaluation.reported_accuracy - accuracy
        return found

    def shapley(self, round: int, model: State) -> Shapley | None:
        """Return each client's share of what the model gained, if that is estimated.

        Clients whose updates alone break the model are worth what the model was before.
        """
        every = self._options.shapley_every
        memory = self._server.memory
        if memory is None or not memory.clients or not every or round % every:
            return None
        before = self._engine.evaluate(self.model, "test").accuracy

        def worth(some: frozenset[str]) -> float:
            accuracy = self._accuracy_with(model, memory.step_of(some)) if some else None
            return before if accuracy is None else accuracy

        rng = stream(self._conduct.seed, "shapley", round)
        return estimate_shapley(memory.clients, worth, rng)

    def arrays(self, model: State) -> Arrays:
        """Return a model as arrays by name."""
        return {"state": model}

    def save(self, round: int) -> None:
        """Save a checkpoint of the round if one is due."""
        every = self._options.checkpoint_every
        if every and round % every == 0:
            self._server.save(round, self.arrays(self.model))

    # --- inside ----------------------------------------------------------------------------------

    def _accuracy_with(self, model: State, step: Vector) -> float | None:
        """Return a new model's reported accuracy with another step; None if it is not finite."""
        other = model.copy()
        learned = self._engine.layout.learned
        other[:learned] = self.model[:learned] + step
        try:
            return self._engine.evaluate(other, "test").accuracy
        except TrainingError:
            return None

    def _refused(self, updates: Updates) -> dict[int, str]:
        """Return the reasons for refusing updates, by the position of the update."""
        refused = refusals(self.model, list(updates.states), self._options.outliers)
        losses = zip(updates.loss_before, updates.loss_after, strict=True)
        for i, (before, after) in enumerate(losses):
            if not (_is_finite(before) and _is_finite(after)):
                refused[i] = "its loss is not finite"
        return refused

    def _evaluation(self, state: State) -> Evaluation:
        """Evaluate a model on the validation data and the test data, or on the test data alone."""
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
