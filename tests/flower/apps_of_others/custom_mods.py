"""An app shaped like Flower's custom-mods: a mod around the client reads model and metrics."""

import tomllib

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

CONFIG = """
num-server-rounds = 3
fraction-evaluate = 0.5
lr = 0.2
"""


def diary_mod(msg, context, call_next):
    """Write what each message did into the node's state, which needs a model in each of them."""
    number = msg.content["config"]["server-round"]
    size = msg.content["arrays"].count_bytes()
    reply = call_next(msg, context)
    [metrics] = reply.content.metric_records.values()
    entry = {"bytes": size, "loss": next(value for key, value in metrics.items() if "loss" in key)}
    context.state[f"{msg.metadata.message_type}-{number}"] = MetricRecord(entry)
    return reply


client = ClientApp(mods=[diary_mod])
server = ServerApp()


def make_net():
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))


def load_data(part):
    draw = np.random.default_rng(part)
    x = draw.normal(size=(48, 4)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x[:, 0] > x[:, 1]).astype(np.int64))


def score(arrays, part):
    net = make_net()
    net.load_state_dict(arrays.to_torch_state_dict())
    x, y = load_data(part)
    with torch.no_grad():
        scores = net(x)
    accuracy = (scores.argmax(1) == y).float().mean().item()
    return torch.nn.functional.cross_entropy(scores, y).item(), accuracy


@client.train()
def train(msg: Message, context: Context):
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    x, y = load_data(context.node_config["partition-id"])
    optimizer = torch.optim.SGD(net.parameters(), lr=msg.content["config"]["lr"])
    for batch in torch.arange(len(y)).split(16):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(y)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=msg
    )


@client.evaluate()
def evaluate(msg: Message, context: Context):
    loss, accuracy = score(msg.content["arrays"], context.node_config["partition-id"])
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": 48})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


def global_evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    loss, accuracy = score(arrays, 99)
    return MetricRecord({"accuracy": accuracy, "loss": loss})


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg(fraction_evaluate=context.run_config["fraction-evaluate"])
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(make_net().state_dict()),
        train_config=ConfigRecord({"lr": context.run_config["lr"]}),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
