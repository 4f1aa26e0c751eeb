"""A client: what taking part costs it is drawn anew each round; it trains when it has won."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from bara.flower import answer_bids, drawn
from bara_baseline.dataset import client_data
from bara_baseline.model import load_model, step

app = ClientApp()
answer_bids(
    app, lambda number, context: drawn(context.run_config["costs"], _seed(context))(number, context)
)


@app.train()
def train(message: Message, context: Context) -> Message:
    model, node = load_model(message.content["arrays"]), context.node_config
    scheme = context.run_config["partition"]
    x, y = client_data(
        int(node["partition-id"]), int(node["num-partitions"]), scheme, _seed(context)
    )
    loss = step(model, x, y, float(context.run_config["learning-rate"]))
    metrics = MetricRecord({"num-examples": len(y), "train-loss": loss})
    return Message(
        RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}),
        reply_to=message,
    )


def _seed(context):
    return int(context.run_config["bara.seed"])
