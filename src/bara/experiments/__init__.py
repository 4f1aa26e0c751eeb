"""One experiment as a validated configuration, its runner, and comparisons."""

from bara.experiments.config import Config
from bara.experiments.results import Result
from bara.experiments.runs import run

__all__ = ["Config", "Result", "run"]
