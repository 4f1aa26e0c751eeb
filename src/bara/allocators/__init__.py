"""Allocators, which decide what a round may cost: one file each, all with `ask` and `tell`."""

from bara.allocators.bara import PRESETS, Bara, Reading
from bara.allocators.baselines import Decreasing, Even, Explored, Fixed, Increasing, RandomN
from bara.allocators.estimators import ESTIMATORS, Estimator, NewtonEstimator
from bara.plugins import Registry
from bara.protocols import Allocator

ALLOCATORS: Registry[Allocator] = Registry(
    "allocator",
    {
        "bara": "bara.allocators.bara:Bara",
        "even": "bara.allocators.baselines:Even",
        "increasing": "bara.allocators.baselines:Increasing",
        "decreasing": "bara.allocators.baselines:Decreasing",
        "random": "bara.allocators.baselines:RandomN",
        "fixed": "bara.allocators.baselines:Fixed",
        "explored": "bara.allocators.baselines:Explored",
        "finale": "bara.allocators.finale:Finale",
        "overture": "bara.allocators.finale:Overture",
        "pacing": "bara.allocators.pacing:Pacing",
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
    "Explored",
    "Fixed",
    "Increasing",
    "NewtonEstimator",
    "RandomN",
    "Reading",
]
