"""An app shaped like Flower's federated-vae: nothing but a loss says how good the model is."""

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
local-epochs = 2
"""

client = ClientApp()
server = ServerApp()


class Autoencoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(16, 4)
        self.decoder = torch.nn.Linear(2, 16)

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean + noise * torch.exp(log_variance / 2)), mean, log_variance


def load_data(part):
    draw = np.random.default_rng(part)
    hidden, mixing = draw.normal(size=(40, 2)), np.random.default_rng(0).normal(size=(2, 16))
    return torch.from_numpy((hidden @ mixing).astype(np.float32))


def loss_of(net, x, seed):
    noise = torch.randn(len(x), 2, generator=torch.Generator().manual_seed(seed))
    again, mean, log_variance = net(x, noise)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
    return torch.nn.functional.mse_loss(again, x) + 0.05 * divergence


@client.train()
def train(msg: Message, context: Context):
    net = Autoencoder()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    x = load_data(context.node_config["partition-id"])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(context.run_config["local-epochs"]):
        optimizer.zero_grad()
        loss_of(net, x, epoch).backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": len(x)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=msg
    )


@client.evaluate()
def evaluate(msg: Message, context: Context):
    net = Autoencoder()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    x = load_data(20 + context.node_config["partition-id"])
    with torch.no_grad():
        loss = loss_of(net, x, 7).item()
    metrics = MetricRecord({"eval_loss": loss, "num-examples": len(x)})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    strategy = FedAvg()
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Autoencoder().state_dict()),
        num_rounds=context.run_config["num-server-rounds"],
    )
    torch.save(result.arrays.to_torch_state_dict(), "final_model.pt")


run_config = flatten_dict(tomllib.loads(CONFIG))
