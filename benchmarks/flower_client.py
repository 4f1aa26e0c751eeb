"""The client of `play_flower`.

A module of its own, so that ray's actors import it once instead of unpickling it.
"""

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch.nn.functional import cross_entropy
from workload import BATCH, RATE, Workload, network

LOAD = Workload.here()
HELD = {}


def held():
    """Data and model, made once in each actor."""
    if not HELD:
        torch.set_num_threads(1)
        HELD.update(data=LOAD.tensors(), model=network(LOAD.model))
    return HELD["data"], HELD["model"]


client = ClientApp()


@client.train()
def train(message, context):
    (x, y), model = held()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    order = torch.randperm(LOAD.samples) + int(context.node_config["partition-id"]) * LOAD.samples
    for batch in order.split(BATCH):
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": LOAD.samples})
    reply = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=reply, reply_to=message)
