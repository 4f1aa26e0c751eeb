"""Waiting for what another process or thread brings about, however busy the machine is."""

import time

LONG = 60
"""Seconds after which what is waited for counts as lost. Only a test that fails waits as long."""


def until(happened, seconds=LONG):
    """Wait until it has happened; return whether it has."""
    end = time.monotonic() + seconds
    while not (found := happened()) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(found)
