"""Every federation there is keeps the same contract.

The one on Flower in tests/flower, on a grid there.
"""

import pytest

from bara.runs.config import Config
from bara.runs.factory import FEDERATIONS, build_federation
from bara.testing import FEDERATION_CHECKS, select_checks

ENGINES = [name for name in FEDERATIONS.names() if not name.startswith("flower")]


def made(engine, seed=0):
    return build_federation(
        Config.load(None, [f"federation.engine={engine}", "clients.count=6", f"seed={seed}"])
    )


@pytest.mark.parametrize("check", FEDERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_federation(engine, check):
    check(lambda seed: made(engine, seed))


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_left_unchecked(engine):
    assert select_checks(FEDERATION_CHECKS, made(engine)).skipped == {}
