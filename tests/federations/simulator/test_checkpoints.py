import numpy as np
import pytest

from bara.errors import TrainingError
from bara.federations.checkpoints import load, save
from bara.federations.simulator import aggregate

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
    with pytest.raises(TrainingError, match=r"c\.npz is cut short or damaged"):
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
    with pytest.raises(TrainingError, match="there is no checkpoint"):
        load(tmp_path / "c.npz")


def test_a_save_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "c.npz"
    save(path, STATE, 1)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(path, STATE * 2, 2)
    assert load(path).round == 1
    assert [found.name for found in tmp_path.iterdir()] == ["c.npz"]
