"""Clients whose remembered updates are let go: on an operator's word,
and by themselves after a long absence.
"""

import json
import shutil

import pytest
from refusals import refused

from bara.errors import LedgerError, RunStoppedError
from bara.ledger import operators, verify
from bara.records import RoundRecord
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

SMALL = [
    "federation.engine=simulator",
    "federation.workers=1",
    "data.train_samples=300",
    "allocator.name=even",
    "budget.total=16",
    "budget.max_rounds=8",
    "clients.count=6",
    "training.memory=extrapolated",
]


def sitting(path, *observers, changes=()):
    if not path.exists():
        with RunFolder.new(path, Config.load(None, [*SMALL, *changes])) as folder:
            return play_run(folder.config, *observers, folder=folder)
    with RunFolder.find(path) as folder:
        return play_run(folder.config, *observers, folder=folder)


def stop_after(number):
    def observe(step):
        if isinstance(step, RoundRecord) and step.round == number:
            raise RunStoppedError("that is enough")

    return observe


def stopped(path, number, **options):
    with pytest.raises(RunStoppedError):
        sitting(path, stop_after(number), **options)
    return path


def forget(path, client):
    with RunFolder.find(path) as folder:
        operators.forget(folder.hold_books(), client)


def history(path):
    with RunFolder.find(path) as folder:
        books = folder.read_books()
        return list(books.history()), verify(books)


def winner(path):
    """Somebody who was paid, and is not recruited in the next round."""
    past = history(path)[0]
    return max({client for record in past for client in record.payments})


def test_who_is_forgotten_counts_no_more_and_a_run_without_checkpoints_forgets_again(tmp_path):
    run_, plain = stopped(tmp_path / "run", 4), stopped(tmp_path / "plain", 4)
    forget(run_, winner(run_))
    told, other = sitting(run_), sitting(plain)
    assert told.history[:5] == other.history[:5]
    assert told.history[5:] != other.history[5:]
    after, found = history(run_)
    assert found.ok
    before = history(plain)[0]
    remembered = [
        sum(records[5].delivery.ages.values()) + records[5].n for records in (after, before)
    ]
    assert remembered[0] < remembered[1]
    shutil.rmtree(
        run_ / "checkpoints"
    )  # each round is trained again, and must come to what the ledger has
    assert sitting(run_).to_json() == told.to_json()


def test_what_cannot_be_forgotten_is_said_so_and_nothing_is_written(tmp_path):
    path = stopped(tmp_path / "run", 3)
    with refused(LedgerError, "'nobody'", "never paid", "'run'"):
        forget(path, "nobody")
    sitting(path)
    with refused(LedgerError, "'run'", "ended", "forget"):
        forget(path, winner(path))
    assert history(path)[1].ok


def test_who_stays_away_is_forgotten_and_the_ledger_says_so(tmp_path):
    changes = [
        "clients.absence_rate=0.4",
        "training.forget_after=3",
        "budget.max_rounds=30",
        "budget.total=60",
    ]
    whole = sitting(tmp_path / "run", changes=changes)
    past = history(tmp_path / "run")[0]
    gone = {record.round: record.delivery.forgotten for record in past if record.delivery.forgotten}
    assert gone
    for number, clients in gone.items():
        for record in past[number - 3 : number]:
            assert not set(clients) & set(record.awarded.bids.clients)
        assert set(clients) <= {client for record in past[:number] for client in record.payments}
    cut = stopped(tmp_path / "cut", max(gone) - 1, changes=changes)
    assert json.dumps(sitting(cut).to_json()) == json.dumps(whole.to_json())
