"""What one does with a federation's money, in Python as on the command line: run, resume, compare, plan, open."""

from bara.verbs._compare import compare
from bara.verbs._grid import run_grid
from bara.verbs._open import open  # noqa: A004 - bara.open
from bara.verbs._plan import Forecast, plan
from bara.verbs._run import resume, run

__all__ = ["Forecast", "compare", "open", "plan", "resume", "run", "run_grid"]
