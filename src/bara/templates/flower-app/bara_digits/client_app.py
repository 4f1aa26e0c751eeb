"""A silo: it says what taking part costs it, and trains when it has won."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from bara.flower import answer_bids, per_sample
from bara_digits import task

app = ClientApp()


def samples(context: Context) -> int:
    """How much data this silo holds."""
    return len(my_part(context)[1])


def my_part(context: Context):
    """The silo's own file, if its node configuration names one as `data-path`; else its part of the example's data."""
    mine = context.node_config
    if "data-path" in mine:
        return task.in_file(str(mine["data-path"]))
    return task.part_of(int(mine["partition-id"]), int(mine["num-partitions"]))


def price(round_number: int, context: Context):
    """So much per sample: what the silo's own node configuration says, else the app's."""
    each = context.node_config.get("price-per-sample", context.run_config["price-per-sample"])
    return per_sample(float(each), samples)(round_number, context)


answer_bids(app, price)


@app.train()
def train(message: Message, context: Context) -> Message:
    model = task.make_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = my_part(context)
    config = context.run_config
    loss = task.train(model, x, y, float(config["learning-rate"]), int(config["local-epochs"]))
    metrics = MetricRecord({"num-examples": len(y), "train-loss": loss})
    reply = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(reply, reply_to=message)
