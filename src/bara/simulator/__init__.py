"""Simulation on this machine: an engine that trains in torch, and a federation without a model.

Importing this package does not import torch; its names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from bara._lazy import lazily

if TYPE_CHECKING:
    from bara.clients.conduct import Updates
    from bara.simulator.aggregation import aggregate
    from bara.simulator.engine import Data, Engine, Score
    from bara.simulator.training import Training

__all__ = ["Data", "Engine", "Score", "Training", "Updates", "aggregate"]

_PLACES = {**dict.fromkeys(__all__, "engine"), "Training": "training", "aggregate": "aggregation"}
__getattr__, __dir__ = lazily(__name__, _PLACES)
