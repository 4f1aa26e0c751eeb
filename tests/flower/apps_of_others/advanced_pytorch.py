"""An app shaped like Flower's advanced-pytorch: a strategy with a `configure_train` and a `start`
of its own, clients
that keep a layer to themselves in `context.state`."""

import tomllib

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdagrad

CONFIG = """
num-server-rounds = 4
fraction-evaluate = 0.5
lr = 0.2
"""

client = ClientApp()
server = ServerApp()


class CustomFedAdagrad(FedAdagrad):
    """Halves the learning rate every other round, and keeps the best model."""

    best = -1.0

    def configure_train(self, server_round, arrays, config, grid):
        if server_round % 2 == 0 and server_round > 0:
            config["lr"] = config["lr"] * 0.5
        return super().configure_train(server_round, arrays, config, grid)

    def start(self, grid, initial_arrays, num_rounds=3, timeout=3600, evaluate_fn=None, **options):
        def kept(server_round, arrays):
            metrics = evaluate_fn(server_round, arrays)
            if metrics["accuracy"] > self.best:
                self.best = metrics["accuracy"]
                torch.save(arrays.to_torch_state_dict(), "best_model.pt")
            return metrics

        return super().start(grid, initial_arrays, num_rounds, timeout, evaluate_fn=kept, **options)


def make_net():
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def load_data(part):
    draw = np.random.default_rng(part)
    x = draw.normal(size=(64, 5)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x.sum(1) > 0).astype(np.int64))


@client.train()
def train(msg: Message, context: Context):
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    if "head" in context.state.array_records:
        net[2].load_state_dict(context.state["head"].to_torch_state_dict())
    x, y = load_data(context.node_config["partition-id"])
    optimizer = torch.optim.SGD(net.parameters(), lr=msg.content["config"]["lr"])
    for batch in torch.arange(len(y)).split(16):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    context.state["head"] = ArrayRecord(net[2].state_dict())
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(y)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=msg
    )


@client.evaluate()
def evaluate(msg: Message, context: Context):
    loss, accuracy = score(msg.content["arrays"], context.node_config["partition-id"])
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": 64})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


def score(arrays, part):
    net = make_net()
    net.load_state_dict(arrays.to_torch_state_dict())
    x, y = load_data(part)
    with torch.no_grad():
        scores = net(x)
    return torch.nn.functional.cross_entropy(scores, y).item(), (
        scores.argmax(1) == y
    ).float().mean().item()


def global_evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    loss, accuracy = score(arrays, 99)
    return MetricRecord({"accuracy": accuracy, "loss": loss})


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = CustomFedAdagrad(fraction_evaluate=context.run_config["fraction-evaluate"], eta=0.05)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(make_net().state_dict()),
        train_config=ConfigRecord({"lr": context.run_config["lr"]}),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
