"""An app shaped like Flower's quickstart-pytorch: a torch model, FedAvg, central and federated
evaluation.
"""

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
local-epochs = 1
lr = 0.1
"""

client = ClientApp()
server = ServerApp()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3)
        self.norm = torch.nn.BatchNorm2d(3)
        self.head = torch.nn.Linear(3 * 4 * 4, 3)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).flatten(1))


def load_data(part):
    draw = np.random.default_rng(part)
    x, y = draw.normal(size=(48, 1, 6, 6)).astype(np.float32), draw.integers(0, 3, 48)
    x[:, 0, 0, 0] += 2 * y
    return torch.from_numpy(x), torch.from_numpy(y)


def test_fn(net, data):
    x, y = data
    net.eval()
    with torch.no_grad():
        scores = net(x)
    return torch.nn.functional.cross_entropy(scores, y).item(), (
        scores.argmax(1) == y
    ).float().mean().item()


@client.train()
def train(msg: Message, context: Context):
    net = Net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    x, y = load_data(context.node_config["partition-id"])
    optimizer = torch.optim.SGD(net.parameters(), lr=msg.content["config"]["lr"], momentum=0.9)
    net.train()
    for _ in range(context.run_config["local-epochs"]):
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
    net = Net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    loss, accuracy = test_fn(net, load_data(context.node_config["partition-id"]))
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": 48})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


def global_evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    net = Net()
    net.load_state_dict(arrays.to_torch_state_dict())
    loss, accuracy = test_fn(net, load_data(99))
    return MetricRecord({"accuracy": accuracy, "loss": loss})


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg(fraction_evaluate=context.run_config["fraction-evaluate"])
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Net().state_dict()),
        train_config=ConfigRecord({"lr": context.run_config["lr"]}),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
