"""Tables of one's own: numbers, names, missing values, silos.

And one clear line for what does not fit.
"""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from bara.datasets import Columns, Dataset, load
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError

PATIENTS = Columns("sick", "hospital")


def patients(rows=200, seed=0):
    """A table of the shape people have: who, numbers with gaps, names, what to learn."""
    rng = np.random.default_rng(seed)
    age, stage = rng.normal(60, 12, rows), rng.integers(0, 3, rows)
    return pd.DataFrame(
        {
            "hospital": rng.choice(["north", "south", "east"], rows, p=[0.6, 0.3, 0.1]),
            "age": np.where(rng.random(rows) < 0.1, np.nan, age),
            "smoker": rng.choice(["yes", "no"], rows),
            "stage": stage,
            "cost": np.round(1000 + 30 * age + rng.normal(0, 100, rows), 2),
            "sick": np.where(age + 8 * stage + rng.normal(0, 8, rows) > 66, "yes", "no"),
        }
    )


@pytest.fixture
def table(tmp_path):
    def write(frame, name="patients.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def test_a_csv_a_parquet_file_and_a_frame_are_the_same_dataset(tmp_path, table):
    frame = patients()
    frame.to_parquet(tmp_path / "patients.parquet")
    (tmp_path / "patients.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    frame.to_csv(tmp_path / "patients.tsv", sep="\t", index=False)
    first = load(str(table(frame)), columns=PATIENTS)
    others = [
        load(name, tmp_path, columns=PATIENTS)
        for name in ("patients.parquet", "patients.csv.gz", "patients.tsv")
    ]
    for other in (*others, Dataset.from_frame(frame, target="sick", client="hospital")):
        assert np.array_equal(first.x_train, other.x_train)
        assert np.array_equal(first.y_test, other.y_test)
        assert (other.silos, other.task, other.classes) == (("east", "north", "south"), "binary", 2)


def test_rows_are_held_out_in_every_silo_and_label_in_its_share():
    data = Dataset.from_frame(patients(400), target="sick", client="hospital")
    assert len(data.y_test) == 100
    for silo in range(3):
        mine = data.owners == silo
        held = data.test_owners == silo
        for label in (0, 1):
            whole = (data.y_train[mine] == label).sum() + (data.y_test[held] == label).sum()
            assert abs((data.y_test[held] == label).sum() - whole / 4) <= 1


def test_what_is_learned_of_the_columns_is_learned_from_training_rows_alone():
    frame = patients(300)
    data = Dataset.from_frame(frame, target="sick", client="hospital")
    numbers = data.x_train[:, :4]  # age, stage, cost, and whether the age is missing
    assert np.allclose(numbers.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(numbers.std(axis=0), 1, atol=1e-4)
    assert not np.allclose(data.x_test[:, :4].mean(axis=0), 0, atol=1e-3)
    names = data.x_train[:, 4:]
    assert names.shape[1] == 2  # smoker: yes, no
    assert set(np.unique(names)) == {0.0, 1.0}


def test_the_target_tells_the_task():
    frame = patients()
    assert Dataset.from_frame(frame, target="sick").task == "binary"
    assert (
        Dataset.from_frame(frame, target="stage").task,
        Dataset.from_frame(frame, target="stage").classes,
    ) == (
        "classes",
        3,
    )
    number = Dataset.from_frame(frame, target="cost")
    assert (number.task, number.classes, number.outputs) == ("regression", 0, 1)
    assert number.y_train.mean() == pytest.approx(0, abs=1e-9)
    question = Dataset.from_frame(frame, target="stage > 0")
    assert (question.task, question.y_train.mean()) == (
        "binary",
        pytest.approx((frame.stage > 0).mean(), abs=0.02),
    )
    assert Dataset.from_frame(frame, target="stage", task="regression").task == "regression"


def test_features_can_be_chosen_and_numbers_be_names():
    frame = patients()
    assert Dataset.from_frame(frame, target="sick", features=["age", "stage"]).shape == (3,)
    assert Dataset.from_frame(
        frame, target="sick", features=["stage"], categorical=["stage"]
    ).shape == (3,)


def test_a_name_that_no_training_row_has_and_a_column_of_nothing_are_no_trouble():
    frame = patients()
    frame["empty"] = None
    frame["rare"] = ["only one"] + ["other"] * (len(frame) - 1)
    assert np.isfinite(Dataset.from_frame(frame, target="sick").x_test).all()


def edited(column, row, value):
    frame = patients(40).astype(object)
    frame.loc[row, column] = value
    return frame


BAD = {
    "unknown target": (
        patients(40),
        Columns("ill", "hospital"),
        ("'ill'", "data.target", "hospital", "smoker"),
    ),
    "unknown client": (
        patients(40),
        Columns("sick", "clinic"),
        ("'clinic'", "data.client"),
    ),
    "unknown feature": (
        patients(40),
        Columns("sick", features=("height",)),
        ("'height'", "data.features"),
    ),
    "no target": (patients(40), Columns(), ("data.target", "hospital", "smoker")),
    "target missing": (edited("sick", 6, None), PATIENTS, ("row 7", "'sick'", "data.target")),
    "client missing": (
        edited("hospital", 3, None),
        PATIENTS,
        ("row 4", "'hospital'", "data.client"),
    ),
    "text among numbers": (
        edited("age", 11, "old"),
        PATIENTS,
        ("row 12", "'age'", "'old'", "data.categorical"),
    ),
    "infinite": (edited("cost", 2, "inf"), PATIENTS, ("row 3", "'cost'", "infinity")),
    "one label": (
        patients(40).assign(sick="no"),
        PATIENTS,
        ("'sick'", "data.target", "every row"),
    ),
    "no rows": (patients(40)[:0], PATIENTS, ("no rows",)),
    "names of rows": (
        patients(1200).assign(id=[f"p{k}" for k in range(1200)]),
        PATIENTS,
        ("'id'", "1,200", "data.features"),
    ),
    "target among features": (
        patients(40),
        Columns("sick", features=("age", "sick")),
        ("data.features", "'sick'"),
    ),
    "regression on text": (
        patients(40),
        Columns("sick", task="regression"),
        ("'sick'", "data.target", "text", "regression"),
    ),
    "three for two": (
        patients(40),
        Columns("stage", task="binary"),
        ("'stage'", "data.target", "3", "binary"),
    ),
    "dates": (
        patients(40).assign(seen=pd.date_range("2020-01-01", periods=40).astype(str)),
        PATIENTS,
        ("'seen'", "date32[day]", "data.features"),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_gets_one_line_that_names_column_and_row(case, table):
    frame, columns, facts = BAD[case]
    with refused(DatasetError, "patients.csv", *facts) as caught:
        load(str(table(frame)), columns=columns)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", ("empty",)),
        ("a,b,a\n1,2,3\n", ("two columns", "'a'")),
        ("a,b\n1,2\n3\n4,5\n", ("line 3", "1 field", "2")),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, facts):
    (tmp_path / "mine.csv").write_text(text)
    with refused(DatasetError, "mine.csv", *facts):
        load("mine.csv", tmp_path, columns=Columns("b"))


def test_one_label_in_a_silo_is_allowed_and_a_client_without_training_rows_is_not():
    frame = patients()
    frame.loc[frame.hospital == "east", "sick"] = "yes"
    assert len(Dataset.from_frame(frame, target="sick", client="hospital").silos) == 3
    frame.loc[0, "hospital"] = "lone"
    assert "lone" in Dataset.from_frame(frame, target="sick", client="hospital").silos
    with refused(UnfitDatasetError, "'lone'", "data.test_share"):
        Dataset.from_frame(frame, target="sick", client="hospital", test_share=0.8)
    x, y = np.zeros((2, 1)), np.array([0, 1])
    with refused(DatasetError, "own", "'b'", "training"):
        Dataset("own", x, y, x, y, 2, silos=("a", "b"), owners=np.zeros(2), test_owners=np.ones(2))


def test_columns_of_a_dataset_that_is_no_table_are_refused():
    with refused(UnfitDatasetError, "'digits'", "data.client", "table"):
        load("digits", columns=Columns("y"))


def test_without_arrow_the_message_names_the_extra(monkeypatch, table):
    path = table(patients(40))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(MissingExtraError, "pyarrow", "bara-fl[tables]"):
        load(str(path), columns=PATIENTS)


def test_a_table_with_nothing_in_any_column_to_learn_from_is_refused():
    table = {"a": [None] * 20, "b": [float("nan")] * 20, "ill": [0, 1] * 10}
    with refused(UnfitDatasetError, "'a'", "'b'", "data.features"):
        Dataset.from_frame(pd.DataFrame(table), target="ill")
