"""An app shaped like Flower's fl-tabular: rows of a table, a small classifier, FedAvg as it is."""

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
"""

client = ClientApp()
server = ServerApp()


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(6, 8)
        self.out = torch.nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(torch.relu(self.hidden(x))))


def load_data(part):
    draw = np.random.default_rng(part)
    rows = np.column_stack([draw.normal(size=(70, 4)), draw.integers(0, 2, (70, 2))])
    rich = rows[:, 0] + rows[:, 4] > 0.5
    x, y = torch.from_numpy(rows.astype(np.float32)), torch.from_numpy(rich.astype(np.float32))
    return (x[:50], y[:50]), (x[50:], y[50:])


@client.train()
def train(msg: Message, context: Context):
    net = Classifier()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    (x, y), _ = load_data(context.node_config["partition-id"])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for batch in torch.arange(len(y)).split(10):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy(net(x[batch])[:, 0], y[batch]).backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": len(y)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=msg
    )


@client.evaluate()
def evaluate(msg: Message, context: Context):
    net = Classifier()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    _, (x, y) = load_data(context.node_config["partition-id"])
    with torch.no_grad():
        found = net(x)[:, 0]
    loss = torch.nn.functional.binary_cross_entropy(found, y).item()
    accuracy = ((found > 0.5) == (y > 0.5)).float().mean().item()
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(y)})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg()
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Classifier().state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
