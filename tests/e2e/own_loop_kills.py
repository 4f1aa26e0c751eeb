"""Kills a program of one's own, and whoever pays out its batches, again and again:
nothing is lost, nothing doubled.

python tests/e2e/own_loop_kills.py --kills 200
python tests/e2e/own_loop_kills.py --kills 200 --url postgresql+psycopg://...

Two processes work on one run at once: the loop (`bara.open_session`: ask, award, settle)
acknowledges each settled round into a file of its own, and a cashier makes batches and writes each
into a file that must not be there yet. Both are killed at random moments and at named points,
inside transactions too, and started again; when the run has ended, another begins. In the end the
books are whole, every acknowledged round is in them as it was acknowledged, each batch was exported
once, and all of it is what an undisturbed run comes to.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from decimal import Decimal
from pathlib import Path

import forks
from fault_points import POINTS

import bara
from bara.errors import LedgerError
from bara.ledger import verify
from bara.ledger.payouts import batch_csv, batches, new_batch
from bara.ledger.statements import statement
from bara.runs.database import DatabaseRun
from bara.runs.session import OwnLoop

ROUNDS = 400
CLIENTS = [f"silo-{number}" for number in range(8)]
IN_A_ROUND = [
    point
    for point in POINTS
    if point in {"bids opened", "promising", "promised", "trained", "settling", "settled"}
]


def config(url):
    """Money in cents, a key, and a cap, on any database; batches of any size without a receipt."""
    return {
        "budget": {"total": 40_000, "currency": "EUR", "max_rounds": ROUNDS},
        "clients": {"count": len(CLIENTS)},
        "allocator": {"name": "even", "carry_over": True},
        "ledger": {"url": url, "key": "LOOP_KEY", "client_cap": 9_000, "receipt_above": 40_000},
    }


def bids(number):
    return {name: f"{random.Random(f'{name} in {number}').uniform(5, 40):.2f}" for name in CLIENTS}


def failing(number, winners):
    return {
        name: "it did not answer"
        for name in winners
        if random.Random(f"{number} {name}").random() < 0.1
    }


def step(session):
    """One round, which depends on nothing but its number; False once the run has ended."""
    if not (session.ask() and (award := session.award(bids(session.round)))):
        return None
    return session.settle(
        1 - 1 / (session.round + 1) if award.n else None, void=failing(session.round, award.clients)
    )


def play(url, folder):
    """The loop: a line of its own file for each settled round, once it is settled."""
    with (
        (folder / f"acks-{os.getpid()}").open("a") as acks,
        bara.open_session(folder.name, config(url)) as session,
    ):
        session.begin(0.1)
        while (record := step(session)) is not None:
            acks.write(f"{record.round} {record.paid}\n")
            acks.flush()
    (folder / "ended").touch()


def pay_out(url, folder):
    """The cashier: makes batches of what is due, and writes each that is in no file yet.

    Until the run has ended.
    """
    with DatabaseRun.of(folder.name, config(url)) as place:
        books = place.open_books()
        while True:
            ended = books.ended() is not None  # before: what is settled later is for the next look
            with contextlib.suppress(LedgerError):  # nothing is due
                new_batch(books)
            for batch in batches(books):
                file = folder / f"batch-{batch.number}.csv"
                if not file.exists():
                    export(file, batch_csv(books, batch))
            if ended:
                return
            time.sleep(0.02)


def export(file, text):
    """A file that is there as a whole or not at all; a second one of the same name is an error."""
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(text)
    os.link(draft, file)
    draft.unlink()


def start(work, url, folder, dice):
    """A process that does this, and when to kill it, unless it dies at a named point before."""
    fault = f"{dice.choice(IN_A_ROUND)}@{dice.randint(1, 6)}" if dice.random() < 0.5 else ""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ["BARA_FAULT"] = fault
            work(url, folder)
            code = 0
        except BaseException:  # noqa: BLE001 - what the interpreter itself would do
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid, time.monotonic() + (4.0 if fault else dice.uniform(0.02, 3.0))


def ended(pid, at):
    """Kill it when its time has come; how it ended."""
    while time.monotonic() < at and not os.waitid(
        os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
    ):
        time.sleep(0.003)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in {0, -signal.SIGKILL}, f"a process ended with {code}"
    return code


def undisturbed():
    """What each client is paid when nobody is killed."""
    session = bara.Session(
        bara.ALLOCATORS.build("even", {"carry_over": True}),
        bara.mechanisms.client_cap.ClientCap(bara.MECHANISMS.build("turns"), bara.money(9_000)),
        OwnLoop(),
    )
    session.start(bara.Purse.of(40_000, ROUNDS, "EUR"))
    session.begin(0.1)
    paid = {}
    while (record := step(session)) is not None:
        for client, amount in record.payments.items():
            paid[client] = paid.get(client, 0) + amount
    return paid


def check(url, folder):
    """Everything that is promised; returns what was there."""
    with DatabaseRun.of(folder.name, config(url)) as place:
        books = place.open_books()
        finding, account, made = verify(books), statement(books), batches(books)
        assert finding.ok, finding
        rounds = {one.round: one.paid for one in account.rounds}
        acknowledged = [
            tuple(map(int, line.split()))
            for file in folder.glob("acks-*")
            for line in file.read_text().splitlines()
        ]
        assert len({number for number, _ in acknowledged}) == len(acknowledged), (
            "a round was settled twice"
        )
        assert all(rounds[number] == paid for number, paid in acknowledged), (
            "an acknowledged round is lost"
        )
        assert {one.client: one.paid for one in account.clients if one.paid} == undisturbed(), (
            "somebody is paid otherwise"
        )
        files = {file.name: file.read_text() for file in folder.glob("batch-*.csv")}
        assert files == {f"batch-{one.number}.csv": batch_csv(books, one) for one in made}, (
            "a batch is missing or differs"
        )
        cells = [line.split(",") for text in files.values() for line in text.splitlines()[1:]]
        assert sum(Decimal(cell[1]) for cell in cells) * 1_000_000 == account.spent, (
            "exports do not add up"
        )
        assert account.ended is not None
    return len(acknowledged), len(made)


def scene(url, dice, most):
    """One run, from its beginning to its end, through so many kills at most.

    Returns kills, rounds and batches.
    """
    kills = 0
    with tempfile.TemporaryDirectory(prefix="bara-loop-") as name:
        folder = Path(name)
        url = url or f"sqlite:///{folder}/books.db"
        assert forks.play(open_books, url, folder) == 0
        while kills < most and not (folder / "ended").exists():
            both = [start(work, url, folder, dice) for work in (play, pay_out)]
            kills += sum(
                ended(*one) == -signal.SIGKILL for one in sorted(both, key=lambda one: one[1])
            )
        for work in (play, pay_out):
            assert forks.play(work, url, folder, seconds=600) == 0, f"{work.__name__} does not end"
        return kills, *check(url, folder)


def open_books(url, folder):
    """The run has to be there before the cashier looks for it."""
    with bara.open_session(folder.name, config(url)) as session:
        session.begin(0.1)


def main():
    """Kill so often, run after run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--url", help="a database; a SQLite file unless given, $VARIABLE for one in the environment"
    )
    options = parser.parse_args()
    url = os.path.expandvars(options.url) if options.url else None
    os.environ["LOOP_KEY"] = "secret"
    forks.prepare(*(["postgres"] if url else []))
    dice, sums = random.Random(options.seed), [0, 0, 0]
    while sums[0] < options.kills:
        sums = [
            sum(pair) for pair in zip(sums, scene(url, dice, options.kills - sums[0]), strict=True)
        ]
    kills, rounds, made = sums
    told = f"{kills} kills, {rounds} rounds acknowledged, {made} batches"
    sys.stdout.write(f"{told}: nothing was lost or doubled, each batch was exported once\n")


if __name__ == "__main__":
    main()
