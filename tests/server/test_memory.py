import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.server import memory as module
from bara.server.checkpoints import CheckpointStore
from bara.server.memory import FALL, LEAST, RISE, Fresh, UpdateMemory

SIZE = 40


def update(values, weight=1.0):
    return Fresh(np.full(SIZE, values, np.float32), weight, f"weighs {weight}")


def rounds(seed, count, clients=6):
    """Each round's fresh updates, with weights; at least one client a round."""
    rng = np.random.default_rng(seed)
    for number in range(1, count + 1):
        here = np.flatnonzero(rng.random(clients) < 0.4)
        here = here if len(here) else np.array([number % clients])
        yield (
            number,
            {
                f"c{i}": update(rng.normal(i, 1 + 1 / number, SIZE), float(rng.integers(1, 9)))
                for i in here
            },
        )


def told(memory, *chapters):
    for number, fresh in chapters:
        memory.tell(number, fresh)
    return memory


@given(st.integers(0, 1000), st.integers(1, 12))
def test_a_plain_step_is_the_weighted_mean_of_everybodys_last_update(seed, count):
    memory, last = UpdateMemory(extrapolated=False), {}
    for number, fresh in rounds(seed, count):
        step = memory.tell(number, fresh)
        last |= fresh
        total = sum(one.weight for one in last.values())
        naive = sum(one.update.astype(float) * one.weight for one in last.values()) / total
        assert step == pytest.approx(naive, abs=1e-5)
        assert memory.judge(1e9)
        assert dict(memory.remembered(number)).keys() == last.keys() - fresh.keys()


@given(st.integers(0, 1000), st.integers(1, 25))
def test_an_extrapolated_step_follows_the_spread_of_the_updates_and_the_losses(seed, count):
    """Against the definition in the module's docstring."""
    memory, last, losses = (
        UpdateMemory(extrapolated=True),
        {},
        np.random.default_rng(seed).lognormal(0, 0.3, count),
    )
    trust, size, before = 1.0, 1.0, None
    for (number, fresh), loss in zip(rounds(seed, count), losses.tolist(), strict=True):
        step = memory.tell(number, fresh)
        last |= fresh
        weights = np.array([one.weight for one in last.values()])
        updates = np.array([one.update.astype(float) for one in last.values()])
        mean = np.average(updates, axis=0, weights=weights)
        spread = np.average((updates**2).sum(axis=1), weights=weights) / (2 * mean @ mean)
        size = min(trust * max(spread, 1.0), RISE * size)
        assert memory.size == pytest.approx(size, rel=1e-4)
        assert step == pytest.approx(size * mean, rel=1e-3, abs=1e-4)
        taken = before is None or loss <= RISE * before
        assert memory.judge(loss) is taken
        if before is not None:
            trust = max(trust * (RISE if loss <= before else FALL), LEAST)
        before, size = (loss, size) if taken else (before, size * FALL)


def test_where_all_agree_a_step_is_the_mean_and_grows_while_the_loss_falls():
    memory = UpdateMemory(extrapolated=True)
    alike = {f"c{i}": update(1) for i in range(4)}
    sizes = []
    for number, loss in enumerate((1.0, 0.9, 0.8, 0.85), start=1):
        memory.tell(number, alike)
        sizes.append(memory.size)
        assert memory.judge(loss)
    memory.tell(5, alike)
    assert sizes == pytest.approx([1.0, 1.0, 1.2, 1.44])
    assert memory.size == pytest.approx(1.44 / 2)


@pytest.mark.parametrize("loss", [1.21, float("inf"), float("nan")])
def test_a_step_that_makes_the_loss_much_worse_is_not_taken_and_the_next_is_half_as_long(loss):
    memory = UpdateMemory(extrapolated=True)
    for number in (1, 2):
        memory.tell(number, {"a": update(1)})
        assert memory.judge(1.0)
    memory.tell(3, {"a": update(1)})
    before = memory.size
    assert not memory.judge(loss)
    memory.tell(4, {"a": update(1)})
    assert memory.size == pytest.approx(before / 2)
    assert memory.judge(1.0)


def test_a_loss_below_zero_may_rise_a_little_and_not_much():
    memory = UpdateMemory(extrapolated=True)
    memory.tell(1, {"a": update(1)})
    assert [memory.judge(loss) for loss in (-1.0, -0.9, -0.5)] == [True, True, False]


def test_updates_that_cancel_each_other_out_make_no_step():
    memory = UpdateMemory(extrapolated=True)
    assert not memory.tell(1, {"a": update(1), "b": update(-1)}).any()
    assert memory.size == 1.0


def test_ages_are_counted_and_fresh_ones_are_not():
    one = update(1)
    memory = told(
        UpdateMemory(extrapolated=True), (1, {"a": one, "b": one}), (4, {"c": one}), (6, {"d": one})
    )
    assert memory.ages(6) == {2: 1, 5: 2}


