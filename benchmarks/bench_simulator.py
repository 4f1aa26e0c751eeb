"""How fast the simulator is beside its peers: `python benchmarks/bench_simulator.py` (make bench).

The first run makes an environment of its own, `.bench-venv`, with torch, pfl and Flower in it;
later runs reuse it. Every contestant is a process (or several) that stays idle until it is its
turn, and they take turns round by round, so that all of them see the same machine: the ratios hold
also where the seconds do not. Every process computes on one thread, two processes at a time. The
limit of the convolutions keeps the memory it frees, as our workers do.

    python benchmarks/bench_simulator.py [--rounds 7] [--only mlp,cnn,cifar-cnn,fedsgd,memory]
"""

import argparse
import atexit
import os
import signal
import statistics
import subprocess
import sys
import time
import venv
from contextlib import suppress
from pathlib import Path

from bara.simulator._pool import SURROUNDINGS

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / ".bench-venv"
PYTHON = HOME / "bin" / "python"
MLP, CNN, CIFAR = "mlp,20,3000", "cnn,4,500", "cifar-cnn,4,500"
LAST = {"BARA_BENCH_CHANNELS_LAST": "1"}


class Contestant:
    """One row of a table: a script in the benchmark's environment, told when to play."""

    def __init__(self, title, script, *arguments, workload, **environment):
        self.title, self.seconds = title, []
        surroundings = {
            **os.environ,
            "PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "BARA_BENCH_WORKLOAD": workload,
            **environment,
        }
        self._process = subprocess.Popen(
            [PYTHON, HERE / script, *arguments],
            env=surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        atexit.register(
            self.end
        )  # also when the driver is interrupted: peers leave processes behind
        self.alive = self._process.stdout.readline().strip() == "ready"

    def play(self):
        """One round."""
        self._process.stdin.write("go\n")
        answer = self._process.stdout.readline()
        self.alive = bool(answer)
        if answer:
            self.seconds.append(float(answer))

    def end(self):
        """Let it end, then end whatever it left behind (it leads a process group of its own)."""
        if self._process.returncode is not None:
            return
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def table(title, contestants, rounds):
    """Let them take turns."""
    for _ in range(rounds):
        for contestant in contestants:
            if contestant.alive:
                contestant.play()
    for contestant in contestants:
        contestant.end()
    print(
        f"\n{title}\n"
        f"{'':34}{'median s':>10}{'fastest s':>11}"
        f"{'ours is x times as fast':>25}{'of the limit':>14}"
    )
    ours, limit = contestants[0], contestants[-1]
    for one in contestants:
        print(f"{one.title:34}{row(one, ours, limit)}", flush=True)


def row(one, ours, limit):
    if not one.seconds or not ours.seconds or not limit.seconds:
        return "   could not be run"
    middle = statistics.median
    faster, share = (
        middle(one.seconds) / middle(ours.seconds),
        middle(limit.seconds) / middle(one.seconds),
    )
    return f"{middle(one.seconds):10.3f}{min(one.seconds):11.3f}{faster:25.2f}{share:14.0%}"


def mlp(rounds):
    title = "MLP 784-200-200-10, FedAvg, 20 clients x 3000 samples, batch 50, one epoch"
    lineup = [
        Contestant("bara, 2 workers", "play_bara.py", "fedavg", workload=MLP),
        Contestant("plain torch loop, 1 process", "play_plain.py", workload=MLP),
        Contestant("pfl, 2 processes", "play_pfl.py", workload=MLP),
        Contestant("Flower on ray, 2 actors", "play_flower.py", workload=MLP),
        Contestant("limit: matrix products, 2 processes", "play_limit.py", workload=MLP),
    ]
    table(title, lineup, rounds)


def convolutions(name, workload, rounds):
    lineup = [
        Contestant("bara, 2 workers", "play_bara.py", "fedavg", workload=workload),
        Contestant("pfl, 2 processes", "play_pfl.py", workload=workload),
        Contestant("pfl, 2 processes, channels last", "play_pfl.py", workload=workload, **LAST),
        Contestant(
            "limit: kernels, 2 processes", "play_limit.py", workload=workload, **SURROUNDINGS
        ),
    ]
    table(f"{name}, FedAvg, 4 clients x 500 samples, batch 50, one epoch", lineup, rounds)


def fedsgd(rounds):
    load = "mlp,8,3000"
    lineup = [
        Contestant("bara, FedSGD, 2 workers", "play_bara.py", "fedsgd", workload=load),
        Contestant("FedAvg epoch's matrix products", "play_limit.py", workload=load),
    ]
    table("One FedSGD round of 8 clients x 3000 samples, MLP", lineup, rounds * 2)


def run_here(script):
    """Run one of the other measurements in the benchmark's environment."""
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    subprocess.run([PYTHON, HERE / script], env=surroundings, check=True)


def prepare():
    if PYTHON.exists():
        return
    print("making .bench-venv (once)", flush=True)
    venv.create(HOME, with_pip=True)
    for what in (["torch==2.13.0"], ["pfl==0.6.0", "flwr[simulation]==1.41.0"]):
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *what], check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="mlp,cnn,cifar-cnn,fedsgd,memory")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    prepare()
    parts = {
        "mlp": lambda: mlp(asked.rounds),
        "cnn": lambda: convolutions("Fashion-MNIST CNN", CNN, asked.rounds),
        "cifar-cnn": lambda: convolutions("CIFAR CNN", CIFAR, asked.rounds),
        "fedsgd": lambda: fedsgd(asked.rounds),
        "memory": lambda: run_here("measure_growth.py"),
    }
    began = time.perf_counter()
    for name in asked.only.split(","):
        parts[name]()
    print(f"\n{time.perf_counter() - began:.0f} s in all, {os.cpu_count()} cores", file=sys.stderr)


if __name__ == "__main__":
    main()
