"""The federation on Flower: nodes bid and train; a user's strategy configures and aggregates.

The session drives each round. The strategy makes the winners' training messages and aggregates the
usable replies. Any strategy works, because it is wrapped, not subclassed.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from bara.errors import ConfigError, PausedError, TrainingError
from bara.flower import _strategies as strategies
from bara.flower._bid_collection import BidCollection
from bara.flower._evaluation import EvaluateFunction, Evaluator, Measure, note_metrics
from bara.flower._exchange import NOT_CONNECTED, UNHEARD, Answers, RestrictedGrid, ask
from bara.flower._options import ServerOptions
from bara.flower._remembered_replies import RememberedReplies
from bara.flower._strategy_state import Knowledge, is_finite, remember
from bara.flower._updates import Update, UpdateValidator
from bara.protocols import Capabilities
from bara.records import Award, AwardedRound, Bids, Delivery, Evaluation, Evidence, RoundRecord
from bara.server.memory import Fresh
from bara.server.round import Collected, Remembered, train_round
from bara.server.state import ServerState, prefixed, with_prefix
from bara.text import counted, spelled

if TYPE_CHECKING:
    from bara.clients.bidding import Bidders

Orders = Callable[[int, Award], ConfigRecord]
"""Returns what a round's training messages carry beside the model and the configuration."""

_MODEL = "model/"
"""The prefix of the model's arrays in a checkpoint."""

_FRUITLESS = 3
"""The rounds in a row after which a run pauses if nobody can win, or if nobody delivers."""

_STRATEGY = "strategy/"
"""The prefix of the arrays of the strategy's state in a checkpoint."""

log = logging.getLogger("flwr")


@dataclass
class _CollectedReplies(Collected):
    """The replies of a round on Flower.

    Attributes:
        replies: All replies by client, in the order of the clients' names.
        efforts: The time and traffic that each reply took, by client; empty if not measured.
        updates: The replies that can be used, by client.
        forget: Puts the strategy's state back to what it was before it saw the updates.
    """

    replies: dict[str, Message] = field(default_factory=dict)
    efforts: dict[str, dict[str, Any]] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    forget: Callable[[], None] = lambda: None

    def refuse(self, client: str, reason: str) -> None:
        """Make a client void that delivered: its reply is not used."""
        super().refuse(client, reason)
        del self.updates[client]

    def take_none(self, reason: str) -> None:
        """Make all clients that delivered void; the strategy has learned nothing from them."""
        super().take_none(reason)
        self.forget()