def test_who_is_forgotten_counts_no_more_and_may_come_back():
    memory = UpdateMemory(extrapolated=False)
    memory.tell(1, {name: update(value) for name, value in (("a", 1), ("b", 5))})
    memory.forget("b", 1)
    assert memory.clients == {"a"}
    memory.forget("nobody", 1)
    assert memory.tell(2, {"c": update(3)}).tolist() == [2.0] * SIZE
    assert memory.tell(3, {"b": update(5)}).tolist() == [3.0] * SIZE


def test_who_does_not_bid_for_long_is_forgotten_and_who_comes_back_in_time_is_not():
    memory = UpdateMemory(extrapolated=False)
    memory.tell(1, {name: update(1) for name in "abc"})
    absent = {2: "ab", 3: "ab", 4: "a", 5: "ab", 6: "ab"}
    found = {number: memory.forget_outdated(number, away, 3) for number, away in absent.items()}
    assert found == {2: (), 3: (), 4: (), 5: ("a",), 6: ()}
    assert sorted(memory.clients) == ["b", "c"]


@given(fresh=st.integers(1, 4), others=st.integers(1, 8))
def test_an_update_counts_until_the_others_have_had_ten_turns_each(fresh, others):
    memory = UpdateMemory(extrapolated=False)
    names = [f"c{i}" for i in range(others)]
    memory.tell(1, {name: update(1) for name in ["passed over", *names]})
    accepted, number = 0, 2
    while not (gone := memory.forget_outdated(number, None, 50)):
        assert accepted <= module.TURNS * (others + 1)
        recruited = [names[(accepted + i) % others] for i in range(min(fresh, others))]
        memory.tell(number, {name: update(1) for name in recruited})
        accepted, number = accepted + len(recruited), number + 1
    assert gone == ("passed over",)
    assert accepted > module.TURNS * (others + 1)
    assert memory.tell(number, {"passed over": update(1)}).any()
    assert "passed over" in memory.clients


@pytest.mark.parametrize("turns", [module.TURNS, 1])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("share", [module.SHARE_OF_RAM, 0.0])
def test_a_restored_memory_goes_on_bit_for_bit(tmp_path, monkeypatch, every, share, turns):
    """With everything in RAM, and with everything in files.

    With updates that are too old, and without.
    """
    monkeypatch.setattr(module, "SHARE_OF_RAM", share)
    monkeypatch.setattr(module, "TURNS", turns)
    whole = UpdateMemory(extrapolated=True, folder=tmp_path)
    store = CheckpointStore(tmp_path, durable=False)
    chapters = list(rounds(7, 12))
    for number, fresh in chapters[:9]:
        whole.tell(number, fresh)
        whole.judge(1 / number if number != 4 else 9.0)
        if number == 5:
            whole.forget("c1", 5)
        whole.forget_outdated(number, ["c2"] if number > 6 else [], 50)
        if number % every == 0:
            store.put(number, {"state": np.zeros(1)}, whole.pieces(), {"memory": whole.state()})
    found = CheckpointStore(tmp_path, durable=False).newest(9)
    again = UpdateMemory(extrapolated=True, folder=tmp_path)
    own, pieces = found
    again.restore(own.extra["memory"], pieces)
    for number, fresh in chapters[9:]:
        steps = [memory.tell(number, fresh).tobytes() for memory in (whole, again)]
        assert steps[0] == steps[1]
        assert again.judge(1 / number) == whole.judge(1 / number)
        assert again.forget_outdated(number, ["c2"], 50) == whole.forget_outdated(
            number, ["c2"], 50
        )
        assert again.ages(number) == whole.ages(number)
        assert again.state() == whole.state()
    assert not [path for path in tmp_path.iterdir() if path.name != "checkpoints"]


def test_a_checkpoint_writes_only_what_changed(tmp_path):
    memory, store = UpdateMemory(extrapolated=False), CheckpointStore(tmp_path, durable=False)
    memory.tell(1, {f"c{i}": update(1) for i in range(100)})
    store.put(1, {"state": np.zeros(1)}, memory.pieces())
    before = (tmp_path / "checkpoints/updates-1.npz").stat()
    memory.tell(2, {"c3": update(1)})
    store.put(2, {"state": np.zeros(1)}, memory.pieces())
    assert (tmp_path / "checkpoints/updates-1.npz").stat() == before
    assert (tmp_path / "checkpoints/updates-2.npz").stat().st_size < before.st_size / 10


@pytest.mark.parametrize("extrapolated", [False, True])
def test_the_step_without_a_client_is_that_of_a_memory_that_never_knew_it(extrapolated):
    memory = UpdateMemory(extrapolated=extrapolated)
    known = {}
    for number, fresh in rounds(3, 6):
        memory.tell(number, fresh)
        known |= fresh
    assert set(memory.clients) == known.keys()
    for client in known:
        rest = {name: one for name, one in known.items() if name != client}
        mean = UpdateMemory(extrapolated=False).tell(1, rest)
        assert np.allclose(memory.step_of(rest), memory.size * mean, atol=1e-5)
