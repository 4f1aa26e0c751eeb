"""Every federation there is keeps the same contract."""

import pytest

from bara.experiments.config import Config
from bara.experiments.engines import FEDERATIONS, build_federation
from bara.testing import FEDERATION_CHECKS


@pytest.mark.parametrize("check", FEDERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", FEDERATIONS.names())
def test_every_federation(engine, check):
    changes = [f"federation.engine={engine}", "clients.count=6"]
    check(lambda seed: build_federation(Config.load(None, [*changes, f"seed={seed}"])))
