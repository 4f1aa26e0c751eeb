"""Rounds as MLflow's metrics: `bara run --log mlflow:PLACE`, a server's address, `sqlite:///FILE` or a folder."""

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
"""The experiment that all runs are filed under."""

TAG = "bara.run"
"""Holds a run's name, by which a resumed run finds itself again."""


@final
class MlflowLogger:
    """Writes a run's parameters and metrics; a resumed run goes on in the same MLflow run.

    Args:
        place: The tracking URI, or a folder in which `mlflow.db` is made.
        run: The run's name.
        config: Its configuration, which becomes its parameters.
    """

    def __init__(self, place: str, run: str, config: Mapping[str, Any]) -> None:
        os.environ.setdefault(
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2"
        )  # a run does not wait minutes for a log
        self._client = MlflowClient(tracking_uri=_uri(place))
        self._run = self._find(run) or self._make(run, config)

    def log(self, record: RoundRecord) -> None:
        """Every number of the round, in one request."""
        now = int(time.time() * 1000)
        values = [Metric(name, value, now, record.round) for name, value in metrics(record).items()]
        self._client.log_batch(self._run, metrics=values)

    def close(self, *, finished: bool) -> None:
        """Say whether the run has ended; one that was stopped may go on."""
        self._client.set_terminated(self._run, "FINISHED" if finished else "KILLED")

    def _find(self, run: str) -> str | None:
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            return None
        same = f"tags.`{TAG}` = '{_tag(run)}'"
        found = self._client.search_runs([experiment.experiment_id], same, max_results=1)
        if not found:
            return None
        self._client.update_run(found[0].info.run_id, "RUNNING")
        return str(found[0].info.run_id)

    def _make(self, run: str, config: Mapping[str, Any]) -> str:
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        number = (
            experiment.experiment_id if experiment else self._client.create_experiment(EXPERIMENT)
        )
        made = self._client.create_run(number, run_name=run, tags={TAG: _tag(run)})
        params = [
            Param(key, str(value)[:500]) for key, value in flat(config).items() if value is not None
        ]
        self._client.log_batch(made.info.run_id, params=params)
        return str(made.info.run_id)


def _tag(run: str) -> str:
    """A name that can be searched for: MLflow's filters know no escape for a quote."""
    return run.replace("'", "")


def _uri(place: str) -> str:
    """A folder as the URI of the database in it, which MLflow prefers to plain files."""
    if "://" in place:
        return place
    Path(place).mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{Path(place).resolve() / 'mlflow.db'}"
