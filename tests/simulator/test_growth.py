from pathlib import Path

from bara.simulator import aggregate


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def test_hundreds_of_rounds_do_not_grow_the_process(make_engine):
    engine = make_engine()
    state = engine.start()

    def rounds(first, last):
        nonlocal state
        for number in range(first, last):
            updates = engine.train(state, number, [number % 4, (number + 1) % 4], evidence=True)
            state = aggregate(updates, updates.samples)
            engine.evaluate(state)

    rounds(0, 30)
    before = resident_megabytes()
    rounds(30, 180)  # each round's states are 0.45 MB: kept, they would be 65 MB
    assert resident_megabytes() - before < 15
