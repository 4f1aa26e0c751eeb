"""Silos as clients, merged ones, and a partition of a user's own."""

import numpy as np
import pytest
from refusals import refused

from bara.datasets import Dataset, divide
from bara.errors import DatasetError, UnfitDatasetError

OWN = """
import numpy as np
def halves(dataset, clients, seed):
    rows = np.arange(len(dataset.y_train))
    return {"left": rows[: len(rows) // 2], "right": rows[len(rows) // 2 :]}
def numbered(dataset, clients, seed):
    return np.array_split(np.arange(len(dataset.y_train)), clients)
def twice(dataset, clients, seed):
    return [[0, 1], [1, 2]]
def beyond(dataset, clients, seed):
    return {"far": [10**6]}
def empty(dataset, clients, seed):
    return {"nobody": []}
def broken(dataset, clients, seed):
    raise ValueError("no such thing")
"""


@pytest.fixture
def data():
    owners = np.repeat([0, 1, 2, 3], [50, 30, 15, 5])
    x, y = np.zeros((100, 2)), np.arange(100) % 2
    return Dataset(
        "silos", x, y, x, y, 2, silos=("a", "b", "c", "d"), owners=owners, test_owners=owners
    )


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_partition.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def test_every_silo_is_a_client_by_its_name(data):
    made = divide(data, "natural", 20)
    assert made.names == ("a", "b", "c", "d")
    assert [len(part) for part in made.parts] == [50, 30, 15, 5]


def test_the_smallest_silos_are_merged_until_few_enough_are_left(data):
    made = divide(data, "natural(2)", 20)
    assert made.names == ("a", "b+c+d")
    assert sorted(np.concatenate(made.parts)) == list(range(100))
    assert divide(data, "natural(9)", 20).names == ("a", "b", "c", "d")
    assert [len(part) for part in divide(data, "natural(3)", 20).parts] == [50, 30, 20]


def test_other_schemes_still_deal_out_what_silos_own(data):
    assert divide(data, "iid", 5).names == ()
    assert len(divide(data, "iid", 5).parts) == 5


def test_a_dataset_without_silos_has_no_natural_partition():
    x, y = np.zeros((4, 2)), np.arange(4) % 2
    data = Dataset("plain", x, y, x, y, 2)
    with refused(UnfitDatasetError, "'natural'", "plain", "data.client"):
        divide(data, "natural", 2)


@pytest.mark.usefixtures("own")
def test_a_function_of_ones_own_divides_and_may_name_its_clients(data):
    assert divide(data, "own_partition:halves", 20).names == ("left", "right")
    assert [len(part) for part in divide(data, "own_partition:numbered", 4).parts] == [25] * 4


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("twice", ("once",)),
        ("beyond", ("'far'", "99")),
        ("empty", ("'nobody'",)),
        ("broken", ("ValueError", "no such thing")),
    ],
)
def test_a_function_that_returns_no_partition_is_refused(data, name, facts):
    with refused(DatasetError, f"'own_partition:{name}'", *facts):
        divide(data, f"own_partition:{name}", 2)
