"""Contestant: Flower 1.41 simulated on ray, one CPU a client (two actors here).

FedAvg, Message API, evaluation off.
"""

import os

os.environ.update(
    FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1", RAY_USAGE_STATS_ENABLED="0"
)

from flower_client import client
from flwr.app import ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from gate import Gate
from workload import Workload, network

LOAD = Workload.here()

server = ServerApp()


@server.main()
def main(grid, context):  # noqa: ARG001
    gate = Gate()

    def turn(number, arrays):  # noqa: ARG001
        if number == 1:  # the first round starts the actors
            gate.ready()
        elif number > 1:
            gate.done()
        if number:
            gate.wait()

    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=LOAD.clients)
    start = ArrayRecord(network(LOAD.model).state_dict())
    strategy.start(grid, start, num_rounds=10**6, evaluate_fn=turn)


if __name__ == "__main__":
    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0}}
    run_simulation(server, client, num_supernodes=LOAD.clients, backend_config=resources)
