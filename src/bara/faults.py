"""Named points at which a process can be told to die, so that tests kill a run exactly there.

`BARA_FAULT=NAME@K` in the environment: SIGKILL at the K-th time the point is passed (`NAME` alone:
the first time).
"""

import os
import signal
from collections import Counter
from functools import cache

_passed: Counter[str] = Counter()


@cache
def _wanted() -> tuple[str, int]:
    """Where to die, and at which passing; looked up once, because every commit passes several points."""
    name, _, times = os.environ.get("BARA_FAULT", "").partition("@")
    return name, int(times or 1)


def point(name: str) -> None:
    """Die here, if the environment says so."""
    wanted, times = _wanted()
    if wanted == name:
        _passed[name] += 1
        if _passed[name] == times:
            os.kill(os.getpid(), signal.SIGKILL)
