"""A report goes where the user says, never through a link, and says what the books say."""

import json
import sqlite3
from contextlib import closing

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError
from bara.files import make_own_folder, replacing
from bara.ledger.locks import only_process

pytestmark = pytest.mark.path  # drawing takes its time

SMALL = {"federation": "synthetic", "allocator": "even", "budget": {"total": 20, "max_rounds": 4}}


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A stranger's run, beside a folder of ours; the working directory is above both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "accuracy-over-rounds.png").write_text("ours")
    bara.run(out="stranger", **SMALL)
    return tmp_path / "stranger"


def everything(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def report(*words, code=0):
    done = CliRunner().invoke(app, ["report", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def test_a_report_writes_nothing_into_the_folder_that_it_reads(stranger, tmp_path):
    before = everything(stranger)
    assert "open stranger-report/report.html" in report("stranger")
    assert everything(stranger) == before
    assert (tmp_path / "stranger-report" / "figures" / "rounds.parquet").stat().st_size
    report("stranger", "--out", "elsewhere")
    assert (tmp_path / "elsewhere" / "report.html").stat().st_size


def test_the_report_of_a_comparison_goes_beside_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bara.compare(
        out="kept",
        allocators=["even"],
        seeds=1,
        progress=False,
        jobs=1,
        **{key: value for key, value in SMALL.items() if key != "allocator"},
    )
    before = everything(tmp_path / "kept")
    report("kept")
    assert everything(tmp_path / "kept") == before
    assert (tmp_path / "kept-report" / "table.tex").stat().st_size


@pytest.mark.parametrize("given", [[], ["--out", "out"], ["--out", "stranger"]])
@pytest.mark.usefixtures("stranger")
def test_no_report_is_written_through_a_strangers_link(tmp_path, given):
    for folder in ("stranger", "stranger-report", "out"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "figures").symlink_to(tmp_path / "ours")
    before = everything(tmp_path / "ours")
    assert "figures' is a link" in report("stranger", *given, code=2)
    assert everything(tmp_path / "ours") == before


@pytest.mark.parametrize("name", ["accuracy-over-rounds.png", "rounds.parquet", "rounds.csv"])
@pytest.mark.usefixtures("stranger")
def test_a_link_in_the_place_of_a_figure_is_replaced_not_followed(tmp_path, name):
    ours = tmp_path / "ours" / "accuracy-over-rounds.png"
    (tmp_path / "stranger-report" / "figures").mkdir(parents=True)
    (tmp_path / "stranger-report" / "figures" / name).symlink_to(ours)
    report("stranger")
    assert ours.read_text() == "ours"
    assert not (tmp_path / "stranger-report" / "figures" / name).is_symlink()


def test_by_default_no_report_goes_into_a_link_or_the_folder_that_one_is_in(
    stranger, tmp_path, monkeypatch
):
    (tmp_path / "stranger-report").symlink_to(tmp_path / "ours")
    assert "--out" in report("stranger", code=2)
    before = everything(stranger)
    monkeypatch.chdir(stranger)
    assert "--out" in report(".", code=2)
    assert everything(stranger) == before


def test_a_link_where_a_folder_or_a_temporary_file_is_made_is_not_followed(tmp_path, monkeypatch):
    ours = tmp_path / "ours"
    ours.write_text("ours")
    (tmp_path / "link").symlink_to(tmp_path)
    with refused(ConfigError, tmp_path / "link"):
        make_own_folder(tmp_path / "link")
    monkeypatch.setattr("bara.files.os.getpid", lambda: 7)
    (tmp_path / ".new.7.tmp").symlink_to(ours)
    with replacing(tmp_path / "new") as file:
        file.write(b"new")
    assert (ours.read_text(), (tmp_path / "new").read_text()) == ("ours", "new")


def test_no_lock_is_taken_through_a_link(tmp_path):
    ours = tmp_path / "ours"
    ours.write_text("ours")
    (tmp_path / ".lock").symlink_to(ours)
    with refused(bara.BaraError, tmp_path), only_process(tmp_path):
        pass
    assert ours.read_text() == "ours"


def test_the_books_are_believed_and_not_the_file_of_the_result(stranger):
    result = bara.open(stranger)
    file = stranger / "result.json"
    tree = json.loads(file.read_text())
    invented = {"spent": 1.0, "payments": {"mallory": 1.0}, "ended": "it was", "rounds": 99}
    file.write_text(json.dumps(tree | invented | {"kept": "best", "accuracy_kept": 0.5}))
    opened = bara.open(stranger)
    assert opened.payments == result.payments
    assert (opened.spent, opened.ended, opened.rounds) == (result.spent, result.ended, 4)
    assert (opened.kept, opened.accuracy_kept) == ("best", 0.5)  # books do not hold it
    report("stranger")
    assert "mallory" not in (stranger.parent / "stranger-report" / "report.html").read_text()


def test_no_report_is_made_of_a_record_that_is_not_whole(stranger):

    with closing(sqlite3.connect(stranger / "ledger.db")) as connection:
        connection.execute("DROP TRIGGER settlements_no_update")
        connection.execute("UPDATE settlements SET paid = paid + 1")
        connection.commit()
    assert "not whole" in report("stranger", code=1)
