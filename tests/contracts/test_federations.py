"""Every federation there is keeps the same contract; the one on Flower in tests/flower, on a grid there."""

import pytest

from bara.experiments.config import Config
from bara.experiments.factory import FEDERATIONS, build_federation
from bara.testing import FEDERATION_CHECKS


@pytest.mark.parametrize("check", FEDERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", [name for name in FEDERATIONS.names() if not name.startswith("flower")])
def test_every_federation(engine, check):
    changes = [f"federation.engine={engine}", "clients.count=6"]
    check(lambda seed: build_federation(Config.load(None, [*changes, f"seed={seed}"])))
