"""The MLflow logger: `bara run --log mlflow:PLACE`.

The place is a server's address, `sqlite:///FILE` or a folder.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from bara.loggers import metrics
from bara.records import RoundRecord
from bara.text import flat

EXPERIMENT = "bara"
"""The MLflow experiment to which all runs belong."""

TAG = "bara.run"
"""The tag that holds a run's name, by which a resumed run finds its MLflow run."""


@final
class MlflowLogger:
    """A logger to MLflow; a resumed run goes on in the same MLflow run.

    Args:
        place: The tracking URI, or a folder for a database `mlflow.db`.
        run: The run's name.
        config: The run's configuration, which becomes the parameters of the MLflow run.
    """

    def __init__(self, place: str, run: str, config: Mapping[str, Any]) -> None:
        # By default a run would wait minutes for a server that does not answer.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self._client = MlflowClient(tracking_uri=_uri(place))
        self._run = self._find(run) or self._make(run, config)

    def log(self, record: RoundRecord) -> None:
        """Log all numbers of a round in one request."""
        now = int(time.time() * 1000)
        values = [Metric(name, value, now, record.round) for name, value in metrics(record).items()]
        self._client.log_batch(self._run, metrics=values)

    def close(self, *, finished: bool) -> None:
        """Mark the MLflow run as finished, or as killed if it was stopped and may be resumed."""
        self._client.set_terminated(self._run, "FINISHED" if finished else "KILLED")

    def _find(self, run: str) -> str | None:
        """Reopen the MLflow run of an earlier session and return its id; None if there is none."""
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            return None
        same_name = f"tags.`{TAG}` = '{_tag(run)}'"
        found = self._client.search_runs([experiment.experiment_id], same_name, max_results=1)
        if not found:
            return None
        self._client.update_run(found[0].info.run_id, "RUNNING")
        return str(found[0].info.run_id)

    def _make(self, run: str, config: Mapping[str, Any]) -> str:
        """Create an MLflow run with the configuration as its parameters; return its id."""
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment:
            experiment_id = experiment.experiment_id
        else:
            experiment_id = self._client.create_experiment(EXPERIMENT)
        made = self._client.create_run(experiment_id, run_name=run, tags={TAG: _tag(run)})
        params = []
        for key, value in flat(config).items():
            if value is not None:
                params.append(Param(key, str(value)[:500]))
        self._client.log_batch(made.info.run_id, params=params)
        return str(made.info.run_id)


def _tag(run: str) -> str:
    """Return a run's name without quotes, which MLflow's search filters cannot escape."""
    return run.replace("'", "")


def _uri(place: str) -> str:
    """Return the tracking URI; for a folder, that of a database in it, which MLflow prefers."""
    if "://" in place:
        return place
    Path(place).mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{Path(place).resolve() / 'mlflow.db'}"
