from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from bara.errors import TrainingError
from bara.server.checkpoints import CheckpointStore, load, save
from bara.simulator import aggregate

OLD = Path(__file__).parents[1] / "compatibility/runs"
STATE = np.arange(1000, dtype=np.float32) / 7


def test_what_is_saved_is_loaded(tmp_path):
    save(tmp_path / "c.npz", STATE, 12, {"spent": 3, "who": ["a"]})
    found = load(tmp_path / "c.npz")
    assert np.array_equal(found.state, STATE)
    assert (found.round, found.extra) == (12, {"spent": 3, "who": ["a"]})
    assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(tmp_path, make_engine):
    def rounds(engine, state, numbers):
        for number in numbers:
            updates = engine.train(state, number, [0, 1, 2])
            state = aggregate(updates, updates.samples)
        return state

    engine = make_engine("cifar-cnn", shape=(12, 12, 3), momentum=0.9)
    whole = rounds(engine, engine.start(), range(1, 5))
    save(tmp_path / "c.npz", rounds(engine, engine.start(), range(1, 3)), 2)
    found = load(tmp_path / "c.npz")
    fresh = make_engine("cifar-cnn", shape=(12, 12, 3), momentum=0.9)
    assert np.array_equal(whole, rounds(fresh, found.state, range(found.round + 1, 5)))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_checkpoint_cut_short_is_refused(tmp_path, share):
    path = tmp_path / "c.npz"
    save(path, STATE, 1)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with refused(TrainingError, path, "damaged"):
        load(path)


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "c.npz"
    save(path, STATE, 1)
    good = path.read_bytes()
    noticed = 0
    for place in range(0, len(good), 37):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            found = load(path)
        except TrainingError:
            noticed += 1
        else:
            assert np.array_equal(found.state, STATE)
            assert found.round == 1
    assert noticed > 100


def test_a_checkpoint_that_is_not_there_is_said_so(tmp_path):
    with refused(TrainingError, "no checkpoint", tmp_path / "c.npz"):
        load(tmp_path / "c.npz")


def test_a_save_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "c.npz"
    save(path, STATE, 1)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with refused(OSError, "disk full"):
        save(path, STATE * 2, 2)
    assert load(path).round == 1
    assert [found.name for found in tmp_path.iterdir()] == ["c.npz"]


def put(store, own, *others):
    pieces = {
        f"round-{number}": lambda number=number: {"state": STATE + number} for number in others
    }
    store.put(own, {"state": STATE + own}, pieces)


def rounds(found):
    own, pieces = found
    assert all(np.array_equal(piece.state, STATE + int(name[6:])) for name, piece in pieces.items())
    assert np.array_equal(own.state, STATE + own.round)
    return [*sorted(int(name[6:]) for name in pieces), own.round]


def files(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_a_store_keeps_what_the_last_two_rounds_need(tmp_path):
    store = CheckpointStore(tmp_path, durable=False)
    for own, *others in ((2, 1), (4, 1, 3), (6, 5), (8, 7)):
        put(store, own, *others)
    assert files(tmp_path) == ["round-5.npz", "round-6.npz", "round-7.npz", "round-8.npz"]
    assert rounds(CheckpointStore(tmp_path, durable=False).newest(100)) == [7, 8]
    assert rounds(CheckpointStore(tmp_path, durable=False).newest(7)) == [5, 6]


def test_a_piece_is_written_once_and_kept_while_it_is_needed(tmp_path):
    store = CheckpointStore(tmp_path, durable=False)
    put(store, 2, 1)
    first = (tmp_path / "checkpoints/round-1.npz").stat()
    put(store, 3, 1, 2)
    assert (tmp_path / "checkpoints/round-1.npz").stat() == first
    found = CheckpointStore(tmp_path, durable=False)
    assert rounds(found.newest(3)) == [1, 2, 3]
    put(found, 4, 1)
    assert (tmp_path / "checkpoints/round-1.npz").stat() == first


@pytest.mark.parametrize("damaged", [1, 4])
def test_without_a_model_it_needs_a_checkpoint_is_none_and_is_made_again(tmp_path, damaged):
    store = CheckpointStore(tmp_path, durable=True)
    put(store, 3, 2)
    put(store, 4, 1)
    (tmp_path / f"checkpoints/round-{damaged}.npz").write_bytes(b"nonsense")
    store = CheckpointStore(tmp_path, durable=True)
    assert rounds(store.newest(4)) == [2, 3]
    put(store, 4, 1)
    assert rounds(CheckpointStore(tmp_path, durable=True).newest(4)) == [1, 4]


@pytest.mark.parametrize("forged", [1, 4])
def test_a_checkpoint_is_none_that_the_ledger_did_not_commit_to(tmp_path, forged):
    """Whole, of the right round, with sums of its own, but not what was saved:
    neither itself nor a piece of it.
    """
    store = CheckpointStore(tmp_path, durable=True)
    put(store, 3, 2)
    put(store, 4, 1)
    committed = {number: store.digest(number) for number in (3, 4)}
    path = tmp_path / f"checkpoints/round-{forged}.npz"
    save(path, np.zeros_like(STATE), forged, load(path).extra)
    assert rounds(CheckpointStore(tmp_path, durable=True).newest(4, committed.get)) == [2, 3]


def test_nor_is_one_of_a_round_that_was_taken_back_after_it_was_saved(tmp_path):
    store = CheckpointStore(tmp_path, durable=True)
    put(store, 3)
    committed = {3: store.digest(3)}
    put(
        store, 4
    )  # then the process died, an operator said that the round is void, and nobody was paid
    assert rounds(CheckpointStore(tmp_path, durable=True).newest(4, committed.get)) == [3]


@pytest.mark.parametrize(
    ("run", "last", "needs"), [("simulator", 4, [1, 2, 3, 4]), ("flower", 3, [3])]
)
def test_checkpoints_of_an_earlier_version_are_found(run, last, needs):
    """The simulator's say what they need; Flower's did not, and stand alone."""
    own, pieces = CheckpointStore(OLD / run, durable=True).newest(
        last, {}.get
    )  # their ledgers commit to none
    assert [*sorted(int(name[6:]) for name in pieces), own.round] == needs


def test_without_a_folder_nothing_is_kept():
    store = CheckpointStore(None, durable=True)
    put(store, 1)
    assert (store.newest(1), store.digest(1)) == (None, None)
