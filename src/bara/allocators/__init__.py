"""How much a round may cost: one file an allocator, all with ask and tell."""

from bara.allocators.bara import PRESETS, Bara, Reading
from bara.allocators.baselines import Even
from bara.allocators.decreasing import Decreasing
from bara.allocators.estimators import ESTIMATORS, Estimator, NewtonEstimator
from bara.allocators.fixed import Fixed
from bara.allocators.increasing import Increasing
from bara.allocators.random_n import RandomN
from bara.plugins import Registry
from bara.protocols import Allocator

ALLOCATORS: Registry[Allocator] = Registry(
    "allocator",
    {
        "bara": "bara.allocators.bara:Bara",
        "even": "bara.allocators.baselines:Even",
        "increasing": "bara.allocators.increasing:Increasing",
        "decreasing": "bara.allocators.decreasing:Decreasing",
        "random": "bara.allocators.random_n:RandomN",
        "fixed": "bara.allocators.fixed:Fixed",
        "finale": "bara.allocators.finale:Finale",
        "isp": "bara.allocators.isp:Isp",
        "planner": "bara.allocators.planner:Planner",
    },
    Allocator,
)
"""Every allocator by name; others by import path or by the entry-point group `bara.allocators`."""

__all__ = [
    "ALLOCATORS",
    "ESTIMATORS",
    "PRESETS",
    "Bara",
    "Decreasing",
    "Estimator",
    "Even",
    "Fixed",
    "Increasing",
    "NewtonEstimator",
    "RandomN",
    "Reading",
]
