"""An app shaped like Flower's xgboost-comprehensive: bagging or a cycle, evaluated by the server,
which says nothing of
the empty model."""

import tomllib

import numpy as np
import xgboost as xgb
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedXgbBagging, FedXgbCyclic

CONFIG = """
num-server-rounds = 3
train-method = "bagging"
local-epochs = 1
params.objective = "binary:logistic"
params.eta = 0.3
params.base-score = 0.5
params.max-depth = 3
params.eval-metric = "auc"
params.nthread = 1
"""

client = ClientApp()
server = ServerApp()


def load_data(part):
    draw = np.random.default_rng(part)
    x = draw.normal(size=(80, 4))
    return xgb.DMatrix(x, label=(x[:, 0] * x[:, 1] > 0).astype(int), nthread=1)


def params_of(context):
    found = {
        key.removeprefix("params."): one
        for key, one in context.run_config.items()
        if key.startswith("params.")
    }
    return {key.replace("-", "_"): value for key, value in found.items()}


def load_model(params, array_record):
    booster = xgb.Booster(params=params)
    booster.load_model(bytearray(array_record["0"].numpy().tobytes()))
    return booster


@client.train()
def train(msg: Message, context: Context):
    params, data = params_of(context), load_data(context.node_config["partition-id"])
    epochs = context.run_config["local-epochs"]
    if msg.content["config"]["server-round"] == 1:
        booster = xgb.train(params, data, num_boost_round=epochs)
    else:
        booster = load_model(params, msg.content["arrays"])
        for _ in range(epochs):
            booster.update(data, booster.num_boosted_rounds())
        if context.run_config["train-method"] == "bagging":
            count = booster.num_boosted_rounds()
            booster = booster[count - epochs : count]
    model = ArrayRecord([np.frombuffer(booster.save_raw("json"), dtype=np.uint8)])
    metrics = MetricRecord({"num-examples": data.num_row()})
    return Message(RecordDict({"arrays": model, "metrics": metrics}), reply_to=msg)


def get_evaluate_fn(context):
    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        if server_round == 0:
            return MetricRecord()
        booster, data = load_model(params_of(context), arrays), load_data(99)
        return MetricRecord(
            {"auc": float(booster.eval_set([(data, "valid")]).split("\t")[1].split(":")[1])}
        )

    return evaluate


@server.main()
def main(grid: Grid, context: Context) -> None:
    kinds = {"bagging": FedXgbBagging, "cyclic": FedXgbCyclic}
    strategy = kinds[context.run_config["train-method"]](fraction_train=1.0, fraction_evaluate=0.0)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord([np.frombuffer(b"", dtype=np.uint8)]),
        train_config=ConfigRecord(),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=get_evaluate_fn(context),
    )
    with open("final_model.json", "wb") as file:
        file.write(result.arrays["0"].numpy().tobytes())


run_config = flatten_dict(tomllib.loads(CONFIG))
