"""A long run of the synthetic federation with its books: memory in use, and the size of its ledger.

python benchmarks/measure_long_run.py [ROUNDS] [FOLDER] [KEY=VALUE ...]

It plays 100,000 rounds unless said otherwise.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from bara import RoundRecord
from bara.reports.html import run_report
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

MARKS = (1_000, 10_000, 50_000, 100_000)


def in_use():
    """Megabytes of memory in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(rounds=100_000, home=".", *changes):
    rounds = int(rounds)
    defaults = ["federation.engine=synthetic", "allocator.name=even", "clients.failure_rate=0.1"]
    budget = [f"budget.max_rounds={rounds}", f"budget.total={5 * rounds}"]
    config = Config.load(None, [*defaults, *budget, *changes])
    begun = time.monotonic()

    def show(step):
        if isinstance(step, RoundRecord) and step.round in (*MARKS, rounds):
            print(
                f"{step.round:8,} rounds  {in_use():7.1f} MB  {time.monotonic() - begun:7.0f} s",
                flush=True,
            )

    with tempfile.TemporaryDirectory(dir=home) as folder:
        with RunFolder.new(Path(folder) / "run", config) as found:
            result = play_run(config, show, folder=found)
            found.finish(result, run_report(result, config.to_toml(), ""))
        size = (Path(folder) / "run" / "ledger.db").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{size / rounds:,.0f} bytes a round in ledger.db; peak memory with the result and its "
        f"report {peak:.1f} MB"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
