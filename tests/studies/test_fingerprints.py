"""A stored result never stands for other code: not in a comparison, in the paper or in a run."""

import enum
import functools
import importlib
import os
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from joblib.externals.loky import get_reusable_executor
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError
from bara.runs.config import Config
from bara.runs.fingerprints import made_by

SMALL = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 4}, "clients": 6}

LAB = """
import bara
from . import how_many

class Recruit:
    def ask(self, purse):
        return bara.Offer.recruit(how_many.N)
    def tell(self, record):
        pass

class Falling(Recruit):
    def ask(self, purse):
        return bara.Offer.recruit(max(how_many.N - purse.round, 1))
"""


LAZY = """
from importlib import import_module
how_many = import_module(".how_many", __package__)
"""


class Lab:
    """A package of one's own: an allocator, and a module that it imports from the same package."""

    def __init__(self, folder):
        self.folder = folder / "lab"
        self.folder.mkdir()
        self.write("__init__.py", "")
        self.write("parts.py", LAB)
        self.edit(3)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def edit(self, number):
        self.write("how_many.py", f"N = {number}  # {'.' * number}\n")

    def start_again(self):
        for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
            del sys.modules[name]
        importlib.invalidate_caches()


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Lab(tmp_path)
    made.start_again()
    yield made
    made.start_again()


def compared(out, *allocators, **options):
    return bara.compare(SMALL, allocators=allocators, seeds=2, jobs=1, out=out, **options)


def test_results_of_a_plug_in_that_was_edited_are_played_again_and_this_is_said(
    lab, tmp_path, capsys
):
    first = compared(tmp_path / "out", "even", "lab.parts:Recruit")
    lab.edit(5)
    lab.start_again()
    second = compared(tmp_path / "out", "even", "lab.parts:Recruit")
    assert [run.history[1]["n"] for run in first.results[2:]] == [3, 3]
    assert [run.history[1]["n"] for run in second.results[2:]] == [5, 5]
    assert [run.reused for run in second.results] == [True, True, False, False]
    assert "4 runs, 2 of them reused" in repr(second)
    said = capsys.readouterr().err
    assert "2 results" in said
    assert "code of lab.parts:Recruit" in said
    lab.edit(3)
    lab.start_again()
    assert all(
        run.reused for run in compared(tmp_path / "out", "even", "lab.parts:Recruit").results
    )


