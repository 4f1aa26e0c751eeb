"""The federation on Flower: nodes bid and train over a grid, a user's strategy configures and aggregates.

The market drives; the strategy is asked for the winners' training messages and handed the usable replies. Any strategy
works, because it is wrapped, not subclassed.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from bara.errors import ConfigError, InvalidBidError, RunStoppedError, TrainingError
from bara.faults import point
from bara.federations.checkpoints import save
from bara.federations.flower import sealed, strategies
from bara.federations.flower.exchange import Among, ask
from bara.federations.flower.identity import By, Directory
from bara.federations.flower.shelf import Shelf
from bara.federations.flower.updates import Door, Update
from bara.records import MAX_MONEY, Award, Bids, Delivery, Evaluation, Evidence, RoundRecord

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
Orders = Callable[[int, Award], ConfigRecord]
"""What a round's training messages carry beside the model."""

log = logging.getLogger("flwr")


@final
@dataclass(frozen=True)
class Habits:
    """How a server on Flower goes about its work.

    Attributes:
        bid_seconds: How long a round's bids stay open; who is silent is not in this round's menu.
        train_seconds: How long winners may train; who is silent then is void.
        evaluate_seconds: How long clients may evaluate, where the strategy has them do so.
        fewest: Connected nodes without which no round begins.
        patience: Seconds to wait for them before the run stops between rounds.
        columns: What every bid must carry.
        evidence: Where a client's loss before and after comes from: nowhere, `server`, measured with the evaluation
            function on the server's own data, or `client`, its own metrics `loss-before` and `loss-after` (for
            simulated clients, which do not lie).
        outliers: Refuse updates so many robust deviations farther from the others than is usual; None for none.
        same_shapes: Refuse updates that are not shaped as the model; not so for trees, which grow.
        accuracy: The metric that decisions are made on; `loss`, `test-accuracy` and `test-loss` are read beside it.
        repeatable: Whether the same award trains to the same model again, as only simulated clients promise.
        known_by: What clients are known by.
        folder: Where checkpoints and the model go; None to keep none.
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
    repeatable: bool = False
    known_by: By = "key"
    folder: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be waited for."""
        for name in ("bid_seconds", "train_seconds", "evaluate_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"federation.{name} is {getattr(self, name)}; required is a finite number above 0")
        if self.fewest < 1 or self.patience < 0:
            raise ConfigError(
                f"federation.fewest is {self.fewest} and patience {self.patience}; required are at least 1 and 0"
            )


@final
class FlowerFederation:
    """Bids and trains over a grid.

    Args:
        grid: Flower's; in simulation and in deployment.
        strategy: Any; its own sampling is set aside, since the auction decides who trains.
        model: The initial arrays.
        evaluate: The server's own evaluation of arrays, as `Strategy.start` takes it; None to rely on the strategy's
            evaluation on clients.
        habits: How the server works.
        orders: What training messages carry beside the model.
        evaluate_config: What evaluation messages carry beside the model.
    """

    def __init__(
        self,
        grid: Grid,
        strategy: Strategy,
        model: ArrayRecord,
        evaluate: EvaluateFunction | None = None,
        *,
        habits: Habits | None = None,
        orders: Orders = lambda _round, _award: ConfigRecord(),
        evaluate_config: ConfigRecord | None = None,
    ) -> None:
        self.result = Result()
        """What Flower's own loop would have returned."""
        self._grid = grid
        self._strategy = strategy
        self._model = model
        self._evaluate = evaluate
        self._habits = habits or Habits()
        self._orders = orders
        self._evaluate_config = evaluate_config or ConfigRecord()
        self._directory = Directory(self._habits.known_by)
        self._shelf = Shelf(self._habits.folder)
        self._opened: tuple[int, Bids] | None = None
        self.result.arrays = model
        strategies.let_winners_in(strategy)

    @property
    def repeatable(self) -> bool:
        """Whether a round can be trained again to the same result."""
        return self._habits.repeatable

    @property
    def model(self) -> ArrayRecord:
        """The global model."""
        return self._model

    # --- the market's questions ------------------------------------------------------------------

    def evaluate(self) -> Evaluation:
        """The initial model, which is kept: a strategy's may be drawn anew when the server starts again."""
        self._shelf.put(0, _numpy(self._model), strategies.memory(self._strategy))
        return self._evaluation(0, self._model)

    def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
        """The sealed bids of every node that answered in time; one a round, however often they are asked for."""
        if self._opened is None or self._opened[0] != round:
            self._opened = round, self._collect(round)
        return self._opened[1]

    def train(self, round: int, award: Award) -> Delivery:  # noqa: A002
        """Train the winners, drop what did not arrive or cannot be used, let the strategy aggregate, evaluate."""
        updates, void = self._updates(round, award)
        model, evidence = self._model, dict[str, Evidence]()
        if updates:
            evidence = self._evidence(round, updates)
            merged = self._aggregated(round, award, updates)
            if merged is None:
                void |= dict.fromkeys(updates, "the strategy took no update this round")
                updates = {}
            else:
                model = merged
        evaluation = self._evaluation(round, model)
        self._model = self.result.arrays = model
        self._shelf.put(round, _numpy(model), strategies.memory(self._strategy))
        point("state saved")
        for client, reason in void.items():
            log.warning("round %d: %s is not paid: %s", round, client, reason)
        return Delivery(evaluation, {client: evidence[client] for client in updates}, void)

    # --- resume and the end ----------------------------------------------------------------------

    def checkpoint(self, last: int) -> int:
        """Load the newest whole checkpoint that is not later than that round."""
        found = self._shelf.newest(last)
        if found is None:
            return 0
        number, model, memory = found
        self._model = self.result.arrays = _record(model)
        strategies.recall(self._strategy, memory)
        return number

    def recall(self, record: RoundRecord) -> None:
        """Nothing beside the checkpoint needs to be known again."""

    def finish(self) -> dict[str, dict[str, float]]:
        """Save the final model."""
        if self._habits.folder is not None:
            save(self._habits.folder / "model-final.npz", _numpy(self._model), 0, {"model": "final"})
        return {}

    # --- bids ------------------------------------------------------------------------------------

    def _collect(self, round: int) -> Bids:  # noqa: A002
        nodes = self._nodes()
        most = MAX_MONEY >> max(len(nodes), 1).bit_length()
        seconds = self._habits.bid_seconds
        answers = ask(self._grid, [sealed.request(node, round, seconds) for node in nodes], seconds)
        opened: dict[int, sealed.Opened] = {}
        problems = dict(answers.silent)
        for node, reply in answers.told.items():
            try:
                opened[node] = sealed.read(reply.content, most)
            except InvalidBidError as error:
                problems[node] = str(error)
        clients = self._directory.read(nodes.values(), opened)
        for node, problem in problems.items():
            log.warning("round %d: node %d is not in the menu: %s", round, node, problem)
        return self._sealed({client: opened[node] for client, node in clients.items() if node in opened})

    def _sealed(self, opened: Mapping[str, sealed.Opened]) -> Bids:
        """The bids with the columns the mechanism wants, and those that all of them carry."""
        wanted = set(self._habits.columns)
        bidding = {c: bid for c, bid in opened.items() if bid.price is not None and bid.columns.keys() >= wanted}
        for client in opened.keys() - bidding.keys():
            if opened[client].price is not None:
                log.warning("%s is not in the menu: its bid lacks %s", client, wanted - opened[client].columns.keys())
        common = wanted.union(*[bid.columns for bid in bidding.values()])
        common = common.intersection(*[bid.columns for bid in bidding.values()])
        clients = tuple(bidding)
        columns = {name: [bidding[client].columns[name] for client in clients] for name in sorted(common)}
        return Bids(clients, [bidding[client].price for client in clients], columns)  # type: ignore[arg-type]

    def _nodes(self) -> dict[int, NodeInfo]:
        """Who is connected; waits for the fewest without which no round begins."""
        begun, habits = time.monotonic(), self._habits
        while len(nodes := list(self._grid.get_nodes())) < habits.fewest:
            if time.monotonic() - begun >= habits.patience:
                raise RunStoppedError(
                    f"{len(nodes)} nodes are connected after {habits.patience:g} seconds; required are {habits.fewest}"
                )
            time.sleep(min(1.0, habits.patience))
        return {node.node_id: node for node in nodes}

    # --- training --------------------------------------------------------------------------------

    def _updates(self, round: int, award: Award) -> tuple[dict[str, Update], dict[str, str]]:  # noqa: A002
        """The usable updates in the order of the clients' names, and why there are none from the others."""
        clients, void = self._located(round, award)
        grid = Among(self._grid, clients)
        config = self._orders(round, award)
        messages = self._strategy.configure_train(round, self._model, config, grid) if clients else ()
        mine = [message for message in messages if message.metadata.dst_node_id in clients]
        answers = ask(self._grid, mine, self._habits.train_seconds)
        void |= {clients[node]: reason for node, reason in answers.silent.items()}
        replies = {clients[node]: reply for node, reply in answers.told.items()}
        asked = replies.keys() | void.keys()
        void |= {client: "the strategy sent it nothing" for client in clients.values() if client not in asked}
        door = Door(
            _numpy(self._model),
            strategies.metric_key(self._strategy),
            same_shapes=self._habits.same_shapes,
            outliers=self._habits.outliers,
        )
        updates, refused = door.admit(dict(sorted(replies.items())))
        return updates, void | refused

    def _located(self, round: int, award: Award) -> tuple[dict[int, str], dict[str, str]]:  # noqa: A002
        """The winners by node, and those that cannot be found any more."""
        if any(self._directory.node_of(client) is None for client in award.clients):
            self.bids(round)  # after a restart: only the nodes know who they are
        found = {client: self._directory.node_of(client) for client in award.clients}
        here = {node: client for client, node in found.items() if node is not None}
        return here, {client: "its node is not connected" for client, node in found.items() if node is None}

    def _aggregated(self, round: int, award: Award, updates: Mapping[str, Update]) -> ArrayRecord | None:  # noqa: A002
        if award.weights is not None:
            self._weigh(award, updates)
        try:
            model, metrics = self._strategy.aggregate_train(round, [update.message for update in updates.values()])
        except Exception as error:
            name = type(self._strategy).__name__
            raise TrainingError(f"round {round}: {name} could not aggregate (nobody is paid): {error}") from error
        if metrics is not None:
            self.result.train_metrics_clientapp[round] = metrics
        return model

    def _weigh(self, award: Award, updates: Mapping[str, Update]) -> None:
        """Put the mechanism's weights where the strategy reads its own."""
        key = strategies.weight_key(self._strategy)
        if key is None:
            raise ConfigError(
                f"the mechanism brings aggregation weights, which {type(self._strategy).__name__} cannot honour"
            )
        weights = dict(zip(award.clients, award.weights or (), strict=True))
        for client, update in updates.items():
            update.metrics[key] = float(weights[client])

    def _evidence(self, round: int, updates: Mapping[str, Update]) -> dict[str, Evidence]:  # noqa: A002
        measured = self._habits.evidence == "server"
        before = self._evaluation(round, self._model).loss if measured else None
        found = {}
        for client, update in updates.items():
            losses = (before, self._evaluation(round, update.record).loss) if measured else (None, None)
            if self._habits.evidence == "client":
                losses = update.number("loss-before"), update.number("loss-after")
            samples = update.number("num-examples")
            found[client] = Evidence(None if samples is None else int(samples), *losses)
        return found

    # --- evaluation ------------------------------------------------------------------------------

    def _evaluation(self, round: int, model: ArrayRecord) -> Evaluation:  # noqa: A002
        metrics = self._server_metrics(round, model) if self._evaluate else self._client_metrics(round, model)
        found = {key: metrics.get(key) for key in (self._habits.accuracy, "loss", "test-accuracy", "test-loss")}
        broken = {key: value for key, value in found.items() if isinstance(value, float) and not math.isfinite(value)}
        if broken:
            raise TrainingError(f"round {round}: the model's {broken} is not finite (nobody is paid)")
        if found[self._habits.accuracy] is None:
            raise ConfigError(
                f"the evaluation tells {sorted(metrics)}; required is {self._habits.accuracy!r}, from evaluate_fn or "
                "from the clients' evaluation"
            )
        return Evaluation(*found.values())  # type: ignore[arg-type]

    def _server_metrics(self, round: int, model: ArrayRecord) -> Mapping[str, Any]:  # noqa: A002
        assert self._evaluate is not None  # noqa: S101 - for the type checker
        metrics = self._evaluate(round, model)
        if metrics is None:
            return {}
        self.result.evaluate_metrics_serverapp[round] = metrics
        return metrics

    def _client_metrics(self, round: int, model: ArrayRecord) -> Mapping[str, Any]:  # noqa: A002
        """The strategy's evaluation on clients, where the server has no data of its own."""
        self._nodes()
        messages = list(self._strategy.configure_evaluate(round, model, self._evaluate_config, self._grid))
        answers = ask(self._grid, messages, self._habits.evaluate_seconds)
        metrics = self._strategy.aggregate_evaluate(round, list(answers.told.values()))
        if metrics is None:
            return {}
        self.result.evaluate_metrics_clientapp[round] = metrics
        return metrics


def _numpy(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    return {name: array.numpy() for name, array in record.items()}


def _record(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})
