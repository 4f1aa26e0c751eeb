"""What a dashboard costs a run while 100 viewers come and go, and how soon a long run opens.

The target: the run is less than 5 % slower, news arrive within two seconds, 10,000 rounds open in
under two. Rounds are counted in turns with and without viewers, each turn beside its neighbours, so
that what else the machine does cancels.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import httpx2

BARA = Path(sys.executable).parent / "bara"


def start(folder, engine, rounds):
    """A run as a process of its own."""
    settings = {
        "budget.max_rounds": rounds,
        "budget.total": 7.5 * rounds,
        "federation.engine": engine,
    }
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [BARA, "run", "--out", folder, "--set", "allocator.name=even", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def settled(folder):
    """When each round was settled, by the ledger's own clock."""
    out = subprocess.run(
        [BARA, "ledger", folder, "export"], capture_output=True, check=True, text=True
    ).stdout
    return [
        datetime.fromisoformat(e["at"]).timestamp()
        for e in json.loads(out)["events"]
        if e["kind"] == "settled"
    ]


def processor_time(process):
    """Seconds of processor time that a process has taken so far."""
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def watch(client, address, delays):
    """One viewer; notes how late each message is."""
    async with client.stream("GET", f"{address}/events?after=-1") as stream:
        async for line in stream.aiter_lines():
            if (
                delays is not None
                and line.startswith("data: ")
                and "state" in (tree := json.loads(line[6:]))
            ):
                delays.append(time.time() - datetime.fromisoformat(tree["state"]["at"]).timestamp())


async def crowd(address, count, turns, length):
    """Let viewers come in every other turn.

    Returns when each turn ended, and how late news were after the first in a turn.
    """
    ends, late = [time.time()], []
    async with httpx2.AsyncClient(
        timeout=120, limits=httpx2.Limits(max_connections=None)
    ) as client:
        for turn in range(turns):
            delays = []
            present = (
                [watch(client, address, None if i else delays) for i in range(count)]
                if turn % 2
                else []
            )
            watching = asyncio.gather(*present)
            await asyncio.sleep(length)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            ends.append(time.time())
            late += delays[1:]
    return ends, late


def look_on(address, chosen):
    """The crowd in a process of its own: (when each turn ended, how late news were)."""
    command = [sys.executable, __file__, "--view", address]
    command += [f"--{name}={getattr(chosen, name)}" for name in ("viewers", "turns", "length")]
    # Viewers sit at machines of their own: here they get what run and server leave.
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.nice(19)
    )
    return json.loads(done.stdout)


def visible(address):
    """Wait until a run can be seen."""
    while httpx2.get(f"{address}.json").status_code != 200:
        time.sleep(0.2)


def measure(chosen, runs, server):
    """Turns with and without viewers; then a long run."""
    port = server.stdout.readline().strip().rstrip("/").rpartition(":")[2]
    address = f"http://127.0.0.1:{port}/runs"
    run = start(runs / "watched", chosen.engine, 1_000_000)
    try:
        visible(f"{address}/watched")
        before = processor_time(server)
        ends, late = look_on(f"{address}/watched", chosen)
        taken = processor_time(server) - before
    finally:
        run.kill()
        run.wait()
    times = settled(runs / "watched")
    speed = [sum(a <= at < b for at in times) / (b - a) for a, b in itertools.pairwise(ends)]
    print(
        "rounds a second, without and with viewers in turn:",
        " ".join(f"{one:.1f}" for one in speed),
    )
    # Each turn with viewers beside the mean of the turns before and after it.
    slower = [(speed[k - 1] + speed[k + 1]) / 2 / speed[k] - 1 for k in range(1, len(speed) - 1, 2)]
    error = statistics.stdev(slower) / len(slower) ** 0.5
    share = taken / (chosen.length * (chosen.turns // 2))
    print(
        f"{chosen.viewers} viewers: {100 * statistics.mean(slower):.1f} % slower (standard error "
        f"{100 * error:.1f}), "
        f"news at most {max(late):.2f} s late, the server took {100 * share:.1f} % of one core"
    )
    start(runs / "long", "synthetic", chosen.long).wait()
    begin = time.perf_counter()
    answer = httpx2.get(f"{address}/long.json", timeout=60)
    print(
        f"{chosen.long} rounds open in {time.perf_counter() - begin:.2f} s, "
        f"{len(answer.content) / 1000:.0f} kB"
    )


def main():
    """Measure, and print it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engine", default="simulator")
    options.add_argument("--viewers", type=int, default=100)
    options.add_argument(
        "--turns", type=int, default=11, help="without viewers and with, in turn; an odd number"
    )
    options.add_argument("--length", type=float, default=20, help="seconds of a turn")
    options.add_argument(
        "--long", type=int, default=10_000, help="rounds of the run whose opening is timed"
    )
    options.add_argument("--view", help="only be the crowd at this address")
    chosen = options.parse_args()
    if chosen.view:
        print(
            json.dumps(asyncio.run(crowd(chosen.view, chosen.viewers, chosen.turns, chosen.length)))
        )
        return
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary) / "runs"
        runs.mkdir()
        server = subprocess.Popen(
            [BARA, "dashboard", runs, "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        try:
            measure(chosen, runs, server)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
