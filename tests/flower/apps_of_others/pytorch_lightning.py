"""An app shaped like Flower's quickstart-pytorch-lightning: a trainer has the loop and the metrics.

(Flower's own trains half of its clients in a round; with `fraction-train` at 1 the models of a
plain and of a paid run can be compared.)
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
fraction-train = 1.0
max-epochs = 2
"""

client = ClientApp()
server = ServerApp()


class LitAutoEncoder(torch.nn.Module):
    """A module that says what a step is, and leaves the loop to its trainer."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(8, 3)
        self.decoder = torch.nn.Linear(3, 8)

    def step(self, x):
        return torch.nn.functional.mse_loss(self.decoder(torch.relu(self.encoder(x))), x)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Trainer:
    """The loop, which keeps the metrics to itself until it is asked."""

    def __init__(self, max_epochs=1):
        self.max_epochs = max_epochs
        self.callback_metrics = {}

    def fit(self, module, batches):
        optimizer = module.configure_optimizers()
        for _ in range(self.max_epochs):
            for batch in batches:
                optimizer.zero_grad()
                loss = module.step(batch)
                loss.backward()
                optimizer.step()
        self.callback_metrics["train_loss"] = loss.detach()

    def test(self, module, batches):
        with torch.no_grad():
            losses = [module.step(batch).item() for batch in batches]
        return [{"test_loss": float(np.mean(losses))}]


def load_data(part):
    draw = np.random.default_rng(part)
    x = draw.normal(size=(48, 3)) @ np.random.default_rng(0).normal(size=(3, 8))
    return torch.from_numpy(x.astype(np.float32)).split(16)


@client.train()
def train(msg: Message, context: Context):
    module = LitAutoEncoder()
    module.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    trainer = Trainer(max_epochs=context.run_config["max-epochs"])
    trainer.fit(module, load_data(context.node_config["partition-id"]))
    loss = float(trainer.callback_metrics["train_loss"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": 48})
    arrays = ArrayRecord(module.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=msg)


@client.evaluate()
def evaluate(msg: Message, context: Context):
    module = LitAutoEncoder()
    module.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    [found] = Trainer().test(module, load_data(30 + context.node_config["partition-id"]))
    metrics = MetricRecord({"test_loss": found["test_loss"], "num-examples": 48})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg(fraction_train=context.run_config["fraction-train"], fraction_evaluate=0.5)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(LitAutoEncoder().state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
