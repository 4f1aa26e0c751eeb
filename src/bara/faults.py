"""Named points in the code at which tests can kill a run.

With `BARA_FAULT=NAME@K` in the environment, the process kills itself (SIGKILL) when it passes the
point `NAME` for the K-th time; with `NAME` alone, the first time.
"""

import os
import signal
from collections import Counter
from functools import cache

_passed: Counter[str] = Counter()


@cache
def _wanted() -> tuple[str, int]:
    """Return the point at which to die, and at which passing.

    Cached, because every commit to a ledger passes several points.
    """
    name, _, times = os.environ.get("BARA_FAULT", "").partition("@")
    return name, int(times or 1)


def point(name: str) -> None:
    """Kill the process here if the environment says so."""
    wanted, times = _wanted()
    if wanted == name:
        _passed[name] += 1
        if _passed[name] == times:
            os.kill(os.getpid(), signal.SIGKILL)
