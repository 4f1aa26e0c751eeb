"""Settings that silence Flower and ray: no telemetry, no update checks, no usage statistics.

Import this module before Flower and ray, which read the environment once, on import.
"""

import logging
import os

SURROUNDINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # no warning about GPUs nobody asked for
}

for _name, _value in SURROUNDINGS.items():
    os.environ.setdefault(_name, _value)


def quieten() -> None:
    """Let Flower log only errors; the ledger records what matters about a round."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
