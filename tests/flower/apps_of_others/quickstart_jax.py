"""An app shaped like Flower's quickstart-jax: pure functions of a tree of parameters, no framework.

(Flower's own trains a tenth of its clients in a round; with `fraction-train` at 1 the models of a
plain and of a paid run can be compared.)
"""

import tomllib
from typing import NamedTuple

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

CONFIG = """
num-server-rounds = 3
fraction-train = 1.0
fraction-evaluate = 0.5
learning-rate = 0.3
"""

client = ClientApp()
server = ServerApp()


class TrainState(NamedTuple):
    params: dict
    learning_rate: float


def create_train_state(learning_rate):
    draw = np.random.default_rng(0)
    params = {"dense": {"bias": np.zeros(3, np.float32)}}
    params["dense"]["kernel"] = draw.normal(size=(4, 3)).astype(np.float32)
    return TrainState(params, learning_rate)


def get_params(params):
    return [params["dense"][name] for name in sorted(params["dense"])]


def set_params(state, arrays):
    names = sorted(state.params["dense"])
    return state._replace(params={"dense": dict(zip(names, arrays, strict=True))})


def load_data(part):
    draw = np.random.default_rng(part)
    x, y = draw.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    x[np.arange(60), y] += 2
    return x, y


def apply_model(state, x, y):
    """Return the gradients, the loss and the accuracy."""
    dense = state.params["dense"]
    scores = x @ dense["kernel"] + dense["bias"]
    odds = np.exp(scores - scores.max(1, keepdims=True))
    chances = odds / odds.sum(1, keepdims=True)
    error = (chances - np.eye(3, dtype=np.float32)[y]) / len(y)
    gradients = {"bias": error.sum(0), "kernel": x.T @ error}
    loss = -np.log(chances[np.arange(len(y)), y]).mean()
    return gradients, float(loss), float((scores.argmax(1) == y).mean())


def update(state, gradients):
    dense = state.params["dense"]
    moved = {name: dense[name] - state.learning_rate * one for name, one in gradients.items()}
    return state._replace(params={"dense": moved})


@client.train()
def train(msg: Message, context: Context):
    state = create_train_state(msg.content["config"]["lr"])
    state = set_params(state, msg.content["arrays"].to_numpy_ndarrays())
    x, y = load_data(context.node_config["partition-id"])
    for batch in np.arange(60).reshape(4, 15):
        gradients, loss, accuracy = apply_model(state, x[batch], y[batch])
        state = update(state, gradients)
    metrics = MetricRecord({"train_loss": loss, "train_acc": accuracy, "num-examples": len(y)})
    arrays = ArrayRecord(get_params(state.params))
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=msg)


@client.evaluate()
def evaluate(msg: Message, context: Context):
    state = set_params(create_train_state(0.0), msg.content["arrays"].to_numpy_ndarrays())
    x, y = load_data(50 + context.node_config["partition-id"])
    _, loss, accuracy = apply_model(state, x, y)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(y)})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    strategy = FedAvg(
        fraction_train=config["fraction-train"], fraction_evaluate=config["fraction-evaluate"]
    )
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(get_params(create_train_state(0.0).params)),
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
    )
    np.savez("final_model.npz", *result.arrays.to_numpy_ndarrays())


run_config = flatten_dict(tomllib.loads(CONFIG))
