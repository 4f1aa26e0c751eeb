"""A client of an ordinary Flower app."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import task

app = ClientApp()


@app.train()
def train(message: Message, context: Context):
    """Train on this client's part."""
    w = message.content["arrays"].to_numpy_ndarrays()[0]
    w = task.train(w, context.node_config["partition-id"], message.content["config"]["lr"])
    records = {"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": 200})}
    return Message(content=RecordDict(records), reply_to=message)
