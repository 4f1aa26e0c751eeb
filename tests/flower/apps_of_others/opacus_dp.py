"""An app shaped like Flower's opacus: clients clip every sample's gradient and add noise.

The strategy is FedAvg with its own functions to aggregate metrics, one of them of epsilons.
"""

import tomllib

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

CONFIG = """
num-server-rounds = 3
max-grad-norm = 1.0
"""

client = ClientApp()
server = ServerApp()


def make_net():
    return torch.nn.Linear(5, 2)


def load_data(part):
    draw = np.random.default_rng(part)
    x = draw.normal(size=(40 + part, 5)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x[:, 0] > 0).astype(np.int64))


@client.train()
def train(msg: Message, context: Context):
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    part = context.node_config["partition-id"]
    x, y = load_data(part)
    noise_multiplier = 1.0 if part % 2 == 0 else 1.5
    most = context.run_config["max-grad-norm"]
    dice = torch.Generator().manual_seed(100 * part + msg.content["config"]["server-round"])
    summed = [torch.zeros_like(one) for one in net.parameters()]
    for one, label in zip(x, y, strict=True):
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(one), label).backward()
        norm = torch.cat([each.grad.flatten() for each in net.parameters()]).norm()
        for total, each in zip(summed, net.parameters(), strict=True):
            total.add_(each.grad * min(1.0, most / norm.item()))
    with torch.no_grad():
        for total, each in zip(summed, net.parameters(), strict=True):
            noise = torch.randn(each.shape, generator=dice) * noise_multiplier * most
            each.sub_(0.5 * (total + noise) / len(y))
    metrics = {"epsilon": 8.0 / noise_multiplier, "noise_multiplier": noise_multiplier}
    metrics = MetricRecord({"num-examples": len(y), **metrics})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=msg
    )


@client.evaluate()
def evaluate(msg: Message, context: Context):
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    x, y = load_data(50 + context.node_config["partition-id"])
    with torch.no_grad():
        scores = net(x)
    accuracy = (scores.argmax(1) == y).float().mean().item()
    loss = torch.nn.functional.cross_entropy(scores, y).item()
    metrics = MetricRecord({"loss": loss, "accuracy": accuracy, "num-examples": len(y)})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


def mean_of(replies, key, weight_key):
    weights = [reply["metrics"][weight_key] for reply in replies]
    return float(np.average([reply["metrics"][key] for reply in replies], weights=weights))


def aggregate_train(replies, weight_key):
    epsilons = [reply["metrics"]["epsilon"] for reply in replies]
    noise = mean_of(replies, "noise_multiplier", weight_key)
    return MetricRecord({"max_epsilon": max(epsilons), "mean_noise_multiplier": noise})


def aggregate_evaluate(replies, weight_key):
    return MetricRecord({key: mean_of(replies, key, weight_key) for key in ("accuracy", "loss")})


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg(
        train_metrics_aggr_fn=aggregate_train, evaluate_metrics_aggr_fn=aggregate_evaluate
    )
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(make_net().state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
    assert len(result.train_metrics_clientapp) == context.run_config["num-server-rounds"]
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
