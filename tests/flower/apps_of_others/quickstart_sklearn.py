"""An app shaped like Flower's quickstart-sklearn: a list of arrays, and evaluation on clients
alone.
"""

import tomllib
import warnings

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

CONFIG = """
num-server-rounds = 3
local-epochs = 5
"""

client = ClientApp()
server = ServerApp()


def create_model(epochs):
    model = LogisticRegression(max_iter=epochs, warm_start=True)
    model.classes_ = np.arange(3)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.zeros(3)
    return model


def load_data(part):
    draw = np.random.default_rng(part)
    x, y = draw.normal(size=(60, 4)), np.arange(60) % 3
    x[np.arange(60), y] += 2.0
    return x, y


def set_params(model, arrays):
    model.coef_, model.intercept_ = arrays
    return model


@client.train()
def train(msg: Message, context: Context):
    model = create_model(context.run_config["local-epochs"])
    set_params(model, [one.copy() for one in msg.content["arrays"].to_numpy_ndarrays()])
    x, y = load_data(context.node_config["partition-id"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    loss = log_loss(y, model.predict_proba(x))
    metrics = MetricRecord({"num-examples": len(x), "train_logloss": loss})
    arrays = ArrayRecord([model.coef_, model.intercept_])
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=msg)


@client.evaluate()
def evaluate(msg: Message, context: Context):
    model = set_params(create_model(1), msg.content["arrays"].to_numpy_ndarrays())
    x, y = load_data(100 + context.node_config["partition-id"])
    found = {"test_logloss": log_loss(y, model.predict_proba(x)), "accuracy": model.score(x, y)}
    return Message(
        RecordDict({"metrics": MetricRecord({"num-examples": len(x), **found})}), reply_to=msg
    )


@server.main()
def main(grid: Grid, context: Context) -> None:
    model = create_model(1)
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=1.0)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord([model.coef_, model.intercept_]),
        num_rounds=context.run_config["num-server-rounds"],
    )
    np.savez("final_model.npz", *result.arrays.to_numpy_ndarrays())


run_config = flatten_dict(tomllib.loads(CONFIG))
