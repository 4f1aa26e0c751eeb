"""Local training on this machine's cores, in torch."""

from importlib.util import find_spec

from bara.errors import MissingExtraError

if find_spec("torch") is None:
    raise MissingExtraError("the simulator trains with torch, which is not installed: pip install 'bara-fl[sim]'")

from bara.federations.simulator.aggregation import aggregate
from bara.federations.simulator.engine import Data, Engine, Score, Updates
from bara.federations.simulator.training import Training

__all__ = ["Data", "Engine", "Score", "Training", "Updates", "aggregate"]
