"""The server: FedAvg under a budget."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from bara.flower import start
from bara_baseline.dataset import server_data
from bara_baseline.model import load_model, make_model, score

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    seed = int(context.run_config["bara.seed"])
    data = server_data(seed)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model, told = load_model(arrays), {}
        for name, (x, y) in data.items():
            told[f"{name}accuracy"], told[f"{name}loss"] = score(model, x, y)
        return MetricRecord(told)

    start(
        FedAvg(fraction_evaluate=0.0),
        context,
        grid=grid,
        initial_arrays=ArrayRecord(make_model(seed).state_dict()),
        evaluate_fn=evaluate,
    )
