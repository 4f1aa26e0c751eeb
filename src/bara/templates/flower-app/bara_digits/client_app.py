"""A silo, which bids what taking part costs it and trains when it has won."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from bara.flower import answer_bids, per_sample
from bara_digits import task

app = ClientApp()


def samples(context: Context) -> int:
    """Return the number of samples that this silo holds."""
    _, y = my_data(context)
    return len(y)


def my_data(context: Context):
    """Return the silo's samples: from its file `data-path`, else its share of the example's data.

    The silo's node configuration, which stays on its machine, says which.
    """
    silo = context.node_config
    if "data-path" in silo:
        return task.in_file(str(silo["data-path"]))
    return task.share_of(int(silo["partition-id"]), int(silo["num-partitions"]))


def price(round_number: int, context: Context):
    """Bid a price per sample: the one in the silo's node configuration, else the app's."""
    each = context.node_config.get("price-per-sample", context.run_config["price-per-sample"])
    bidder = per_sample(float(each), samples)
    return bidder(round_number, context)


answer_bids(app, price)


@app.train()
def train(message: Message, context: Context) -> Message:
    model = task.make_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = my_data(context)
    config = context.run_config
    loss = task.train(model, x, y, float(config["learning-rate"]), int(config["local-epochs"]))
    metrics = MetricRecord({"num-examples": len(y), "train-loss": loss})
    reply = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(reply, reply_to=message)
