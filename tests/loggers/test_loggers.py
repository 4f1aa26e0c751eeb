import sys

import pytest
from mlflow import MlflowClient
from refusals import refused
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bara import RoundRecord
from bara.errors import ConfigError, RunStoppedError
from bara.loggers import Loggers, metrics
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

SMALL = [
    "budget.total=40",
    "budget.max_rounds=12",
    "clients.count=6",
    "federation.engine=synthetic",
]
CONFIG = Config.load(None, [*SMALL, "allocator.name=planner"])


@pytest.fixture
def play(tmp_path):
    """Plays a run with loggers, up to a round where it is stopped; returns its settled rounds."""

    def play(*specs, stop=None, resume=False):
        seen = []

        def watch(step):
            if isinstance(step, RoundRecord):
                seen.append(step)
                if step.round == stop:
                    raise RunStoppedError("enough")

        path = tmp_path / "one"
        found = RunFolder.find(path) if resume else RunFolder.new(path, CONFIG)
        with found as folder, Loggers(specs, path, CONFIG.model_dump(mode="json")) as loggers:
            play_run(CONFIG, loggers.observe, watch, folder=folder)
        return seen

    return play


def scalars(folder, tag):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors(tag)]


def test_tensorboard_reads_every_round_back(play, tmp_path):
    records = play(f"tensorboard:{tmp_path / 'board'}")
    for tag in ("accuracy", "money/spent", "clients/delivered", "forecast/accuracy"):
        expected = [
            (record.round, metrics(record)[tag]) for record in records if tag in metrics(record)
        ]
        assert scalars(tmp_path / "board" / "one", tag) == [
            (step, pytest.approx(value)) for step, value in expected
        ]
        assert len(expected) > 3


def test_mlflow_reads_every_round_back_with_the_configuration_also_of_a_run_that_was_resumed(
    play, tmp_path
):
    specs = [f"mlflow:{tmp_path / 'flow'}", f"tensorboard:{tmp_path / 'board'}"]
    with pytest.raises(RunStoppedError):
        play(*specs, stop=5)
    rest = play(*specs, resume=True)
    client = MlflowClient(f"sqlite:///{tmp_path / 'flow' / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("bara").experiment_id])
    assert (found.info.status, found.info.run_name) == ("FINISHED", "one")
    assert found.data.params["budget.max_rounds"] == "12"
    history = [
        (one.step, one.value) for one in client.get_metric_history(found.info.run_id, "money/left")
    ]
    assert [step for step, _ in history] == list(range(13))
    assert history[6:] == [(record.round, metrics(record)["money/left"]) for record in rest]
    assert [step for step, _ in scalars(tmp_path / "board" / "one", "accuracy")] == list(range(13))


def test_without_a_place_it_is_in_the_runs_own_folder(play, tmp_path):
    play("tensorboard")
    assert list((tmp_path / "one" / "tensorboard" / "one").glob("events*"))


MINE = """
class Mine:
    def __init__(self, place):
        self.file = open(place, "w")
    def log(self, record):
        self.file.write(f"{record.round}\\n")
        if record.round == 3:
            raise OSError("the disk is full")
    def close(self, *, finished):
        self.file.close()
"""


def test_ones_own_logger_may_fail_and_the_run_goes_on(play, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    records = play(f"mine:Mine:{tmp_path / 'log'}")
    sys.modules.pop("mine")
    assert len(records) == 13
    assert (
        capsys.readouterr().err.count(
            "logs nothing more: OSError: the disk is full (in the plug-in mine:Mine, "
        )
        == 1
    )


def test_a_logger_that_cannot_be_opened_stops_the_run_before_it_begins(play, tmp_path):
    logger = f"mlflow:{tmp_path / 'file'}"
    (tmp_path / "file").write_text("")
    with refused(ConfigError, "logger", f"'{logger}'"):
        play(logger)
    with refused(ConfigError, "'tensorbord'", "'tensorboard'"):
        play("tensorbord")
    assert not (tmp_path / "one" / "ledger.db").exists()
