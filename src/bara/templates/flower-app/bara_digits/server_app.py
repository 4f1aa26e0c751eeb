"""The server: Flower's FedAvg under a budget."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from bara.flower import start
from bara_digits import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    held_out = task.held_out()

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model = task.make_model()
        model.load_state_dict(arrays.to_torch_state_dict())
        accuracy, loss = task.test(model, *held_out)
        return MetricRecord({"accuracy": accuracy, "loss": loss})

    start(
        FedAvg(fraction_evaluate=0.0),
        context,
        grid=grid,
        initial_arrays=ArrayRecord(task.make_model().state_dict()),
        num_rounds=int(context.run_config["num-server-rounds"]),
        evaluate_fn=evaluate,
    )
