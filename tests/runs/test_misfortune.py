"""A handful of schedules of the simulator of misfortune; `make misfortune` plays thousands."""

import misfortune


def test_whatever_befalls_a_run_nobody_is_paid_twice_and_nothing_acknowledged_is_lost():
    figures, broken = misfortune.play_seeds(range(101, 107))
    assert broken is None, broken
    assert figures["schedules"] == 6
    assert figures["acknowledged"] > 6
