"""The simulated federation: bidders with data, who train, fail, cheat, and whose updates become the next model."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.conduct import Conduct
from bara.errors import TrainingError
from bara.protocols import Capabilities
from bara.records import Award, Bids, Delivery, Evaluation, Evidence, RoundRecord
from bara.server.memory import Fresh
from bara.server.screening import refusals
from bara.server.state import Keeping, ServerState
from bara.simulator.aggregation import aggregate
from bara.simulator.engine import Engine, State, Updates


@dataclass(frozen=True)
class ServerOptions:
    """How a simulated server goes about its work.

    Attributes:
        weigh_by_samples: Weigh updates by data size, otherwise equally; a mechanism's own weights
            come first where nothing is remembered.
        evidence: Measure each client's own loss before and after training, too.
        outliers: Refuse updates so many robust deviations farther from the others than is usual;
            None for all.
        same_held_out: Decide and report on one and the same held-out set, as the paper does.
        keeping: What it keeps from round to round.
        checkpoint_every: Save a checkpoint every so many rounds; 0 for none. A resumed run trains
            again what came after the last one.
        contributions_every: Measure what each client contributes every so many rounds; 0 for never.
    """

    weigh_by_samples: bool
    evidence: bool
    outliers: float | None
    same_held_out: bool
    keeping: Keeping
    checkpoint_every: int
    contributions_every: int = 0


@final
class SimulatedFederation(AbstractContextManager["SimulatedFederation"]):
    """Trains a real model on real data; a context manager, because the engine holds processes.

    Args:
        engine: Trains and evaluates; it has the held-out parts `validation` and `test`.
        bidders: Who bids what.
        conduct: Who fails, is late, rides free or poisons.
        options: How the server works.
    """

    capabilities = Capabilities(protects=True)
    """It trains with local differential privacy where it is told to."""

    def __init__(
        self, engine: Engine, bidders: Bidders, conduct: Conduct, options: ServerOptions
    ) -> None:
        self.bidders = bidders
        self._engine = engine
        self._conduct = conduct
        self._options = options
        self._state = engine.start()
        self._kept = ServerState(options.keeping, durable=False)
        self._index = {client: i for i, client in enumerate(bidders.clients)}

    def __exit__(self, *_: object) -> None:
        """End the worker processes."""
        self._engine.close()

    @property
    def state(self) -> State:
        """The global model, in one flat vector."""
        return self._state.copy()

    def restore(self, state: State) -> None:
        """Go on from this model (a checkpoint's)."""
        self._state = np.array(state, np.float32)

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Load the newest whole checkpoint that is not later than that round."""
        found = self._kept.restore(last, committed)
        if found is None:
            return 0
        self.restore(found.state)
        return found.round

    def sealed(self, round: int) -> str | None:
        """The digest of that round's checkpoint, where it has one."""
        return self._kept.sealed(round)

    def replay(self, record: RoundRecord) -> None:
        """Pass a round up to the checkpoint: bidders learn, and the models kept beside the last are kept again."""
        self.bidders.tell(record.round, record.awarded.award)
        self._kept.replay(record)

    def evaluate(self) -> Evaluation:
        """The model on the validation part, for decisions, and on the test part, for reports."""
        return self._evaluation(self._state)

    def bids(self, round: int) -> Bids:
        """What each client that is there asks."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:
        """Train the winners, drop what did not arrive or cannot be used, aggregate, evaluate."""
        self.bidders.tell(round, award)
        forgotten = self._kept.forget_outdated(round, self.bidders.away(round))
        void = self._conduct.absent(round, award.clients)
        # In the order of the clients, not of the auction: the sum is then the same whoever was
        # cheapest.
        winners = sorted(
            (client for client in award.clients if client not in void), key=self._index.__getitem__
        )
        delivered: dict[str, Evidence] = {}
        state = self._state
        if winners:
            updates = self._updates(round, winners)
            refused = refusals(self._state, list(updates.states), self._options.outliers)
            losses = zip(updates.loss_before, updates.loss_after, strict=True)
            refused |= {
                i: "its loss is not finite"
                for i, told in enumerate(losses)
                if not np.isfinite([*filter(None, told)]).all()
            }
            kept = [i for i in range(len(winners)) if i not in refused]
            if not kept:
                raise TrainingError(
                    f"round {round}: no update can be used ({next(iter(refused.values()))}), so nobody is paid; a "
                    "smaller training.learning_rate may help"
                )
            void |= {winners[i]: reason for i, reason in refused.items()}
            weights = self._weights(award, winners, updates)
            state = aggregate(
                updates, [0.0 if i in refused else weight for i, weight in enumerate(weights)]
            )
            if self._kept.memory is not None:
                learned = (
                    self._engine.layout.learned
                )  # statistics (of batch norm) stay the winners'
                start = self._state[:learned]
                changes = {
                    winners[i]: Fresh(updates.states[i][:learned] - start, weights[i]) for i in kept
                }
                state[:learned] = start + self._kept.memory.tell(round, changes)
            delivered = {winners[i]: _evidence(updates, i) for i in kept}
        evaluation = self._kept.judged(partial(self._evaluation, state)) if delivered else None
        contributions = {} if evaluation is None else self._contributions(round, state, evaluation)
        if evaluation is None:
            state, evaluation = self._state, self._evaluation(self._state)
        self._state = state
        self._kept.tell(round, {"state": state}, evaluation)
        every = self._options.checkpoint_every
        if every and round % every == 0:
            self._kept.save(round, {"state": state})
        ages = self._kept.ages(round) if delivered else {}
        return Delivery(evaluation, delivered, void, ages, forgotten, contributions=contributions)

    def forget(self, client: str, round: int) -> None:
        """Let go of what that client taught before that round."""
        self._kept.forget(client, round)

    def finish(self) -> dict[str, Evaluation]:
        """Evaluate what may be taken home, and save it."""
        return self._kept.finish(lambda model: self._evaluation(model["state"]))[0]

    def _updates(self, round: int, winners: Sequence[str]) -> Updates:
        clients = [self._index[client] for client in winners]
        updates = self._engine.train(self._state, round, clients, evidence=self._options.evidence)
        return self._conduct.tamper(round, winners, self._state, updates)

    def _weights(self, award: Award, winners: Sequence[str], updates: Updates) -> list[float]:
        own = self._kept.weights(award)
        if own is not None:
            return [own[client] for client in winners]
        if self._options.weigh_by_samples:
            return [float(samples) for samples in updates.samples]
        return [1.0] * len(winners)

    def _contributions(self, round: int, state: State, evaluation: Evaluation) -> dict[str, float]:
        """By how much the model is better for each remembered update: evaluated once without each of them."""
        every, memory = self._options.contributions_every, self._kept.memory
        if memory is None or not every or round % every:
            return {}
        found: dict[str, float] = {}
        learned = self._engine.layout.learned
        for client, step in memory.steps_without():
            without = state.copy()
            without[:learned] = self._state[:learned] + step
            with suppress(
                TrainingError
            ):  # a model that is not finite without somebody tells nothing
                found[client] = (
                    evaluation.reported_accuracy - self._engine.evaluate(without, "test").accuracy
                )
        return found

    def _evaluation(self, state: State) -> Evaluation:
        test = self._engine.evaluate(state, "test")
        if self._options.same_held_out:
            return Evaluation(test.accuracy, test.loss, samples=test.samples)
        validation = self._engine.evaluate(state, "validation")
        return Evaluation(
            validation.accuracy, validation.loss, test.accuracy, test.loss, validation.samples
        )


def _evidence(updates: Updates, i: int) -> Evidence:
    return Evidence(updates.samples[i], updates.loss_before[i], updates.loss_after[i])
