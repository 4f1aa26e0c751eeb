"""The configurations of the paper's Tables 1 and 2."""

from pathlib import Path

import pytest

from bara.experiments import Config
from bara.experiments.comparison import cells

PRESETS = sorted((Path(__file__).parents[2] / "presets").glob("*.toml"))


def test_there_is_one_for_each_table_and_dataset():
    datasets = ("cifar10", "cifar100", "fashion-mnist", "mnist")
    assert [path.stem for path in PRESETS] == [f"table{table}-{name}" for table in (1, 2) for name in datasets]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_the_papers_federation(path):
    config = Config.load(path)
    assert (config.budget.total, config.budget.max_rounds, config.clients.count) == (1500, 200, 20)
    assert config.data.name == path.stem.split("-", 1)[1]
    assert config.mechanism.name == {"table1": "fair", "table2": "fl-market"}[path.stem.split("-")[0]]
    assert len(cells(config, ["even", "bara"], seeds=3)) == 6