@final
class FlowerFederation(contextlib.ExitStack):
    """A federation of a grid's nodes; an exit stack, so that its maker can add things to close.

    Args:
        connect: Returns Flower's grid; called when the grid is first needed.
        strategy: Any strategy; its own sampling is set aside, because the auction decides who
            trains.
        model: The initial model.
        evaluate: The server's own evaluation, as `Strategy.start` takes it; None to rely on the
            strategy's evaluation on clients.
        options: The settings of the server.
        capabilities: What the strategy and the clients can do for a mechanism; None for what the
            strategy can do by itself.
        orders: Returns what a round's training messages carry beside the model and the
            configuration.
        train_config: The configuration in training messages; a strategy's changes to it last, as
            in Flower.
        evaluate_config: The configuration in evaluation messages; a strategy's changes last, too.
    """

    trains_here = False

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
        """The result, as Flower's own loop returns it."""
        self.kept: ArrayRecord = model
        """The model that the run keeps, once it has ended."""
        self.bidders: Bidders | None = None
        """The clients as bidders, if they are simulated."""
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
        self._last = 0  # the round of the model
        self._known_clients: set[str] = set()  # the clients of earlier sessions
        self._known: Evaluation | None = None  # the last evaluation in an earlier session
        self._bidders_of: tuple[int, frozenset[str]] = (0, frozenset())  # a round, and its bidders
        self._failed: dict[str, str] = {}  # since the last delivery: clients, and why they failed
        self._fruitless = 0  # rounds in a row in which winners trained and nobody delivered
        self._unpayable = 0  # rounds in a row in which the mechanism could pay nobody that bid
        self._once_payable = False  # whether it could ever pay somebody
        self._why_unpayable = ""
        self.result.arrays = model
        # Durable, because the training of silos cannot be repeated.
        self._server = ServerState(self._options.keeping, durable=True, prefix=_MODEL)
        if self._server.memory is not None:
            strategies.check_memory(strategy)
        self._least = strategies.least_winners(strategy)
        strategies.let_winners_in(strategy)

    @cached_property
    def _grid(self) -> Grid:
        return self._connect()

    @cached_property
    def _remembered(self) -> RememberedReplies:
        key = strategies.metric_key(self._strategy)
        return RememberedReplies(self.arrays(self.model), key)

    @cached_property
    def _bids(self) -> BidCollection:
        return BidCollection(self._grid, self._options, self._known_clients)

    @cached_property
    def _evaluation(self) -> Evaluator:
        return Evaluator(
            self._grid,
            self._strategy,
            self._evaluate,
            self._evaluate_config,
            self._options,
            self.result,
            last=self._known,
        )

    @property
    def model(self) -> ArrayRecord:
        """The global model."""
        return self._model

    @model.setter
    def model(self, model: ArrayRecord) -> None:
        self._model = model
        self.result.arrays = model

    @property
    def metric(self) -> str | None:
        """The name of the metric that evaluations are of; None while it is not clear."""
        return self._evaluation.name

    # --- the session's questions -----------------------------------------------------------------

    def begin(self) -> Measure | None:
        """Evaluate the initial model before the books are opened; return the metric that decides.

        None if it is not clear yet.
        """
        return self._evaluation.begin(self.model)

    def evaluate(self) -> Evaluation:
        """Evaluate and save the initial model: a restarted server may draw a different one."""
        evaluation = self._evaluation(0, self.model)
        self.save(0)
        return evaluation

    def note(self, awarded: AwardedRound) -> None:
        """Note whether a round's mechanism can pay any of the clients that bid."""
        if len(awarded.bids) and not len(awarded.costs):
            self._unpayable += 1
            self._why_unpayable = nobody_on_the_menu(awarded)
        else:
            self._unpayable = 0
            self._once_payable |= len(awarded.costs) > 0

    def bids(self, round: int) -> Bids:
        """Return the bids of all nodes that answered in time.

        Raises:
            PausedError: when rounds pass in which nobody can win or nobody delivers.
        """
        if self._unpayable >= (_FRUITLESS if self._once_payable else 1):
            raise PausedError(
                f"nobody could win in the last {counted(self._unpayable, 'round')}: "
                f"{self._why_unpayable}"
            )
        bids = self._bids.bids(round)
        self._bidders_of = (round, frozenset(bids.clients))
        self._check_that_some_may_deliver(bids)
        return bids

    def train(self, round: int, award: Award) -> Delivery:
        """Train the winners, and evaluate the model that the strategy makes of their updates."""
        delivery = train_round(self._server, self, round, award)
        for client, reason in delivery.void.items():
            log.warning("round %d: %s is not paid: %s", round, client, spelled(reason))
        if delivery.delivered:
            self._failed = {}
            self._fruitless = 0
        elif delivery.failed:
            self._failed |= {client: delivery.void[client] for client in delivery.failed}
            self._fruitless += 1
        return delivery

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught before a round."""
        self._server.forget(client, round)

    # --- resume and the end ----------------------------------------------------------------------

    def checkpoint(self, last: int, committed: Callable[[int], str | None]) -> int:
        """Restore the newest whole checkpoint; return its round, or 0 if there is none.

        Args:
            last: The last round whose checkpoint may be used.
            committed: Returns the digest of a round's checkpoint that the ledger holds.
        """
        found = self._server.restore(last, committed)
        if found is None:
            return 0
        self._last = found.round
        self.model = _record(with_prefix(_MODEL, found.arrays))
        self._knowledge.restore(found.extra, with_prefix(_STRATEGY, found.arrays))
        return self._last

    def sealed(self, round: int) -> str | None:
        """Return the digest of a round's checkpoint; None if the round has no checkpoint."""
        return self._server.sealed(round)

    def replay(self, record: RoundRecord) -> None:
        """Take in a round up to the checkpoint: its clients, its evaluation and its model."""
        self._known = record.evaluation
        self._once_payable |= len(record.awarded.costs) > 0
        self._known_clients.update(record.awarded.bids.clients, record.awarded.award.clients)
        self._server.replay(record)

    def finish(self) -> dict[str, Evaluation]:
        """Choose the model to keep; return the evaluation of each model that could be kept.

        If decisions and reports use the same data, the final model is kept without a choice.
        """
        evaluate = None
        if self._server.selects:
            evaluate = self._measured
        evaluations, kept = self._server.finish(evaluate)
        self.kept = _record(kept) if kept else self.model
        return evaluations

    def _measured(self, model: Mapping[str, NDArray[Any]]) -> Evaluation:
        return self._evaluation.measure(self._last, _record(model))

    # --- what the server's round asks of an engine -----------------------------------------------

    def absent(self, round: int) -> list[str] | None:
        """Return the remembered clients that do not bid in this round.

        None if that is not known, because the round resumes from an award in the ledger.
        """
        asked, present = self._bidders_of
        if asked != round or self._server.memory is None:
            return None
        return [client for client in self._server.memory.clients if client not in present]

    def collect(self, round: int, award: Award) -> _CollectedReplies:
        """Send the strategy's training messages to the winners, and wait for the replies."""
        clients, void = self._located(round, award)
        messages = self._messages(round, award, clients)
        answers = ask(self._grid, messages.values(), self._options.train_seconds)
        for node, reason in answers.silent.items():
            void[clients[node]] = reason
        unasked = tuple(client for node, client in clients.items() if node not in messages)
        void |= dict.fromkeys(unasked, self._why_unasked(len(clients)))
        replies = {clients[node]: reply for node, reply in answers.told.items()}
        efforts: dict[str, dict[str, Any]] = {}
        if self._options.measured:
            for node in answers.told:
                efforts[clients[node]] = _effort(messages[node], answers, node)
        return _CollectedReplies(
            void=void, blameless=unasked, replies=dict(sorted(replies.items())), efforts=efforts
        )

    def refuse(self, round: int, collected: _CollectedReplies) -> None:
        """Make clients void whose replies are malformed, or whose models cannot be evaluated."""
        validator = UpdateValidator(
            self.arrays(self.model),
            strategies.metric_key(self._strategy),
            same_shapes=self._options.same_shapes,
            outliers=self._options.outliers,
            kinds=self._kinds,
        )
        collected.updates, refused = validator.admit(collected.replies)
        collected.void |= refused
        self._take_evidence(round, collected)

    def claims(self, collected: _CollectedReplies) -> dict[str, float]:
        """Return the metric of each usable reply by which the strategy weighs it, if any."""
        key = strategies.metric_key(self._strategy)
        found: dict[str, float] = {}
        if key is not None:
            for client, update in collected.updates.items():
                found[client] = update.number(key) or 1.0
        return found

    def weigh(self, collected: _CollectedReplies, weights: Mapping[str, float] | None) -> None:
        """Write the mechanism's weights into the metric by which the strategy weighs replies."""
        if weights is None or not collected.updates:
            return
        key = strategies.weight_key(self._strategy)
        if key is None:
            raise ConfigError(
                "the mechanism sets aggregation weights, which "
                f"{type(self._strategy).__name__} cannot use"
            )
        for client, update in collected.updates.items():
            update.metrics[key] = float(weights[client])

    def changes(self, collected: _CollectedReplies) -> dict[str, Fresh]:
        """Return by how much each update changes the learned parameters."""
        return self._remembered.changes(self.arrays(self.model), collected.updates)

    def aggregate(
        self, round: int, collected: _CollectedReplies, remembered: Remembered | None
    ) -> ArrayRecord | None:
        """Let the strategy aggregate the replies; with a memory, remembered ones among them."""
        if not collected.updates:
            strategies.abandon(self._strategy, round)
            return None
        replies = [update.message for update in collected.updates.values()]
        if remembered is not None:
            replies = self._remembered.beside(
                remembered, round, self.arrays(self.model), collected.updates
            )
        strategies.expect(self._strategy, len(replies))
        was_finite = is_finite(self._strategy)
        collected.forget = remember(self._strategy)
        with self._strategy_at_work(round, "aggregate"):
            model, metrics = self._strategy.aggregate_train(round, replies)
        note_metrics(self.result.train_metrics_clientapp, round, metrics, "Aggregated MetricRecord")
        if was_finite and not is_finite(self._strategy):
            return None  # a server's optimizer would stand still for ever
        return model

    def evaluate_after(self, round: int, model: ArrayRecord) -> Evaluation:
        """Evaluate the model after a round."""
        return self._evaluation(round, model)

    def contributions(
        self, _round: int, _model: ArrayRecord, _evaluation: Evaluation
    ) -> dict[str, float]:
        """Return an empty mapping: contributions are not measured on Flower."""
        return {}

    def shapley(self, _round: int, _model: ArrayRecord) -> None:
        """Return None: Shapley values are not estimated on Flower."""

    def arrays(self, model: ArrayRecord) -> dict[str, NDArray[Any]]:
        """Return a model as arrays by name."""
        return {name: array.numpy() for name, array in model.items()}

    def save(self, round: int) -> None:
        """Save a checkpoint: the model, the strategy's state, and the metrics so far."""
        self._last = round
        words, learned = self._knowledge.save()
        model = prefixed(_MODEL, self.arrays(self.model))
        self._server.save(round, {**model, **prefixed(_STRATEGY, learned)}, words)

    # --- inside ----------------------------------------------------------------------------------

    def _check_that_some_may_deliver(self, bids: Bids) -> None:
        """Pause a run in which all bidders have crashed, or nobody has delivered for some rounds.

        A client that was only not heard of, as when the network is down, has not crashed.
        """
        crashed = {client for client, why in self._failed.items() if not why.startswith(UNHEARD)}
        everybody = bool(crashed) and crashed.issuperset(bids.clients)
        for_long = self._fruitless >= _FRUITLESS and 2 * len(self._failed) >= len(bids)
        if everybody or for_long:
            [(reason, _)] = Counter(self._failed.values()).most_common(1)
            raise PausedError(
                f"nobody delivered in the last {counted(self._fruitless, 'round')}: all "
                f"{counted(len(self._failed), 'client')} that won failed ({reason})"
            )

    def _located(self, round: int, award: Award) -> tuple[dict[int, str], dict[str, str]]:
        """Return the winners by node, and the reasons why others cannot be reached."""
        here: dict[int, str] = {}
        gone: dict[str, str] = {}
        for client, node in self._bids.locate(round, award.clients).items():
            if node is None:
                gone[client] = NOT_CONNECTED
            else:
                here[node] = client
        return here, gone

    def _messages(self, round: int, award: Award, clients: Mapping[int, str]) -> dict[int, Message]:
        """Return the strategy's messages by node; none if it needs more winners than are there."""
        if len(clients) < max(self._least, 1):
            return {}
        self._train_config.update(self._orders(round, award))
        strategies.expect(self._strategy, len(clients))
        # In the grid's order, as without bara; winners that have just left come last.
        places = {node: place for place, node in enumerate(self._grid.get_node_ids())}
        nodes = sorted(clients, key=lambda node: places.get(node, len(places)))
        grid = RestrictedGrid(self._grid, nodes)
        with self._strategy_at_work(round, "configure training"):
            messages = list(
                self._strategy.configure_train(round, self.model, self._train_config, grid)
            )
        found = {}
        for message in messages:
            node = message.metadata.dst_node_id
            if node in clients:
                found[node] = message
        return found

    def _why_unasked(self, winners: int) -> str:
        """Return the reason why the strategy sent nothing to some of the winners."""
        name = type(self._strategy).__name__
        if winners < self._least:
            return f"not asked: {name} needs {self._least} winners, and {winners} are there"
        return f"not asked by {name}, which trains with fewer than all winners"

    def _take_evidence(self, round: int, collected: _CollectedReplies) -> None:
        """Add the evidence of each delivery; refuse updates whose model cannot be evaluated."""
        measures = bool(collected.updates) and self._options.evidence == "server"
        before = None
        if measures:
            before = self._evaluation.measure(round, self.model).loss
        for client, update in list(collected.updates.items()):
            loss_before = before
            loss_after = None
            try:
                if measures:
                    loss_after = self._evaluation.measure(round, update.record).loss
                elif self._options.evidence == "client":
                    loss_before = update.number("loss-before")
                    loss_after = update.number("loss-after")
            except TrainingError:
                collected.void[client] = "the loss of its model is not finite"
                del collected.updates[client]
                continue
            count = update.number("num-examples")
            samples = None if count is None else int(count)
            effort = collected.efforts.get(client, {})
            collected.delivered[client] = Evidence(samples, loss_before, loss_after, **effort)

    @contextlib.contextmanager
    def _strategy_at_work(self, round: int, what: str) -> Iterator[None]:
        """Raise any error of the strategy as a `TrainingError` that names the strategy."""
        try:
            yield
        except Exception as error:
            name = type(self._strategy).__name__
            raise TrainingError(
                f"round {round}: {name} could not {what}, so nobody is paid: {error}"
            ) from error


def nobody_on_the_menu(awarded: AwardedRound) -> str:
    """Return why a mechanism can pay none of the clients that bid, and what to do."""
    prices = awarded.bids.prices
    cheapest = awarded.purse.show(int(prices.min()))
    return (
        f"{counted(len(prices), 'client')} bid, the cheapest asks {cheapest}, and the mechanism "
        "pays nobody as much: its reserve price (bara.mechanism.reserve), price or fee must be "
        "at least that"
    )


def _effort(sent: Message, answers: Answers, node: int) -> dict[str, Any]:
    """Return the seconds from order to reply, and the bytes sent and received."""
    return {
        "seconds": round(answers.seconds[node], 3),
        "bytes_sent": _size(sent),
        "bytes_received": _size(answers.told[node]),
    }


def _size(message: Message) -> int:
    records: Iterable[Any] = message.content.values()
    return sum(record.count_bytes() for record in records)


def _record(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})
