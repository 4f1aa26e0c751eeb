"""How soon the program answers: the processor time of each command, in turn with `import numpy`.

python benchmarks/bench_startup.py [TIMES]
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RIVAL = ("-c", "import numpy")
IMPORTS = {
    "import bara": ("-c", "import bara"),
    "from bara import run": ("-c", "from bara import run"),
}
COMMANDS = {
    "bara --version": ("--version",),
    "bara --help": ("--help",),
    "bara run --nope (a usage error)": ("run", "--nope"),
    "bara ledger DIR statement": ("ledger", "demo", "statement"),
    "bara audit bid-price-first": ("audit", "bid-price-first"),
}


def seconds(folder, *words):
    """The processor time of a Python process, its own and the system's."""
    with subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def main(times=7):
    with tempfile.TemporaryDirectory() as folder:
        demo = [
            "run",
            "--out",
            "demo",
            "--set",
            "federation.engine=synthetic",
            "--set",
            "budget.max_rounds=40",
        ]
        subprocess.run(
            [sys.executable, "-m", "bara.cli", *demo], cwd=folder, check=True, capture_output=True
        )
        assert (Path(folder) / "demo" / "ledger.db").exists()  # noqa: S101 - or the statement is of nothing
        for name, words in {
            **IMPORTS,
            **{name: ("-m", "bara.cli", *words) for name, words in COMMANDS.items()},
        }.items():
            repeat = times if "audit" not in words else 3
            pairs = [(seconds(folder, *words), seconds(folder, *RIVAL)) for _ in range(repeat)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(
                f"{name:34} {ours:6.2f} s, {ours / theirs:5.1f} times import numpy ({theirs:.2f} s)"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
