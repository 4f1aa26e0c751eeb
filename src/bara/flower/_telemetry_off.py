"""Keeps Flower and ray from telling others that they run, and from talking; imported before them, as they look once."""

import logging
import os

SURROUNDINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else ray warns about GPUs that nobody asked for
}

for _name, _value in SURROUNDINGS.items():
    os.environ.setdefault(_name, _value)


def quieten() -> None:
    """Let only errors of Flower's through; what matters of a round is in the ledger."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
