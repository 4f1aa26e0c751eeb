"""Kills runs with SIGKILL and resumes them until they end, and checks that nothing was lost or paid twice.

    python tests/e2e/kill_many.py --kills 500
    python tests/e2e/kill_many.py --kills 100 --engine simulator

Half of the kills come at a named step of a round (`bara.faults`), several of them inside a transaction; the other
half at a random moment, from outside. Every run must end with the result of the undisturbed one, byte for byte.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bara.cli import app
from bara.experiments.run_folder import RunFolder
from bara.faults import POINTS
from bara.ledger import Receipt, verify
from bara.ledger.statements import statement

LOG = Path(tempfile.gettempdir()) / f"kill_many-{os.getpid()}.log"

CHANGES = {
    "synthetic": ["federation.engine=synthetic", "budget.total=40", "budget.max_rounds=10", "clients.count=6"],
    "simulator": [
        "federation.engine=simulator",
        "data.train_samples=300",
        "budget.total=60",
        "budget.max_rounds=8",
        "clients.count=6",
    ],
}
SLOW_TO_IMPORT = {"synthetic": [], "simulator": ["bara.experiments.simulation", "sklearn.datasets"]}
COMMON = ["clients.failure_rate=0.2", "clients.strategic=1", "clients.strategy=learner(0.1)"]


def start(arguments, fault=""):
    """The program as a process of its own; forked, so that five hundred of them need not import it again."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    os.environ["BARA_FAULT"] = fault
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    code = 1
    try:
        app(list(map(str, arguments)))
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def finish(process):
    """Its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def call(*arguments):
    code = finish(start(arguments))
    assert code == 0, f"bara {arguments} ended with {code}: {LOG.read_text()[-2000:]}"


def settings(engine, folder, retention):
    changes = [*CHANGES[engine], *COMMON, f"ledger.receipt={folder}.receipt", f"ledger.retention={retention}"]
    return [word for change in changes for word in ("--set", change)]


def sitting(arguments, rng, longest):
    """Start the program and kill it somewhere; returns where, or None if it came to its end first."""
    where = rng.choice(POINTS) if rng.random() < 0.5 else None
    process = start(arguments, f"{where}@{rng.randint(1, 3)}" if where else "")
    if where is None:
        time.sleep(rng.uniform(0, longest))
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    code = finish(process)
    if code == -signal.SIGKILL:
        return where or "a random moment"
    assert code == 0, f"bara {arguments} ended with {code}: {LOG.read_text()[-2000:]}"
    return None


def disturbed_run(folder, engine, retention, rng, longest, kills, most):
    """One run, killed until it ends by itself or enough kills are counted; then it is left in peace."""
    while True:
        started = (folder / "config.toml").exists()
        arguments = ["resume", folder] if started else ["run", "--out", folder, *settings(engine, folder, retention)]
        if sum(kills.values()) >= most:
            call(*arguments)
            return
        where = sitting(arguments, rng, longest)
        if where is None:
            return
        kills[where] += 1


def check(folder, undisturbed):
    """The same result byte for byte, a whole ledger that fits its receipt, and an account that adds up."""
    assert (folder / "result.json").read_bytes() == (undisturbed / "result.json").read_bytes(), "another result"
    for model in undisturbed.glob("model-*.npz"):
        assert (folder / model.name).read_bytes() == model.read_bytes(), f"another {model.name}"
    with RunFolder.find(folder) as found:
        books = found.open_books()
        finding = verify(books, Receipt.read(Path(f"{folder}.receipt")))
        assert finding.ok, finding
        account = statement(books)
    assert account.outstanding == 0
    assert account.spent == sum(client.paid for client in account.clients) == sum(r.paid for r in account.rounds)
    assert all(client.promised == client.paid + client.returned for client in account.clients)
    assert account.spent == round(json.loads((folder / "result.json").read_text())["spent"] * 1e6)


def kill_many(home, kills, engine, seed, retention="keep"):
    """Kill so often; returns how often each place was hit, and how many runs it took."""
    rng, hit, runs = random.Random(seed), Counter(), 0
    for module in SLOW_TO_IMPORT[engine]:  # here, once: a kill should meet a run at its work
        importlib.import_module(module)
    undisturbed = home / f"undisturbed-{engine}-{retention}"
    begun = time.monotonic()
    call("run", "--out", undisturbed, *settings(engine, undisturbed, retention))
    longest = time.monotonic() - begun
    while sum(hit.values()) < kills:
        runs += 1
        folder = home / f"{engine}-{retention}-{runs}"
        disturbed_run(folder, engine, retention, rng, longest, hit, kills)
        check(folder, undisturbed)
        print(f"\r{sum(hit.values())} kills in {runs} runs, nothing lost so far", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return hit, runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--engine", choices=list(CHANGES), default="synthetic")
    parser.add_argument("--retention", choices=["keep", "drop"], default="keep")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        hit, runs = kill_many(Path(home), chosen.kills, chosen.engine, chosen.seed, chosen.retention)
    LOG.unlink(missing_ok=True)
    minutes = (time.monotonic() - begun) / 60
    print(
        f"{sum(hit.values())} kills in {runs} runs, {minutes:.1f} minutes: every result identical, every ledger whole"
    )
    for where, times in hit.most_common():
        print(f"{times:6}  {where}")


if __name__ == "__main__":
    main()
