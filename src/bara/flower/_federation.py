"""The federation on Flower: nodes bid and train over a grid, a user's strategy configures and aggregates.

The market drives; the strategy is asked for the winners' training messages and handed the usable
replies. Any strategy works, because it is wrapped, not subclassed.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from bara.errors import ConfigError, TrainingError
from bara.flower import _strategies as strategies
from bara.flower._bid_collection import BidCollection
from bara.flower._evaluation import EvaluateFunction, Evaluator, note
from bara.flower._exchange import Answers, RestrictedGrid, ask
from bara.flower._memory import RememberedReplies
from bara.flower._options import ServerOptions
from bara.flower._state import Knowledge
from bara.flower._updates import Update, UpdateValidator
from bara.protocols import Capabilities
from bara.records import Award, Bids, Delivery, Evaluation, Evidence, RoundRecord
from bara.server.state import ServerState, named, part

if TYPE_CHECKING:
    from bara.clients.bidding import Bidders

Orders = Callable[[int, Award], ConfigRecord]
"""What a round's training messages carry beside the model and the configuration."""

_MODEL, _STRATEGY = "model/", "strategy/"
"""How a checkpoint tells the model's arrays from what the strategy has learned."""

log = logging.getLogger("flwr")


@final
class FlowerFederation(contextlib.ExitStack):
    """Bids and trains over a grid; a context manager, because whoever makes it may have processes to end with it.

    Args:
        connect: Gives Flower's grid, in simulation and in deployment; called when it is first
            needed.
        strategy: Any; its own sampling is set aside, since the auction decides who trains.
        model: The initial arrays.
        evaluate: The server's own evaluation of arrays, as `Strategy.start` takes it; None to rely
            on the strategy's evaluation on clients.
        options: How the server works.
        capabilities: What strategy and clients can do for a mechanism.
        orders: What a round's training messages carry beside the model and the configuration.
        train_config: What training messages carry; what a strategy changes in it stays changed, as
            in Flower.
        evaluate_config: What evaluation messages carry, likewise.
    """

    def __init__(
        self,
        connect: Callable[[], Grid],
        strategy: Strategy,
        model: ArrayRecord,
        evaluate: EvaluateFunction | None = None,
        *,
        options: ServerOptions | None = None,
        capabilities: Capabilities | None = None,
        orders: Orders = lambda _round, _award: ConfigRecord(),
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
    ) -> None:
        super().__init__()
        self.result = Result()
        """What Flower's own loop would have returned."""
        self.kept: ArrayRecord = model
        """The model to take home, once the run has ended."""
        self.bidders: Bidders | None = None
        """The clients as bidders, where they are simulated."""
        self.capabilities = capabilities or strategies.capabilities(
            strategy, protects=False, measures=evaluate is not None, repeatable=False
        )
        self._connect = connect
        self._strategy = strategy
        self._model = model
        self._kinds = {name: np.dtype(array.dtype).kind for name, array in model.items()}
        self._evaluate = evaluate
        self._train_config = ConfigRecord() if train_config is None else train_config
        self._evaluate_config = ConfigRecord() if evaluate_config is None else evaluate_config
        self._knowledge = Knowledge(
            strategy, self._train_config, self._evaluate_config, self.result
        )
        self._options = options or ServerOptions()
        self._orders = orders
        self._last = 0  # the round the model is from
        self._known_clients: set[str] = set()  # of earlier sessions
        self._known: Evaluation | None = None  # how good the model was when another session left it
        self.result.arrays = model
        # Durable, because what silos have trained cannot be made again.
        self._kept = ServerState(self._options.keeping, durable=True, prefix=_MODEL)
        self._effort: dict[str, dict[str, Any]] = {}  # what this round's replies took
        self._present: tuple[int, frozenset[str]] = (
            0,
            frozenset(),
        )  # a round, and who has bid in it
        if self._kept.memory is not None:
            strategies.check_memory(strategy)
        self._least = strategies.least_winners(strategy)
        strategies.let_winners_in(strategy)

    @cached_property
    def _grid(self) -> Grid:
        return self._connect()

    @cached_property
    def _remembered(self) -> RememberedReplies:
        return RememberedReplies(_numpy(self._model), strategies.metric_key(self._strategy))

    @cached_property
    def _bids(self) -> BidCollection:
        return BidCollection(self._grid, self._options, self._known_clients)

    @cached_property
    def _evaluation(self) -> Evaluator:
        config, known = self._evaluate_config, self._known
        return Evaluator(
            self._grid, self._strategy, self._evaluate, config, self._options, self.result, known
        )

    @property
    def model(self) -> ArrayRecord:
        """The global model."""
        return self._model

    # --- the market's questions ------------------------------------------------------------------

    def evaluate(self) -> Evaluation:
        """The initial model, which is kept: a strategy's may be drawn anew when the server starts again."""
        evaluation = self._evaluation(0, self._model)
        self._save(0)
        return evaluation

    def bids(self, round: int) -> Bids:
        """The sealed bids of every node that answered in time."""
        bids = self._bids.bids(round)
        self._present = round, frozenset(bids.clients)
        return bids

    def train(self, round: int, award: Award) -> Delivery:
        """Train the winners, drop what did not arrive or cannot be used, let the strategy aggregate, evaluate."""
        forgotten = self._forget_outdated(round)
        updates, void, blameless = self._updates(round, award)
        delivered, refused = self._evidence(round, updates)
        model = self._aggregated(round, award, {client: updates[client] for client in delivered})
        if model is None:
            refused |= dict.fromkeys(delivered, "the strategy took no update this round")
            blameless += tuple(delivered)
            model, delivered = self._model, {}
        void |= refused
        evaluation = (
            self._kept.judged(partial(self._evaluation, round, model)) if delivered else None
        )
        if evaluation is None:
            model, evaluation = self._model, self._evaluation(round, self._model)
        self._model = self.result.arrays = model
        self._last = round
        self._kept.tell(round, _numpy(model), evaluation)
        self._save(round)
        for client, reason in void.items():
            log.warning("round %d: %s is not paid: %s", round, client, reason)
        ages = self._kept.ages(round) if delivered else {}
        return Delivery(evaluation, delivered, void, ages, forgotten, blameless)

    def forget(self, client: str, round: int) -> None:
        """Let go of what that client taught before that round."""
        self._kept.forget(client, round)

    # --- resume and the end ----------------------------------------------------------------------

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Load the newest whole checkpoint that is not later than that round."""
        found = self._kept.restore(last, committed)
        if found is None:
            return 0
        self._last = found.round
        self._model = self.result.arrays = _record(part(_MODEL, found.arrays))
        self._knowledge.restore(found.extra, part(_STRATEGY, found.arrays))
        return self._last

    def sealed(self, round: int) -> str | None:
        """The digest of that round's checkpoint, where it has one."""
        return self._kept.sealed(round)

    def replay(self, record: RoundRecord) -> None:
        """Pass a round up to the checkpoint: the models kept beside the last are kept again."""
        self._known = record.evaluation
        self._known_clients.update(record.awarded.bids.clients, record.awarded.award.clients)
        self._kept.replay(record)

    def finish(self) -> dict[str, Evaluation]:
        """Evaluate what may be taken home, where decisions are made on other data than are reported, and save it."""
        evaluate = (
            (lambda model: self._evaluation.measure(self._last, _record(model)))
            if self._kept.selects
            else None
        )
        found, model = self._kept.finish(evaluate)
        self.kept = _record(model) if model else self._model
        return found

    def _save(self, round: int) -> None:
        """Save the model and everything else that another server needs to go on as this one would."""
        words, learned = self._knowledge.save()
        self._kept.save(
            round, {**named(_MODEL, _numpy(self._model)), **named(_STRATEGY, learned)}, words
        )

    def _forget_outdated(self, round: int) -> tuple[str, ...]:
        """Let go of what is too old; who has bid in a round that a stored promise goes on with is not known."""
        asked, present = self._present
        if self._kept.memory is None:
            return ()
        absent = (
            [one for one in self._kept.memory.clients if one not in present]
            if asked == round
            else None
        )
        return self._kept.forget_outdated(round, absent)

    # --- training --------------------------------------------------------------------------------

    def _updates(
        self,
        round: int,
        award: Award,
    ) -> tuple[dict[str, Update], dict[str, str], tuple[str, ...]]:
        """The usable updates in the order of the clients' names, why there are none from others, who was not asked."""
        clients, void = self._located(round, award)
        messages = self._messages(round, award, clients)
        answers = ask(self._grid, messages.values(), self._options.train_seconds)
        void |= {clients[node]: reason for node, reason in answers.silent.items()}
        replies = {clients[node]: reply for node, reply in answers.told.items()}
        if self._options.measured:
            self._effort = {
                clients[node]: _effort(messages[node], answers, node) for node in answers.told
            }
        unasked = tuple(client for node, client in clients.items() if node not in messages)
        void |= dict.fromkeys(unasked, self._why_unasked(len(clients)))
        validator = UpdateValidator(
            _numpy(self._model),
            strategies.metric_key(self._strategy),
            same_shapes=self._options.same_shapes,
            outliers=self._options.outliers,
            kinds=self._kinds,
        )
        updates, refused = validator.admit(dict(sorted(replies.items())))
        return updates, void | refused, unasked

    def _messages(self, round: int, award: Award, clients: Mapping[int, str]) -> dict[int, Message]:
        """What the strategy sends to whom of the winners; nothing where they are too few for it."""
        if len(clients) < max(self._least, 1):
            return {}
        self._train_config.update(self._orders(round, award))
        strategies.expect(self._strategy, len(clients))
        grid = RestrictedGrid(self._grid, clients)
        with self._strategy_at_work(round, "configure training"):
            messages = list(
                self._strategy.configure_train(round, self._model, self._train_config, grid)
            )
        return {m.metadata.dst_node_id: m for m in messages if m.metadata.dst_node_id in clients}

    def _why_unasked(self, winners: int) -> str:
        name = type(self._strategy).__name__
        if winners < self._least:
            return f"not asked: {name} needs {self._least} winners, and {winners} are there"
        return f"not asked by {name}, which trains with fewer than all winners"

    def _located(self, round: int, award: Award) -> tuple[dict[int, str], dict[str, str]]:
        """The winners by node, and those that cannot be found any more."""
        found = self._bids.locate(round, award.clients)
        here = {node: client for client, node in found.items() if node is not None}
        return here, {
            client: "its node is not connected" for client, node in found.items() if node is None
        }

    def _aggregated(
        self, round: int, award: Award, updates: Mapping[str, Update]
    ) -> ArrayRecord | None:
        """The next model; None where there is nothing to make it of, or the strategy makes none."""
        if not updates:
            strategies.abandon(self._strategy, round)
            return None
        weights = self._kept.weights(award)
        if weights is not None:
            self._weigh(weights, updates)
        memory, replies = self._kept.memory, [update.message for update in updates.values()]
        if memory is not None:
            memory, replies = self._remembered.beside(memory, round, _numpy(self._model), updates)
        strategies.expect(self._strategy, len(replies))
        with self._strategy_at_work(round, "aggregate"):
            model, metrics = self._strategy.aggregate_train(round, replies)
        note(self.result.train_metrics_clientapp, round, metrics, "Aggregated MetricRecord")
        if model is not None:  # what the strategy did not take is not paid, and not remembered
            self._kept.memory = memory
        return model

    @contextlib.contextmanager
    def _strategy_at_work(self, round: int, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            name = type(self._strategy).__name__
            raise TrainingError(
                f"round {round}: {name} could not {what}, so nobody is paid: {error}"
            ) from error

    def _weigh(self, weights: Mapping[str, float], updates: Mapping[str, Update]) -> None:
        """Put the mechanism's weights where the strategy reads its own."""
        key = strategies.weight_key(self._strategy)
        if key is None:
            raise ConfigError(
                f"the mechanism sets aggregation weights, which {type(self._strategy).__name__} cannot use"
            )
        for client, update in updates.items():
            update.metrics[key] = float(weights[client])

    def _evidence(
        self,
        round: int,
        updates: Mapping[str, Update],
    ) -> tuple[dict[str, Evidence], dict[str, str]]:
        """What the server saw of each update, and those whose model it cannot even evaluate."""
        measured = bool(updates) and self._options.evidence == "server"
        before = self._evaluation.measure(round, self._model).loss if measured else None
        found: dict[str, Evidence] = {}
        refused: dict[str, str] = {}
        for client, update in updates.items():
            losses: tuple[float | None, float | None] = (None, None)
            if self._options.evidence == "client":
                losses = update.number("loss-before"), update.number("loss-after")
            try:
                losses = (
                    (before, self._evaluation.measure(round, update.record).loss)
                    if measured
                    else losses
                )
            except TrainingError:
                refused[client] = "the loss of its model is not finite"
                continue
            samples = update.number("num-examples")
            found[client] = Evidence(
                None if samples is None else int(samples), *losses, **self._effort.get(client, {})
            )
        return found, refused


def _effort(sent: Message, answers: Answers, node: int) -> dict[str, Any]:
    """What a reply took: time from order to reply, and traffic."""
    return {
        "seconds": round(answers.seconds[node], 3),
        "bytes_sent": _size(sent),
        "bytes_received": _size(answers.told[node]),
    }


def _size(message: Message) -> int:
    records: Iterable[Any] = message.content.values()
    return sum(record.count_bytes() for record in records)


def _numpy(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    return {name: array.numpy() for name, array in record.items()}


def _record(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})
