"""A run folder from the first schema still opens, verifies and goes on."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from refusals import refused

from bara.errors import LedgerError
from bara.ledger import Store, verify
from bara.ledger.store import HEAD
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

OLD = Path(__file__).parent / "first_schema"


@pytest.fixture
def old_folder(tmp_path):
    shutil.copy(OLD / "config.toml", tmp_path)
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.executescript((OLD / "ledger.sql").read_text())
    connection.close()
    return tmp_path


def version(folder):
    connection = sqlite3.connect(folder / "ledger.db")
    (found,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    return found


def test_a_folder_of_the_first_schema_opens_and_goes_on_to_its_end(old_folder):
    assert version(old_folder) == "0001"
    with RunFolder.find(old_folder) as folder:
        books = folder.open_books()
        before = [record.payments for record in books.history()]
        promised = books.awarded().award
        result = play_run(folder.config, folder=folder)
        after = list(books.history())
        assert verify(books).ok
    assert version(old_folder) == HEAD
    assert result.rounds == 6
    assert [record.payments for record in after][: len(before)] == before
    assert after[len(before)].awarded.award == promised


@pytest.mark.parametrize("junk", ["9999", "0000", "", b"\xff", 7, "\x1b"])
def test_a_ledger_from_the_future_or_of_junk_is_left_alone(old_folder, junk):
    connection = sqlite3.connect(old_folder / "ledger.db")
    connection.execute("UPDATE alembic_version SET version_num = ?", (junk,))
    connection.commit()
    connection.close()
    path = old_folder / "ledger.db"
    with refused(LedgerError, path, "schema", HEAD, "update bara"):
        Store.in_file(path)
