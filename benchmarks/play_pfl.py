"""Contestant: pfl 0.6 with two processes of one thread.

It has its own SGD bridge, algorithm and simulated backend. Tensors are prepared once and sliced
(pfl does not shuffle), evaluation is off, all clients are in every cohort.
"""

import os
import socket

import torch
from gate import Gate, rank
from torch.nn.functional import cross_entropy
from workload import BATCH, RATE, Workload, network


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


torch.set_num_threads(1)
LOAD = Workload.here()
if rank() == 0:
    os.environ["PFL_WORKER_ADDRESSES"] = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
os.environ["PFL_WORKER_RANK"] = str(rank())
GATE = Gate(partner=True)  # before pfl is imported: importing it waits for the other process

from pfl.aggregate.simulate import SimulatedBackend  # noqa: E402
from pfl.algorithm.base import NNAlgorithmParams  # noqa: E402
from pfl.algorithm.federated_averaging import FederatedAveraging  # noqa: E402
from pfl.callback.base import TrainingProcessCallback  # noqa: E402
from pfl.data.dataset import Dataset  # noqa: E402
from pfl.data.federated_dataset import FederatedDataset  # noqa: E402
from pfl.data.sampling import get_user_sampler  # noqa: E402
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams  # noqa: E402
from pfl.metrics import Metrics, Weighted  # noqa: E402
from pfl.model.pytorch import PyTorchModel  # noqa: E402


class Model(torch.nn.Module):
    """What pfl asks of a module: a loss and metrics."""

    def __init__(self):
        super().__init__()
        self.layers = network(LOAD.model)

    def forward(self, x):
        """The scores."""
        return self.layers(x)

    def loss(self, x, y):
        """What local SGD minimises."""
        self.train()
        return cross_entropy(self(x), y)

    def metrics(self, x, y):
        """For the evaluation of the unmeasured first round."""
        return {"loss": Weighted(cross_entropy(self(x), y).item() * len(y), len(y))}


class Turns(TrainingProcessCallback):
    """Takes turns with the driver between rounds."""

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):  # noqa: ARG002
        """The first round is not measured."""
        if central_iteration == 0:
            GATE.ready()
        else:
            GATE.done()
        GATE.wait()
        return False, Metrics()


def main():
    x, y = LOAD.tensors()

    def of(client):
        own = slice(client * LOAD.samples, (client + 1) * LOAD.samples)
        return Dataset(raw_data=[x[own], y[own]], user_id=client)

    users = list(range(LOAD.clients))
    data = FederatedDataset(
        of, get_user_sampler("minimize_reuse", users), dict.fromkeys(users, LOAD.samples)
    )
    module = Model()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(10**6, 10**6, LOAD.clients, None),
        SimulatedBackend(data, data),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH),
        NNEvalHyperParams(local_batch_size=1000),
        [Turns()],
        send_metrics_to_platform=False,
    )


main()
