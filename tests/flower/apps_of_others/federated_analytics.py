"""An app shaped like Flower's federated-analytics: the server asks for sums and counts of features.

Nothing is trained and there is no strategy.
"""

import json

import numpy as np
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

client = ClientApp()
server = ServerApp()

FEATURES = ["age", "visits"]


@client.query()
def query(msg: Message, context: Context):
    draw = np.random.default_rng(context.node_config["partition-id"])
    table = {"age": draw.normal(60, 10, 50), "visits": draw.poisson(3, 30)}
    metrics = {}
    for feature in msg.content["config"]["selected_features"]:
        metrics[f"{feature}_sum"] = float(table[feature].sum())
        metrics[f"{feature}_count"] = len(table[feature])
    return Message(RecordDict({"query_results": MetricRecord(metrics)}), reply_to=msg)


def question():
    return RecordDict({"config": ConfigRecord({"selected_features": FEATURES})})


def analyse(replies):
    """Compute the mean of each feature over everybody's data."""
    found = [reply.content["query_results"] for reply in replies]
    means = {}
    for feature in FEATURES:
        total = sum(one[f"{feature}_sum"] for one in found)
        means[feature] = total / sum(one[f"{feature}_count"] for one in found)
    with open("result.json", "w") as file:
        json.dump(means, file)


@server.main()
def main(grid: Grid, context: Context) -> None:
    messages = [Message(question(), node, "query") for node in grid.get_node_ids()]
    replies = grid.send_and_receive(messages)
    analyse([reply for reply in replies if not reply.has_error()])
