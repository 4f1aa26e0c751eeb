"""An app shaped like Flower's quickstart-numpy: arrays that are no model, any metric."""

import tomllib

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

CONFIG = """
num-server-rounds = 3
"""

client = ClientApp()
server = ServerApp()


def get_dummy_model():
    return np.ones((3, 2)), np.zeros(2, np.float32)


@client.train()
def train(msg: Message, context: Context):
    part = context.node_config["partition-id"]
    arrays = [
        one + np.random.default_rng(part).random(one.shape)
        for one in msg.content["arrays"].to_numpy_ndarrays()
    ]
    metrics = MetricRecord({"random_metric": 0.1 * part, "num-examples": 1 + part})
    return Message(RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=msg)


@client.evaluate()
def evaluate(msg: Message, context: Context):
    metrics = MetricRecord(
        {"random_metric": 0.1 * context.node_config["partition-id"], "num-examples": 1}
    )
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    strategy = FedAvg()
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(list(get_dummy_model())),
        num_rounds=context.run_config["num-server-rounds"],
    )
    np.savez("final_model.npz", *result.arrays.to_numpy_ndarrays())


run_config = flatten_dict(tomllib.loads(CONFIG))
