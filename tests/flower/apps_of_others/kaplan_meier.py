"""An app shaped like Flower's federated-kaplan-meier-fitter: a server loop without a strategy.

Clients answer a query with times and events; the server fits one survival curve to all of them.
"""

import json

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

client = ClientApp()
server = ServerApp()


@client.query()
def query(msg: Message, context: Context):
    draw = np.random.default_rng(context.node_config["partition-id"])
    times, events = draw.exponential(10.0, 40), draw.random(40) < 0.7
    arrays = ArrayRecord({"T": Array(times), "E": Array(events.astype(np.int64))})
    metrics = MetricRecord({"num-examples": len(times)})
    return Message(RecordDict({"survival-data": arrays, "metrics": metrics}), reply_to=msg)


def question():
    return RecordDict()


def analyse(replies):
    """Fit the survival curve to everybody's data."""
    found = [reply.content["survival-data"] for reply in replies]
    times = np.concatenate([one["T"].numpy() for one in found])
    events = np.concatenate([one["E"].numpy() for one in found])
    order = np.argsort(times)
    at_risk = np.arange(len(times), 0, -1)
    curve = np.cumprod(1 - events[order] / at_risk)
    with open("result.json", "w") as file:
        json.dump({"times": times[order].tolist(), "survival": curve.tolist()}, file)


@server.main()
def main(grid: Grid, context: Context) -> None:
    messages = [Message(question(), node, "query") for node in grid.get_node_ids()]
    replies = grid.send_and_receive(messages)
    analyse([reply for reply in replies if not reply.has_error()])
