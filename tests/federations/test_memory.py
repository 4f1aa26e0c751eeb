import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara.federations import memory as module
from bara.federations.checkpoints import CheckpointStore
from bara.federations.memory import LOOK_BACK, Fresh, UpdateMemory

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
            {f"c{i}": update(rng.normal(i, 1 + 1 / number, SIZE), float(rng.integers(1, 9))) for i in here},
        )


def told(memory, *chapters):
    for number, fresh in chapters:
        memory.tell(number, fresh)
    return memory


@given(st.integers(0, 1000), st.integers(1, 12))
def test_plain_memory_is_the_weighted_mean_of_everybodys_last_update(seed, count):
    memory, last = UpdateMemory(corrected=False), {}
    for number, fresh in rounds(seed, count):
        memory.tell(number, fresh)
        last |= fresh
        total = sum(one[1] for one in last.values())
        naive = sum(values.astype(float) * weight for values, weight, *_ in last.values()) / total
        assert memory.mean() == pytest.approx(naive, abs=1e-5)


@given(st.integers(0, 1000), st.integers(1, 12))
def test_corrected_memory_follows_those_who_come_back_as_far_as_they_agree(seed, count):
    """Against the definition: each delta regressed on the mean of the others', all of what is remembered moved."""
    memory, last = UpdateMemory(corrected=True), {}
    above = below = 0.0
    for number, fresh in rounds(seed, count):
        memory.tell(number, fresh)
        deltas = {client: fresh[client].update - last[client][0] for client in fresh if client in last}
        if len(deltas) > 1:
            above, below = above * LOOK_BACK, below * LOOK_BACK
            for client, delta in deltas.items():
                others = np.mean([other for name, other in deltas.items() if name != client], axis=0)
                above, below = above + float(delta @ others), below + float(others @ others)
        lam = min(max(above / below, 0.0), 1.0) if below else 0.0
        move = lam * np.mean(list(deltas.values()), axis=0) if deltas else 0.0
        last = {client: (values + move, weight) for client, (values, weight, *_) in last.items()}
        last |= {client: (one.update.astype(float), one.weight) for client, one in fresh.items()}
        total = sum(one[1] for one in last.values())
        naive = sum(values * weight for values, weight, *_ in last.values()) / total
        assert memory.mean() == pytest.approx(naive, abs=2e-4)
        for client, one in memory.remembered(number):
            assert client not in fresh
            assert one.update == pytest.approx(last[client][0], abs=2e-4)
            assert (one.weight, one.note) == (last[client][1], f"weighs {one.weight}")


def test_where_all_change_alike_what_is_remembered_keeps_up():
    start = {f"c{i}": update(i) for i in range(6)}
    later = {client: update(start[client].update + 3) for client in ("c0", "c1", "c2")}
    memory = told(UpdateMemory(corrected=True), (1, start), (2, later))
    assert memory.mean() == pytest.approx(np.mean(range(6)) + 3)
    assert told(UpdateMemory(corrected=False), (1, start), (2, later)).mean() == pytest.approx(np.mean(range(6)) + 1.5)


def test_one_client_that_changed_is_no_trend():
    start = {f"c{i}": update(i) for i in range(3)}
    memory = told(UpdateMemory(corrected=True), (1, start), (2, {"c0": update(30)}))
    assert memory.mean() == pytest.approx((30 + 1 + 2) / 3)


def test_ages_are_counted_and_fresh_ones_are_not():
    one = update(1)
    memory = told(UpdateMemory(corrected=True), (1, {"a": one, "b": one}), (4, {"c": one}), (6, {"d": one}))
    assert memory.ages(6) == {2: 1, 5: 2}


def test_who_is_forgotten_counts_no_more_and_may_come_back():
    memory = UpdateMemory(corrected=False)
    memory.tell(1, {name: update(value) for name, value in (("a", 1), ("b", 5))})
    memory.forget("b", 1)
    assert memory.mean().tolist() == [1.0] * SIZE
    assert "b" not in memory.clients
    memory.forget("nobody", 1)
    memory.tell(2, {"b": update(3)})
    assert memory.mean().tolist() == [2.0] * SIZE


def test_who_does_not_bid_for_long_is_forgotten_and_who_comes_back_in_time_is_not():
    memory = UpdateMemory(corrected=False)
    memory.tell(1, {name: update(1) for name in "abc"})
    absent = {2: "ab", 3: "ab", 4: "a", 5: "ab", 6: "ab"}
    found = {number: memory.forget_absent(number, away, 3) for number, away in absent.items()}
    assert found == {2: (), 3: (), 4: (), 5: ("a",), 6: ()}
    assert sorted(memory.clients) == ["b", "c"]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("share", [module.SHARE_OF_RAM, 0.0])
def test_a_restored_memory_goes_on_bit_for_bit(tmp_path, monkeypatch, every, share):
    """With everything in RAM, and with everything in files."""
    monkeypatch.setattr(module, "SHARE_OF_RAM", share)
    whole = UpdateMemory(corrected=True, folder=tmp_path)
    store = CheckpointStore(tmp_path, durable=False)
    chapters = list(rounds(7, 12))
    for number, fresh in chapters[:9]:
        whole.tell(number, fresh)
        if number == 5:
            whole.forget("c1", 5)
        whole.forget_absent(number, ["c2"] if number > 6 else [], 50)
        if number % every == 0:
            arrays, extra = whole.state()
            store.put(number, {"state": np.zeros(1), **arrays}, whole.pieces(), {"memory": extra})
    found = CheckpointStore(tmp_path, durable=False).newest(9)
    again = UpdateMemory(corrected=True, folder=tmp_path)
    own, pieces = found
    again.restore(own.arrays, own.extra["memory"], pieces)
    for number, fresh in chapters[9:]:
        for memory in (whole, again):
            memory.tell(number, fresh)
        assert again.mean().tobytes() == whole.mean().tobytes()
        assert again.ages(number) == whole.ages(number)
        assert again.state()[1] == whole.state()[1]
    assert not [path for path in tmp_path.iterdir() if path.name != "checkpoints"]


def test_a_checkpoint_writes_only_what_changed(tmp_path):
    memory, store = UpdateMemory(corrected=False), CheckpointStore(tmp_path, durable=False)
    memory.tell(1, {f"c{i}": update(1) for i in range(100)})
    store.put(1, {"state": np.zeros(1)}, memory.pieces())
    before = (tmp_path / "checkpoints/updates-1.npz").stat()
    memory.tell(2, {"c3": update(1)})
    store.put(2, {"state": np.zeros(1)}, memory.pieces())
    assert (tmp_path / "checkpoints/updates-1.npz").stat() == before
    assert (tmp_path / "checkpoints/updates-2.npz").stat().st_size < before.st_size / 10