def test_the_command_line_counts_what_it_reuses_and_plays_the_rest_again(lab, tmp_path):
    words = ["compare", "--allocators", "even,lab.parts:Recruit", "--seeds", "1", "--jobs", "1"]
    words += ["--set", "federation.engine=synthetic", "--set", "budget.max_rounds=4"]
    words += ["--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, words).exit_code == 0
    lab.edit(5)
    lab.start_again()
    again = CliRunner().invoke(app, words)
    assert "code of lab.parts:Recruit" in again.stderr
    assert "1 of 2 runs reused" in again.stderr


def test_results_of_other_code_do_not_share_a_table_with_new_ones(lab, tmp_path):
    compared(tmp_path / "out", "even", "lab.parts:Recruit")
    lab.edit(5)
    lab.start_again()
    with refused(ConfigError, "out", "2 results", "code of lab.parts:Recruit", "seed 1"):
        compared(tmp_path / "out", "random")


def test_a_comparison_that_is_opened_says_which_of_its_results_other_code_made(
    lab, tmp_path, capsys
):
    compared(tmp_path / "out", "even", "lab.parts:Recruit")
    bara.open(tmp_path / "out")
    assert capsys.readouterr().err == ""
    lab.edit(5)
    lab.start_again()
    assert len(bara.open(tmp_path / "out").results) == 4
    said = capsys.readouterr().err
    assert "code of lab.parts:Recruit" in said
    assert "even" not in said


def test_the_same_class_with_another_value_is_played_again(tmp_path, capsys):
    class Fixed:
        def __init__(self, n):
            self.n = n

        def ask(self, _purse):
            return bara.Offer.recruit(self.n)

        def tell(self, record):
            pass

    compared(tmp_path, Fixed(2), "even")
    second = compared(tmp_path, Fixed(3), "even")
    assert [run.history[1]["n"] for run in second.results[:2]] == [3, 3]
    assert [run.reused for run in second.results] == [False, False, True, True]
    assert "object allocator" in capsys.readouterr().err


def test_one_name_for_two_configurations_is_refused(tmp_path):
    bara.compare(SMALL, allocators={"mine": "even"}, seeds=1, jobs=1, out=tmp_path)
    with refused(ConfigError, "mine", "seed 0", "another name"):
        bara.compare(SMALL, allocators={"mine": "random"}, seeds=1, jobs=1, out=tmp_path)


def test_a_new_version_of_bara_plays_again_what_an_old_one_made(tmp_path, monkeypatch, capsys):
    compared(tmp_path, "even")
    monkeypatch.setattr("bara.runs.fingerprints.__version__", "9.9")
    assert not any(run.reused for run in compared(tmp_path, "even").results)
    assert "now 9.9" in capsys.readouterr().err


def test_code_that_was_edited_under_a_running_program_is_refused_until_it_is_reloaded(
    lab, tmp_path
):
    compared(tmp_path / "out", "lab.parts:Recruit")
    lab.edit(5)
    with refused(ConfigError, "lab.how_many", "importlib.reload"):
        compared(tmp_path / "out", "lab.parts:Recruit")
    importlib.reload(sys.modules["lab.how_many"])
    assert compared(tmp_path / "out", "lab.parts:Recruit").results[0].history[1]["n"] == 5


@pytest.mark.parametrize(
    ("before", "after", "bytecode"),
    [
        ("N = 4", "N = 5", False),
        ("def n():\n    return 4\nN = n()", "def n():\n    return 5\nN = n()", False),
        ("N = 2 + 2", "N = 2 + 3  # by bytecode", True),
    ],
    ids=["constant", "function", "bytecode"],
)
def test_code_that_was_edited_between_import_and_the_first_comparison_is_refused(
    lab, tmp_path, monkeypatch, before, after, bytecode
):
    monkeypatch.setattr(sys, "dont_write_bytecode", not bytecode)
    lab.write("how_many.py", before)
    importlib.import_module("lab.parts")
    lab.write("how_many.py", after)
    with refused(ConfigError, "lab.how_many", "importlib.reload"):
        compared(tmp_path / "out", "lab.parts:Recruit")
    importlib.reload(sys.modules["lab.how_many"])
    assert compared(tmp_path / "out", "lab.parts:Recruit").results[0].history[1]["n"] == 5


@pytest.mark.usefixtures("lab")
def test_a_constant_that_a_notebook_sets_in_a_module_does_not_stand_for_its_file(tmp_path):
    compared(tmp_path / "out", "lab.parts:Recruit")
    sys.modules["lab.how_many"].N = 7
    with refused(ConfigError, "lab.how_many", "N is 7 in the program, 3 in the file"):
        compared(tmp_path / "out", "lab.parts:Recruit")


def test_processes_that_know_old_code_of_an_objects_module_are_not_used_again(lab):
    get_reusable_executor().shutdown()  # whose processes do not know where lab is

    def n_of_first_round():
        parts = importlib.import_module("lab.parts")
        found = bara.compare(SMALL, allocators=["even", parts.Recruit()], seeds=1, jobs=2)
        return found.results[1].history[1]["n"]

    assert n_of_first_round() == 3
    lab.edit(5)
    importlib.reload(sys.modules["lab.how_many"])
    assert n_of_first_round() == 5


def test_what_python_warns_of_in_a_source_changes_nothing(lab):
    lab.write("parts.py", LAB + '\nPATTERN = "\\d"  # an escape that is none\n')
    with warnings.catch_warnings(action="ignore"):
        importlib.import_module("lab.parts")
    before = key_of("lab.parts:Recruit")
    lab.edit(5)
    importlib.reload(sys.modules["lab.how_many"])
    assert key_of("lab.parts:Recruit") != before


def test_a_module_that_is_imported_by_a_name_in_a_call_belongs_to_the_code(lab):
    lab.write("parts.py", LAB.replace("from . import how_many", LAZY))
    lab.start_again()
    before = key_of("lab.parts:Recruit")
    lab.edit(5)
    lab.start_again()
    assert key_of("lab.parts:Recruit") != before


def test_what_an_object_inherits_from_a_module_of_ones_own_belongs_to_it(lab):
    def fingerprinted():
        from lab.parts import Recruit  # noqa: PLC0415 - of a fixture

        class Mine(Recruit):
            pass

        cell = bara.studies.grid.Cell(Config.load(SMALL, allocator=Mine()))
        return cell.key

    before = fingerprinted()
    lab.start_again()
    assert fingerprinted() == before
    lab.edit(5)
    lab.start_again()
    assert fingerprinted() != before


LIMIT = 2


def key_of(part):
    """What the stored result of a run with an allocator of a notebook's is called."""
    return bara.studies.grid.Cell(Config.load(SMALL, allocator=part)).key


def with_number(number):
    """Allocators as notebooks define them, each with a number in another place."""

    @dataclass
    class Data:
        n: int

    @dataclass(frozen=True, slots=True)
    class Slots:
        n: int = number

    class Names(enum.Enum):
        N = number

    class Property:
        name = Names

        @functools.cached_property
        def n(self):
            return number

    @functools.lru_cache
    def remembered():
        return number

    class Meta(type):
        n = number

    return {
        "dataclass": Data(number),
        "slots": Slots(),
        "class": Data,
        "default": Slots,
        "cached property": Property(),
        "enum": Names.N,
        "enum's class": Property,
        "cached function": remembered,
        "metaclass": Meta("Mine", (), {}),
        "partial": functools.partial(Data, number),
    }


def as_allocator(inner):
    class Mine:
        def __init__(self):
            self.inner = inner

        def ask(self, _purse):
            return bara.Offer.recruit(2)

        def tell(self, record):
            pass

    return Mine()


@pytest.mark.parametrize("name", [name for name in with_number(2) if name != "class"])
def test_what_a_notebook_defines_is_told_apart_by_its_value_and_known_again(name):
    two, again, three = (key_of(as_allocator(with_number(n)[name])) for n in (2, 2, 3))
    assert two == again
    assert two != three


def test_a_global_that_only_a_comprehension_or_an_inner_function_uses_belongs_to_the_code(
    monkeypatch,
):
    class Mine:
        def ask(self, _purse):
            return bara.Offer.recruit(max(LIMIT for _ in range(2)))

        def tell(self, record):
            pass

    before = key_of(Mine())
    monkeypatch.setitem(globals(), "LIMIT", 3)
    assert key_of(Mine()) != before


def test_a_module_that_a_notebooks_method_imports_when_it_is_called_belongs_to_it(lab):
    class Mine:
        def ask(self, _purse):
            from lab import how_many  # noqa: PLC0415 - of a fixture

            return bara.Offer.recruit(how_many.N)

        def tell(self, record):
            pass

    before = key_of(Mine())
    lab.edit(5)
    lab.start_again()
    assert key_of(Mine()) != before


def test_the_order_of_a_set_which_differs_between_processes_says_nothing():
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)
    assert key_of(as_allocator(one)) == key_of(as_allocator(other))
    assert key_of(as_allocator(one)) != key_of(as_allocator({0, 9}))


