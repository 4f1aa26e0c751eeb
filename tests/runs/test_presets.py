"""The paper's experiments as presets."""

from pathlib import Path

import pytest
from refusals import refused

from bara.errors import ConfigError
from bara.paper.exhibits import BORDER, DATASETS
from bara.runs.config import Config, shipped
from bara.studies.grid import cells


def test_there_is_one_for_each_family_and_dataset():
    papers = {f"{family}-{name}" for family in ("figures", "table1", "table2") for name in DATASETS}
    assert list(shipped("presets")) == sorted(papers | {f"border-{name}" for name in BORDER})


@pytest.mark.parametrize(
    "name", [name for name in shipped("presets") if not name.startswith("border")]
)
def test_a_preset_is_the_papers_federation(name):
    config = Config.load(Path(name))
    family, _, dataset = name.partition("-")
    assert (config.budget.total, config.budget.max_rounds, config.clients.count) == (1500, 200, 20)
    assert (config.clients.partition, config.clients.bids) == ("shards(2)", "uniform(0.5, 1.5)")
    assert config.data.name == dataset
    assert config.data.held_out == "same"
    mini_batches = family != "table2" and dataset.startswith("cifar")
    assert config.training.algorithm == ("fedavg" if mini_batches else "fedsgd")
    assert config.allocator.name == "bara"
    assert (
        config.mechanism.name
        == {"figures": "bid-price-first", "table1": "fair", "table2": "fl-market"}[family]
    )
    assert len(cells(config, ["even", "bara"], seeds=3)) == 6


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("figures-mnist").write_text("seed = 7")
    assert Config.load(Path("figures-mnist")).seed == 7
    with refused(ConfigError, "configuration", "'figures-nothing'"):
        Config.load(Path("figures-nothing"))
