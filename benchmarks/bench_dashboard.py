"""What a dashboard costs a run: the same run alone and with 100 viewers, in turn; how long a long run takes to open.

The target: the run is less than 5 % slower, news arrive within two seconds, 10,000 rounds open in under two. On a busy
machine wall time says little; the processor time that run and server take says what they would cost on a quiet one.
"""

import argparse
import asyncio
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
    settings = {"budget.max_rounds": rounds, "budget.total": 7.5 * rounds, "federation.engine": engine}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [BARA, "run", "--out", folder, "--set", "allocator.name=even", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def seconds(folder):
    """From the first to the last settled round, by the ledger's own clock: the program's start is not part of it."""
    out = subprocess.run([BARA, "ledger", folder, "export"], capture_output=True, check=True, text=True).stdout
    settled = [datetime.fromisoformat(e["at"]) for e in json.loads(out)["events"] if e["kind"] == "settled"]
    return (settled[-1] - settled[0]).total_seconds()


def processor_time(process):
    """Seconds of processor time that a process has taken so far."""
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def watch(client, address, delays):
    """One viewer to the end of the run; notes how late each message is."""
    async with client.stream("GET", f"{address}/events?after=-1") as stream:
        async for line in stream.aiter_lines():
            if delays is not None and line.startswith("data: "):
                at = datetime.fromisoformat(json.loads(line[6:])["state"]["at"]).timestamp()
                delays.append(time.time() - at)


async def viewers(address, count, delays):
    """So many viewers, once the run can be seen; one of them notes how late messages are."""
    async with httpx2.AsyncClient(timeout=120, limits=httpx2.Limits(max_connections=None)) as client:
        for _ in range(300):
            if (await client.get(f"{address}.json")).status_code == 200:
                break
            await asyncio.sleep(0.2)
        await asyncio.gather(*(watch(client, address, None if i else delays) for i in range(count)))


def played(folder, chosen, server=None, port=0):
    """(seconds, processor time) of a run; with a server, 100 viewers in a process of their own look on."""
    run = start(folder, chosen.engine, chosen.rounds)
    if server is not None:
        before, begin = processor_time(server), time.perf_counter()
        address = f"http://127.0.0.1:{port}/runs/{folder.name}"
        # Viewers sit at machines of their own: here they get what run and server leave.
        command = ["nice", "-n", "19", sys.executable, __file__, "--view", address, "--viewers", str(chosen.viewers)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        share = (processor_time(server) - before) / (time.perf_counter() - begin)
        print(f"{said}; the server took {100 * share:.1f} % of one core")
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    return seconds(folder), usage.ru_utime + usage.ru_stime


def main():
    """Measure, and print it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engine", default="simulator")
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--viewers", type=int, default=100)
    options.add_argument("--long", type=int, default=10_000, help="rounds of the run whose opening is timed")
    options.add_argument("--view", help="only watch this address")
    chosen = options.parse_args()
    if chosen.view:
        delays = []
        asyncio.run(viewers(chosen.view, chosen.viewers, delays))
        late = max(delays[1:], default=0)  # the first is as old as the round it found
        print(f"{chosen.viewers} viewers: {len(delays)} messages, at most {late:.2f} s late")
        return
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary) / "runs"
        runs.mkdir()
        server = subprocess.Popen([BARA, "dashboard", runs, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            measure(chosen, runs, server)
        finally:
            server.terminate()
            server.wait()


def measure(chosen, runs, server):
    """Alone, watched, alone again; then a long run."""
    port = server.stdout.readline().strip().rstrip("/").rpartition(":")[2]
    walls, processors = [], []
    for k in range(chosen.repeats):
        first = played(runs / f"alone{k}", chosen)
        watched = played(runs / f"watched{k}", chosen, server, port)
        again = played(runs / f"again{k}", chosen)
        walls.append(2 * watched[0] / (first[0] + again[0]))
        processors.append(2 * watched[1] / (first[1] + again[1]))
        print(f"alone {first[0]:.2f} and {again[0]:.2f} s, watched {watched[0]:.2f} s: ratio {walls[-1]:.3f}")
    print(f"median ratio: wall time {statistics.median(walls):.3f}, processor time {statistics.median(processors):.3f}")
    start(runs / "long", "synthetic", chosen.long).wait()
    begin = time.perf_counter()
    answer = httpx2.get(f"http://127.0.0.1:{port}/runs/long.json", timeout=60)
    print(f"{chosen.long} rounds open in {time.perf_counter() - begin:.2f} s, {len(answer.content) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