def test_a_models_weights_are_told_apart_by_their_values():
    def made(seed):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

    models = [made(1), made(1), made(2)]
    keys = []
    for model in models:
        config = Config.load(data="digits", clients=4, training={"model": model})
        keys.append(bara.studies.grid.Cell(config).key)
    assert keys[0] == keys[1]
    assert keys[1] != keys[2]


def test_a_file_that_a_plug_in_is_given_belongs_to_what_made_a_result(tmp_path):
    table = tmp_path / "table.npz"

    def written(value):
        np.savez(table, prices=np.full(3, value))
        return made_by(Config.load(SMALL, mechanism={"name": "dm-regretnet", "path": str(table)}))

    before = written(1)
    assert f"file {table}" in before
    assert written(1) == before
    assert written(2) != before


def test_data_of_ones_own_belong_to_what_made_a_result(tmp_path):
    def written(value):
        x = np.full((8, 2, 2), value, np.uint8)
        y = np.arange(8) % 2
        np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        config = Config.load(data={"name": "mine", "path": str(tmp_path)}, clients={"count": 2})
        return made_by(config)

    before = written(1)
    assert set(before) == {"bara", f"file {tmp_path / 'mine.npz'}"}
    assert written(1) == before
    assert written(2) != before


def test_a_file_of_the_same_size_and_time_is_another_if_it_holds_something_else(tmp_path):
    table = tmp_path / "table.npz"
    config = {"name": "dm-regretnet", "path": str(table)}
    found = []
    for content in (b"one", b"two"):
        table.write_bytes(content)
        os.utime(table, ns=(10**18, 10**18))
        found.append(made_by(Config.load(SMALL, mechanism=config)))
    assert found[0] != found[1]


def test_the_paper_says_what_it_plays_again(lab, tmp_path, capsys):
    grid = bara.studies.grid.cells(Config.load(SMALL), ["even", "lab.parts:Recruit"], 1)
    bara.studies.grid.run_grid(grid, tmp_path / "runs", jobs=1)
    lab.edit(5)
    lab.start_again()
    grid = bara.studies.grid.cells(Config.load(SMALL), ["even", "lab.parts:Recruit"], 1)
    bara.studies.grid.tell_replaced(grid, tmp_path / "runs")
    (line,) = capsys.readouterr().err.splitlines()
    assert "1 result " in line
    assert "code of lab.parts:Recruit" in line


def test_a_run_does_not_go_on_with_other_code_unless_that_is_handed_over(lab, tmp_path, capsys):
    def stop(step):
        if isinstance(step, bara.RoundRecord) and step.round == 2:
            raise bara.errors.RunStoppedError("stopped here")

    with pytest.raises(bara.errors.RunStoppedError):
        bara.run(SMALL, allocator="lab.parts:Recruit", out=tmp_path / "run", observe=stop)
    lab.edit(5)
    lab.start_again()
    bara.open(tmp_path / "run")
    assert "code of lab.parts:Recruit" in capsys.readouterr().err
    with refused(ConfigError, "code of lab.parts:Recruit", str(tmp_path / "run"), "bara.resume"):
        bara.resume(tmp_path / "run")
    result = bara.resume(tmp_path / "run", allocator="lab.parts:Recruit")
    assert [entry["n"] for entry in result.history[1:]] == [3, 3, 5, 5]
    capsys.readouterr()
    bara.open(tmp_path / "run")
    assert "code of lab.parts:Recruit" in capsys.readouterr().err
