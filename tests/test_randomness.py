import numpy as np

from bara.randomness import stream


def test_each_purpose_has_a_stream_of_its_own():
    draws = {
        purpose: tuple(stream(0, purpose).integers(0, 2**30, 4))
        for purpose in ("iid", "shards", "subset")
    }
    assert len(set(draws.values())) == 3


def test_a_seed_may_be_a_numpy_number():
    assert stream(np.int64(3), "iid").integers(99) == stream(3, "iid").integers(99)
