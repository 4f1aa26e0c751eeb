"""What bara adds on Flower: a round (bids, training) beside two plain exchanges.

Both use the same nodes, in turn. Flower's simulation engine, 20 clients, a trivial model, everybody
wins; the bara round includes its ledger's commits.
"""

import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "flower"))
from telemetry_off import quieten  # isort: skip - before Flower itself

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from ray_simulation import Simulation

from bara import Purse, RoundRecord
from bara.allocators import Fixed
from bara.flower._bidders import answer_bids, fixed
from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions
from bara.ledger import Books, Store
from bara.mechanisms import bid_price_first
from bara.runs.session import Session

CLIENTS, ROUNDS, WARM = 20, 24, 4
LIMIT = 1.3

app = ClientApp()
answer_bids(app, fixed(1.0))


@app.query("plain")
def plain(message, _context):
    return Message(RecordDict({"metrics": MetricRecord({"one": 1})}), reply_to=message)


@app.train()
def train(message, _context):
    metrics = MetricRecord({"num-examples": 1})
    return Message(
        RecordDict({"arrays": message.content["arrays"], "metrics": metrics}), reply_to=message
    )


def model():
    return ArrayRecord({"w": Array(np.zeros(10, np.float32))})


def exchanges(grid, strategy, number):
    """What Flower itself does for two messages a client: one question, one training, aggregated."""
    question = RecordDict({"config": ConfigRecord({"round": number})})
    list(
        grid.send_and_receive(
            [Message(question, node, "query.plain") for node in grid.get_node_ids()], timeout=60
        )
    )
    messages = strategy.configure_train(number, model(), ConfigRecord(), grid)
    strategy.aggregate_train(number, list(grid.send_and_receive(messages, timeout=60)))


def bara_rounds(grid, home):
    """The market with its books, round by round."""
    purse = Purse.of(1000, ROUNDS)
    books = Books.open(Store.in_file(Path(home) / "ledger.db"), "bench", {}, purse)
    federation = FlowerFederation(
        lambda: grid,
        FedAvg(fraction_evaluate=0.0),
        model(),
        lambda _round, _model: MetricRecord({"accuracy": 0.5}),
        options=ServerOptions(fewest=CLIENTS, known_by="partition", folder=Path(home)),
    )
    session = Session(Fixed(n=CLIENTS), bid_price_first(reserve=1.5), federation)
    yield from (step for step in session.rounds(books) if isinstance(step, RoundRecord))


def main():
    quieten()
    ours, plain_ones = [], []
    with tempfile.TemporaryDirectory() as home, closing(Simulation(app, CLIENTS)) as simulation:
        grid = simulation.start()
        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
        rounds = bara_rounds(grid, home)
        next(rounds)  # round 0
        for number in range(1, ROUNDS + 1):
            begun = time.perf_counter()
            exchanges(grid, strategy, number)
            between = time.perf_counter()
            delivered = next(rounds).n
            plain_ones.append(between - begun)
            ours.append(time.perf_counter() - between)
            if delivered != CLIENTS:
                raise SystemExit(f"{delivered} clients delivered; required are all {CLIENTS}")
    flower, bara = (statistics.median(taken[WARM:]) for taken in (plain_ones, ours))
    print(
        f"two plain exchanges with {CLIENTS} nodes   {1e3 * flower:7.0f} ms (median of "
        f"{ROUNDS - WARM}, in turn)"
    )
    print(
        f"a bara round, bids and training     {1e3 * bara:7.0f} ms: {bara / flower:.2f} times (at "
        f"most {LIMIT})"
    )
    if bara > LIMIT * flower:
        raise SystemExit("a bara round on Flower takes too long")


if __name__ == "__main__":
    main()
