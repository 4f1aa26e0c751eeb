"""One experiment as a validated configuration, its runs, and comparisons."""

from typing import TYPE_CHECKING

from bara._lazy import lazily

if TYPE_CHECKING:
    from bara.reports.result import Result
    from bara.runs.config import Config
    from bara.runs.play import run

__all__ = ["Config", "Result", "run"]

__getattr__, __dir__ = lazily(__name__, {"Config": "config", "Result": "results", "run": "runs"})
