"""A simulator of misfortune: all that can befall a run, in one process and from one seed.

    python tests/e2e/misfortune.py --count 20000
    python tests/e2e/misfortune.py --seed 4711 --count 1 --told

Players, operators, cashiers and their bank work on one run: the real session, ledger, payouts and
reconciliation, each step one public call. Clients are entered and struck off, payments corrected,
awards approved by one person or two, and transfers come back. Wherever a call reaches its store or
a fault point, another actor may act in between, the call may fail (before or after its commit), its
process may die, or the power go, which loses what was not synced. While the power is off, an older
state may be put back and the receipt lost, the folder copied, or the whole disk, whose twin a
cashier works on. One client bids what nobody can pay. The clock jumps, also backwards. One seed
fixes all of it.


In the end misfortune ceases, and the run must come to its end: nobody was paid twice, nothing that
was acknowledged is lost, every decision is the undisturbed one, nobody wins who is not known, every
cent is in exactly one of due, batched, transferred and corrected, and the record verifies and
replays.
"""

import argparse
import contextlib
import copy
import gc
import json
import multiprocessing
import os
import random
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import bara
import bara.ledger.books
import bara.runs.session
from bara.errors import ConfigError, LedgerError, RunStoppedError, WaitingError
from bara.ledger import Receipt, Store, _events, operators, store
from bara.ledger.bank import reconcile
from bara.ledger.corrections import correct
from bara.ledger.decisions import decisions
from bara.ledger.operators import require_place
from bara.ledger.payouts import batches, new_batch, reference_of, returned, transfers
from bara.ledger.statements import statement, stored_corrections
from bara.market import Market
from bara.records import Award, Delivery, Evaluation, Evidence, show_money
from bara.runs.config import Config
from bara.runs.database import DatabaseRun
from bara.runs.factory import build_allocator, build_mechanism
from bara.runs.replay import replay

RUN = "spring"
CLIENTS = ("ann", "bob", "cat", "dan")
LIAR = "eve"
STRANGER = "sly"
"""Who bids less than everybody and is never entered in a register."""
PEOPLE = ("anna", "ANNA", "berta")
"""Two people, one of whom is spelled in two ways."""
FILES = ("books.db", "books.db-wal")
TOP_UP = 4_000_000
LONGEST = 60
"""Turns in which a run must come to its end once misfortune has ceased."""


class Killed(BaseException):
    """The process of an actor dies here."""


class PowerCut(BaseException):
    """All processes die here, and what was not synced is lost."""


class Broken(BaseException):
    """A promise of bara's is broken. No code under test catches it."""


class Disk:
    """The folders of a run and of its receipt, and what a power cut would leave of them."""

    def __init__(self, home, template):
        self.places = [home / "run"]
        self.twins = []  # what nobody can tell from the first place
        self.identity = None
        self.second = home / "second"
        self.receipt = self.second / "receipt.json"
        self.second.mkdir()
        self.places[0].mkdir()
        shutil.copyfile(template, self.places[0] / FILES[0])
        self._synced = {}  # by inode: how many bytes of a file are certainly on the disk
        self._named = None  # the receipt whose name is certainly on the disk
        self.newest = None  # what is to be put back, while an older state is in its place

    def sync(self, descriptor):
        """Note what `os.fsync` has brought to the disk."""
        status = os.fstat(descriptor)
        self._synced[status.st_ino] = status.st_size
        if status.st_ino == self.second.stat().st_ino and self.receipt.exists():
            self._named = self.receipt.read_bytes()

    def sync_log(self, path):
        """Note that a commit has brought a database's log to the disk."""
        with contextlib.suppress(FileNotFoundError):
            status = path.with_name(path.name + "-wal").stat()
            self._synced[status.st_ino] = status.st_size

    def content(self):
        """Every file as the programs see it; None for one that is not there."""
        files = [place / name for place in self.places for name in FILES]
        return {path: _read(path) for path in (*files, self.receipt)}

    def after_a_cut(self, dice):
        """Every file as a power cut leaves it: of what was not synced, a random part."""
        left = self.content()
        for path, content in left.items():
            if content is None:
                continue
            if path.name == FILES[1] or path == self.receipt:
                synced = min(self._synced.get(path.stat().st_ino, 0), len(content))
                left[path] = content[: dice.randint(synced, len(content))]
        if left[self.receipt] != self._named and dice.random() < 0.5:
            left[self.receipt] = self._named
        return left

    def put(self, content):
        """Put files onto the disk as they were; the databases keep their identity."""
        for path, old in content.items():
            if old is None:
                path.unlink(missing_ok=True)
                continue
            path.write_bytes(old)
            self._synced[path.stat().st_ino] = len(old)
        self._named = _read(self.receipt)
        for place in self.places:
            (place / "books.db-shm").unlink(missing_ok=True)

    def copy(self):
        """Copy the run's folder, as a backup that is started in another place."""
        self.places.append(self.places[0].with_name(f"copy-{len(self.places)}"))
        shutil.copytree(self.places[0], self.places[-1])

    def copy_blocks(self):
        """Copy the whole disk, with everything by which a program could know it again."""
        self.twins.append(self.places[0].with_name("twin"))
        shutil.copytree(self.places[0], self.twins[0])


def _read(path):
    return path.read_bytes() if path.exists() else None


class Actor:
    """A program or a person: public calls one after another, and the place they are made at."""

    def __init__(self, name, work):
        self.name, self.work, self.steps = name, work, None


class Schedule:
    """One run, and all that befalls it by this seed."""

    playing = None  # the schedule whose misfortune the patched code meets

    def __init__(self, seed, home, template):
        self.dice = dice = random.Random(seed)
        self.seed = seed
        self.broken = None  # the promise that was broken
        self.told = []
        self.figures = Counter()
        self.disk = Disk(home, template)
        self.clients = CLIENTS[: dice.randint(2, 4)]
        self.tree = self._terms()
        self._configs = {}
        self.commands = ["pause", "continue"]
        for command in ("top_up", "decline", "void", "adopt"):
            if dice.random() < 0.3:
                self.commands.append(command)
        if "approve_above" in self.tree["ledger"]:
            self.commands += ["approve", "approve"]
        if "clients" in self.tree["ledger"]:
            self.commands += ["register", "strike_off"]
        if dice.random() < 0.5:
            self.commands += ["correct", "correct"]
        self._bounces = dice.choice([0, 0, 0.2])  # how often a transfer comes back
        kinds = ["between", "between", "error", "error", "kill", "power"]
        self._misfortunes = dice.sample(kinds, dice.randint(2, len(kinds)))
        self._cuts = dice.choice([0.03, 0.03, 0.3])  # how often the power goes between two calls
        self._rarity = dice.choice([8, 20, 60])
        self._next = 1 + int(dice.expovariate(1 / self._rarity))
        self.calm = False
        self.dead = None  # what ends the processes that are ending at this moment
        self.image = self.backup = None
        self.seconds = 0.0
        self.processes = 0
        self.actors = [
            Actor("player", self._play),
            Actor("another player", self._play),
            Actor("operator", self._operate),
            Actor("cashier", self._pay_out),
            Actor("another cashier", self._pay_out),
        ]
        self._often = [*self.actors, *self.actors[:3], self.actors[0]]
        self._acting = []
        # What was acknowledged: a call that said so has returned.
        self.awards, self.settled, self.bank = {}, {}, {}
        self.moved = {}  # every transfer that the bank has made: its amount, by reference
        self.bounced = {}  # those of them that came back: batch and client, by reference
        self.planned = {}  # each correction that was tried: round, client and amount, by its name
        self.corrected, self.registered = set(), []
        self.tried, self.done = Counter(), Counter()
        self.waiting = False  # whether a program has stopped at an award that waits
        self.taken_back = set()
        self.adopted = set()

    def _terms(self):
        dice = self.dice
        ledger = {"retention": dice.choice(["keep", "keep", "drop"])}
        if dice.random() < 0.8:
            ledger["receipt"] = str(self.disk.receipt)
        if dice.random() < 0.3:
            ledger["key"] = "BARA_MISFORTUNE_KEY"
        if dice.random() < 0.5:
            ledger["client_cap"] = 6
        if dice.random() < 0.4:
            ledger["approve_above"] = dice.choice([3, 7])
            ledger["approvals"] = dice.choice([1, 2])
        if dice.random() < 0.4:
            known = self.clients[dice.choice([0, 0, 1]) :]
            ledger["clients"] = {client: {"limit": dice.choice([5, 50])} for client in known}
        if dice.random() < 0.03:
            ledger["url"] = dice.choice(["sqlite://", "sqlite:///:memory:"])
            ledger.pop("receipt", None)  # with one, nobody could open them
        if "receipt" not in ledger:
            ledger["receipt_above"] = dice.choice([0.000001, 10_000])
        return {
            "budget": {"total": dice.choice([14, 24]), "max_rounds": dice.randint(1, 3)},
            "clients": {"count": len(self.clients)},
            "allocator": {"name": "even", "carry_over": dice.random() < 0.5},
            "mechanism": dice.choice(["turns", "bid-price-first"]),
            "ledger": ledger,
        }

    def config(self, place):
        """The configuration of the run as whoever works at this place has it."""
        if place not in self._configs:
            ledger = {"url": f"sqlite:///{place}/{FILES[0]}", **self.tree["ledger"]}
            self._configs[place] = Config.parse({**self.tree, "ledger": ledger})
        return self._configs[place]

    @property
    def durable(self):
        """Whether the books are in a file; other ones must be refused."""
        return "url" not in self.tree["ledger"]

    def say(self, what):
        who = self._acting[-1].name if self._acting else "all"
        self.told.append(f"{who}: {what}")

    def require(self, holds, promise):
        if not holds:
            raise Broken(promise)

    # --- what befalls the run --------------------------------------------------------------------

    def moment(self, where, written=None):
        """Let misfortune happen at this moment, if it is time.

        Only a power cut comes while a log that was `written` is not on the disk yet.
        """
        what = self._misfortune()
        if written is not None and what != "power":
            self.disk.sync_log(written)
        if what is not None:
            self.say(f"{what} at {where!r}")
            self.figures[what] += 1
        match what:
            case "between":
                others = [actor for actor in self.actors if actor not in self._acting]
                if others and len(self._acting) < 3:
                    other = self.dice.choice(others)
                    for _ in range(self.dice.randint(1, 5)):
                        self.turn(other)
            case "error":
                raise LedgerError(f"misfortune at {where}")
            case "kill":
                self.dead = Killed()
                raise self.dead
            case "power":
                self._cut_power()

    def _misfortune(self):
        """Return what befalls the run at this moment, if anything does."""
        if self.dead is not None:
            raise self.dead  # a process that is ending does nothing any more
        if self.calm or not self._acting:
            return None
        self._next -= 1
        if self._next > 0:
            return None
        self._next = 1 + int(self.dice.expovariate(1 / self._rarity))
        return self.dice.choice(self._misfortunes)

    def _cut_power(self):
        self.say("the power goes")
        self.image = self.disk.after_a_cut(self.dice)
        self.dead = PowerCut()
        raise self.dead

    def turn(self, actor):
        """Let an actor make its next call; one whose program has ended starts it again."""
        self._acting.append(actor)
        try:
            if actor.steps is None:
                actor.steps = actor.work()
            next(actor.steps)
        except StopIteration:
            actor.steps = None
        except Killed:
            actor.steps = self.dead = None
        finally:
            self._acting.pop()

    def _power_off(self):
        """End every process, and leave on the disk what the cut has left."""
        for actor in self.actors:
            if actor.steps is not None:
                with contextlib.suppress(Killed, PowerCut):
                    actor.steps.close()
                actor.steps = None
        self.dead = None
        self.disk.put(self.image)
        if not self.calm:
            kinds = ["older", "older", "older", "put back", "copy", "twin", "twin", None]
            self._while_off(self.dice.choice(kinds))

    def _while_off(self, what):
        disk = self.disk
        if what == "older" and self.backup is None:
            what = "backup"
        if what == "backup" and disk.newest is None:
            self.backup = {path: disk.content()[path] for path in self._originals()}
        elif what == "older" and self._can_go_back():
            disk.newest = disk.content()
            disk.put(self.backup)
            if self.dice.random() < 0.7:
                disk.receipt.unlink()
        elif what == "put back" and disk.newest is not None:
            self._put_back()
        elif what == "copy" and len(disk.places) == 1 and disk.newest is None:
            disk.copy()
        elif what == "twin" and self._can_have_a_twin():
            disk.copy_blocks()
        else:
            return
        self.figures[what] += 1
        self.say(f"{what} while the power is off")

    def _originals(self):
        return [self.disk.places[0] / name for name in FILES]

    def _can_go_back(self):
        """Whether the backup is older than what the receipt covers, and nothing else is tried."""
        disk = self.disk
        if self.backup is None or disk.newest is not None or not disk.receipt.exists():
            return False
        # A copy from before the run was opened begins a run of its own, which nobody can notice.
        return 0 < _events_in(self.backup.values()) < Receipt.read(disk.receipt).events

    def _can_have_a_twin(self):
        """Whether no batch may be made without a receipt, and there is none."""
        disk = self.disk
        if disk.twins or disk.identity is None or disk.newest is not None:
            return False
        return self.tree["ledger"].get("receipt_above", 1) < 1

    def _put_back(self):
        content = self.disk.newest
        self.disk.newest = None
        self.disk.put(content)

    # --- what was acknowledged -------------------------------------------------------------------

    def acknowledge(self, what):
        """Note that a call has said that something is done."""
        self.say(what)
        self.figures["acknowledged"] += 1
        self.require(self.durable, f"{what}, in books that nobody can keep")
        self.require(self.disk.newest is None, f"{what}, from an older state of the books")

    def _promised(self, number, award):
        self.acknowledge(f"round {number} is promised")
        self.waiting = False
        known = self.awards.setdefault(number, award)
        if number in self.taken_back and not award.n:
            self.awards[number] = award
        else:
            self.require(known == award, f"round {number} was promised twice: {known}, {award}")

    def _settled(self, record):
        number = record.round
        self.acknowledge(f"round {number} is settled: {record.payments}")
        self.require(number not in self.settled, f"round {number} was settled twice")
        self.settled[number] = record.payments

    def _transfer(self, books, batch):
        self.acknowledge(f"batch {batch.number} is transferred: {batch.payments}")
        for other in self.bank.values():
            rounds = set(range(batch.first, batch.last + 1))
            apart = rounds.isdisjoint(range(other.first, other.last + 1))
            self.require(apart, f"batches {other.number} and {batch.number} pay the same rounds")
        self.bank[batch.number] = batch
        for place, (client, amount, _) in enumerate(batch.payments, 1):
            reference = reference_of(books, batch.number, place)
            self.require(reference not in self.moved, f"{reference} was transferred twice")
            self.moved[reference] = amount
            if self.dice.random() < self._bounces:
                self.bounced[reference] = (batch.number, client)

    # --- the actors ------------------------------------------------------------------------------

    def _insist(self, call):
        """Make a call again while it fails, as a program that retries does; it may give up."""
        for _ in range(3):
            try:
                return call()
            except LedgerError as error:
                self.say(f"error: {error}")
                if not self.calm and self.dice.random() < 0.3:
                    raise
            yield
        return call()

    def _somewhere(self):
        return self.dice.choice([self.disk.places[0], *self.disk.places])

    def _play(self, place=None):
        """A program of one's own: ask, award, settle, until the run ends or the program does."""
        place = place or self._somewhere()
        self.processes += 1
        try:
            with bara.open_session(RUN, self.config(place)) as session:
                self.say(f"plays in {place.name}")
                self._look_for_dropped_bids(place, session.round)
                yield from self._insist(partial(session.begin, 0.1))
                while True:
                    yield
                    if (yield from self._insist(session.ask)) is None:
                        break
                    number = session.round
                    award = yield from self._insist(lambda: session.award(self._bids(number)))  # noqa: B023 - called at once
                    if award is None:
                        break
                    self._promised(number, award)
                    yield
                    record = yield from self._insist(partial(self._settle, session, award))
                    self._settled(record)
                self.done["end"] += 1
        except (LedgerError, ConfigError, RunStoppedError) as error:
            if isinstance(error, WaitingError):
                self.waiting = True
            self.say(f"stops: {error}")
            self.require(not (self.calm and isinstance(error, ConfigError)), str(error))

    def _bids(self, number):
        """What is asked in a round; whoever is asked again asks something else."""
        again = 0
        if self.tree["ledger"]["retention"] == "keep" and not self.calm:
            again = self.dice.randint(0, 2)
        prices = {}
        for place, client in enumerate(self.clients):
            price = 2.0 + 0.5 * ((7 * number + 3 * place + self.seed) % 5) + 0.25 * again
            prices[client] = f"{price:.2f}"
        prices[LIAR] = _lie(number)
        if self.tree["ledger"]["retention"] == "keep":
            prices[LIAR] = self.dice.choice([_lie(number), "80,50", -3, 1e12, float("nan"), None])
        if "clients" in self.tree["ledger"]:
            prices[STRANGER] = "0.50"
        return prices

    def _look_for_dropped_bids(self, place, number):
        """Require that no file holds a bid that was dropped before the books were opened."""
        if self.tree["ledger"]["retention"] == "keep" or len(self._acting) > 1:
            return
        content = b"".join(_read(place / name) or b"" for name in FILES)
        for settled in range(1, number):
            lie = str(bara.money(_lie(settled))).encode()
            self.require(lie not in content, f"a dropped bid of round {settled} is on the disk")

    def _delivery(self, number, award):
        """What comes of a round's training, which depends on nothing but the round."""
        void = {}
        for place, client in enumerate(award.clients):
            if (5 * number + 11 * place + self.seed) % 6 == 0:
                void[client] = "it did not answer"
        delivered = {client: Evidence() for client in award.clients if client not in void}
        return Delivery(Evaluation(0.1 + 0.1 * number), delivered, void)

    def _settle(self, session, award):
        if not award.n:
            return session.settle()
        return session.settle(self._delivery(session.round, award))

    def _operate(self):
        """An operator: one command, at the run or, to adopt it, at a copy."""
        place = self._somewhere()
        what = self._wanted()
        if (place != self.disk.places[0] and place not in self.adopted) != (what == "adopt"):
            return
        if what == "correct":
            self._stop_players()
        try:
            with DatabaseRun.of(RUN, self.config(place)) as run:
                held = what in {"void", "correct"}
                books = run.hold_books() if held else run.open_books()
                if self.dice.random() < 0.5:
                    yield
                self.tried[what] += 1
                yield from self._insist(partial(self._command, books, what))
        except (LedgerError, ConfigError) as error:
            self.say(f"{what} is refused: {error}")
            self.figures[f"{what}, refused or failed"] += 1
            return
        self.done[what] += 1
        self.figures[f"{what}, done"] += 1
        self.acknowledge(f"{what} in {place.name}")
        if what == "adopt":
            self.adopted.add(place)

    def _wanted(self):
        """A command; mostly one that makes sense now."""
        useful = []
        if self.waiting:
            useful += ["approve", "approve", "decline"]
        if any(self.settled.values()):
            useful += ["correct"]
        elif not self.settled:
            useful += ["strike_off", "register"]
        useful = [command for command in useful if command in self.commands]
        if useful and self.dice.random() < 0.7:
            return self.dice.choice(useful)
        return self.dice.choice(self.commands)

    def _stop_players(self):
        """End the programs that play, as whoever wants to correct a payment does."""
        for actor in self.actors:
            if "player" in actor.name and actor not in self._acting and actor.steps is not None:
                with contextlib.suppress(Killed):
                    actor.steps.close()
                actor.steps = self.dead = None

    def _command(self, books, what):
        number = books.last_round() + 1
        if what in {"decline", "void"}:
            self.taken_back.add(number)
        match what:
            case "top_up":
                operators.top_up(books, TOP_UP, once=f"top-up {self.done[what]}")
            case "void":
                operators.void(books, number, "the training fails")
            case "approve" | "decline":
                getattr(operators, what)(books, number, by=self.dice.choice(PEOPLE))
            case "register" | "strike_off":
                client = self.dice.choice(self.clients)
                begins = getattr(operators, what)(books, client)
                self.registered.append((what == "register", client, begins))
            case "correct":
                self._correct(books)
            case "continue":
                operators.let_go_on(books)
            case "pause" | "adopt":
                getattr(operators, what)(books)

    def _correct(self, books):
        """Correct a payment; a correction that may not be stored is tried again by its name."""
        again = [name for name in self.planned if name not in self.corrected]
        if again and self.dice.random() < 0.5:
            name = self.dice.choice(again)
        else:
            name = f"correction {len(self.planned) + 1}"
            paid = [(number, one) for number, some in self.settled.items() for one in some]
            amount = self.dice.choice([-2_000_000, -1_250_000, -500_000, 250_000, 1_000_000])
            self.planned[name] = (*self.dice.choice(paid or [(1, self.clients[0])]), amount)
        self._correct_as_planned(books, name)

    def _correct_as_planned(self, books, name):
        correct(books, *self.planned[name], once=name, again=True)
        self.corrected.add(name)
        self.figures["corrections"] += 1

    def _pay_out(self):
        """A cashier: makes a batch of what is due, transfers each that is not yet, and reads what
        the bank says of them.
        """
        try:
            place = self.dice.choice([self._somewhere(), *self.disk.twins])
            with DatabaseRun.of(RUN, self.config(place)) as run:
                books = run.open_books()
                yield
                with contextlib.suppress(LedgerError):  # nothing is due
                    new_batch(books)
                yield
                for batch in batches(books):
                    known = self.bank.get(batch.number)
                    if known is None:
                        self._transfer(books, batch)
                    elif self.disk.newest is None:
                        self.require(known == batch, f"batch {batch.number} has changed")
                yield
                self._reconcile(books)
        except (LedgerError, ConfigError) as error:
            self.say(f"cannot pay out: {error}")

    def _reconcile(self, books):
        """Say which transfers came back, and read the bank's statement in."""
        back = {one["reference"] for one in transfers(books) if one["returned"]}
        for reference, (number, client) in list(self.bounced.items()):
            if reference not in back:
                returned(books, number, [client])
                self.acknowledge(f"{reference} came back")
                self.figures["transfers that came back"] += 1
        rows = ["reference,amount", "rent,-800"]
        rows += [f"{one},-{show_money(amount)}" for one, amount in self.moved.items()]
        rows += [f"{one},{show_money(self.moved[one])}" for one in self.bounced]
        file = self.disk.second / "statement.csv"
        file.write_text("\n".join(rows) + "\n")
        report = reconcile(books, file)
        if report.found:
            self.acknowledge(f"{len(report.found)} were found in the bank's statement")
        self.figures["transfers found"] += len(report.found)

    # --- the end ---------------------------------------------------------------------------------

    def play(self):
        """Play the schedule; raise `Broken` if a promise is."""
        Schedule.playing = self
        turns = self.dice.randint(4, 16)
        alone = self.dice.choice([0, 0, 1, 4, 4])  # turns of the first player before all others'
        for number in range(turns + alone):
            try:
                self.turn(self._whose_turn(early=number < alone))
                if self.dice.random() < self._cuts:
                    self._cut_power()
            except PowerCut:
                self._power_off()
        self._end()

    def _whose_turn(self, *, early):
        player, _, operator = self.actors[:3]
        if self.waiting and self.dice.random() < 0.5:
            return operator
        return player if early else self.dice.choice(self._often)

    def _end(self):
        """Let misfortune cease, let the run come to its end, and look at what was promised."""
        self.calm = True
        self.image = self.disk.content()
        self._power_off()
        if self.disk.newest is not None:
            self._put_back()
        if not self.durable:
            self.require(not self.awards, "books in memory were accepted")
            return
        for place in self.disk.places:
            if self._comes_to_its_end(place):
                self._check(place)
                return
        raise Broken("the run cannot go on")

    def _comes_to_its_end(self, place):
        """Return whether the run is played to its end at this place, and belongs there."""
        player = Actor("player", partial(self._play, place))
        self.done["end"] = 0
        for _ in range(LONGEST):
            self.turn(player)
            if self.done["end"]:
                return len(self.disk.places) == 1 or self._belongs(place)
            if player.steps is None:
                self._unblock(place)
        return False

    def _belongs(self, place):
        with DatabaseRun.of(RUN, self.config(place)) as run, contextlib.suppress(LedgerError):
            require_place(run.open_books())
            return True
        return False

    def _unblock(self, place):
        """Answer whatever the run waits for."""
        with DatabaseRun.of(RUN, self.config(place)) as run, contextlib.suppress(LedgerError):
            books = run.open_books()
            account = statement(books)
            for person in PEOPLE:
                with contextlib.suppress(LedgerError):  # who has approved it already
                    operators.approve(books, account.waiting or 0, by=person)
            if account.paused:
                operators.let_go_on(books)

    def _check(self, place):
        with DatabaseRun.of(RUN, self.config(place)) as run:
            books = run.hold_books()
            if "correct" in self.commands:
                with contextlib.suppress(LedgerError):  # nobody was paid, say
                    self._correct(books)
            for name in sorted(self.planned):
                with contextlib.suppress(LedgerError):  # it takes more than was paid, say
                    correct(books, *self.planned[name], once=name, again=True)
            for number in range(self.done["top_up"]):
                again = operators.top_up(books, TOP_UP, once=f"top-up {number}")
                self.require(not again, f"top-up {number} was added again")
            with contextlib.suppress(LedgerError):  # nothing is due
                new_batch(books, without_receipt=True)
            for batch in batches(books):
                if batch.number not in self.bank:
                    self._transfer(books, batch)
            self._bounces = 0  # from now on no transfer comes back
            if "correct" in self.commands and self.dice.random() < 0.3:
                with contextlib.suppress(LedgerError):  # too little is left of the budget, say
                    self._keep_back(books)
            self._reconcile(books)
            with contextlib.suppress(LedgerError):  # nothing came back
                self._transfer(books, new_batch(books, without_receipt=True))
            self._reconcile(books)
            made = batches(books)  # refuses a record that is not whole
            again = replay(books, plugins=True)  # looks for none, which would take long
            self.require(again.ok, f"replayed otherwise: {again}")
            records = list(books.history())
            self._check_decisions(records, books)
            self._check_acknowledged(records, books)
            self._check_people(records, books)
            self._check_money(records, made, books)
        self.figures["rounds"] += len(records)

    def _keep_back(self, books):
        """Take back what one client was transferred, pay another, and then the first again."""
        paid = [(number, one) for number, some in self.settled.items() for one in some]
        first = self.dice.choice(paid or [(1, self.clients[0])])
        others = [one for one in paid if one[1] != first[1]]
        other = self.dice.choice(others or [first])
        for who, amount in ((first, -1_000_000), (other, 250_000), (first, 500_000)):
            name = f"correction {len(self.planned) + 1}"
            self.planned[name] = (*who, amount)
            self._correct_as_planned(books, name)
            with contextlib.suppress(LedgerError):  # nothing is due
                self._transfer(books, new_batch(books, without_receipt=True))
        self.figures["debts kept back"] += 1

    def _check_decisions(self, records, books):
        """Compare every round with the market alone, which no store and no session disturbs."""
        config = self.config(self.disk.places[0])
        totals = {record.round: record.awarded.purse.total for record in records}
        later = Counter()
        for one in self._corrections(books):
            later[one.counts_from] += one.amount

        def before_round(purse):
            total = totals.get(purse.round, purse.total)
            return replace(purse, total=total, spent=purse.spent + later[purse.round])

        mechanism = build_mechanism(config)
        books.guide(mechanism)
        market = Market(build_allocator(config), mechanism, books.purse, before_round)
        market.tell(market.begin(Evaluation(0.1)))
        for record in records[1:]:
            number, known = record.round, record.awarded
            offer = market.ask()
            bids = known.opened if books.keeps_bids else bara.Bids.opened(self._bids(number))
            awarded = market.award(offer, bids.without({LIAR}))
            delivery = market.unchanged()
            if number in self.taken_back and not known.award.n:
                awarded = replace(awarded, award=Award(fell_short=awarded.award.fell_short))
            elif awarded.award.n:
                delivery = self._delivery(number, awarded.award)
            undisturbed = market.settle(awarded, delivery)
            market.tell(undisturbed)
            for what in ("offer", "award", "purse"):
                one, other = getattr(awarded, what), getattr(known, what)
                self.require(one == other, f"round {number}, undisturbed: {one}, not {other}")
            self.require(record.payments == undisturbed.payments, f"round {number} pays otherwise")
            self.require(record.delivery == delivery, f"round {number}: another delivery")

    def _check_acknowledged(self, records, books):
        rounds = {record.round: record for record in records}
        for number, award in self.awards.items():
            if number not in self.taken_back:
                kept = number in rounds and rounds[number].awarded.award == award
                self.require(kept, f"the promise of round {number} is lost")
        for number, payments in self.settled.items():
            kept = number in rounds and rounds[number].payments == payments
            self.require(kept, f"the settlement of round {number} is lost")
        stored = Counter((one.round, one.client, one.amount) for one in self._corrections(books))
        said = Counter(self.planned[name] for name in self.corrected)
        self.require(said <= stored, f"corrections said: {said}, stored: {stored}")
        tried = Counter(self.planned.values())
        self.require(stored <= tried, f"corrections tried: {tried}, stored: {stored}")
        added = len(books.bodies("topped up"))
        said = self.done["top_up"]  # the last one may be stored, but never be acknowledged
        self.require(said <= added <= said + 1, f"{said} top-ups said, {added} stored")

    @staticmethod
    def _corrections(books):
        with books.store.read() as connection:
            return stored_corrections(connection, books.chain.run)

    def _check_people(self, records, books):
        """Nobody wins who is not known, and two people have approved where two must."""
        changes = [json.loads(text) for text in books.bodies("registered", "struck off")]
        stored = [("entry" in one, one["client"], one["round"]) for one in changes]
        for change in self.registered:
            self.require(change in stored, f"the change {change} of the register is lost")
        for record in records:
            known = set(self.tree["ledger"].get("clients", self.clients))
            for entered, client, begins in stored:
                if begins <= record.round:
                    (known.add if entered else known.discard)(client)
            unknown = record.payments.keys() - known
            self.require(not unknown, f"{unknown} won round {record.round}")
        first = {}
        for one in decisions(books):
            if one.what == "endorsed":
                first[one.about] = one.by.casefold()
            elif one.what == "approved" and self.tree["ledger"]["approvals"] == 2:
                two = first.get(one.about, one.by.casefold())
                self.require(two != one.by.casefold(), f"{one.about} was approved by one person")

    def _check_money(self, records, made, books):
        """Every cent is due, batched, transferred or corrected, and only what is owed is paid."""
        for number, batch in self.bank.items():
            kept = number <= len(made) and made[number - 1] == batch
            self.require(kept, f"the transferred batch {number} is lost")
        payments = {record.round: record.payments for record in records}
        corrected = {one.number: one for one in self._corrections(books)}
        with books.store.read() as connection:
            events = list(books.chain.events(connection))
        owed, earned, paid = Counter(), Counter(), iter(made)  # owed: what is in no batch yet
        for event in events:
            if event.kind == "settled":
                owed.update(payments[event.round])
                earned.update(payments[event.round])
            elif event.kind == "corrected":
                owed[corrected[event.number].client] += corrected[event.number].amount
                earned[corrected[event.number].client] += corrected[event.number].amount
            elif event.kind == "returned":
                body = json.loads(event.body)
                for client, amount, _ in made[body["batch"] - 1].payments:
                    owed[client] += amount if client in body["clients"] else 0
            elif event.kind == "paid out":
                batch = next(paid)
                batched = {client: amount for client, amount, _ in batch.payments}
                due = dict(+owed)
                self.require(due == batched, f"{due} is due, and batch {batch.number}: {batched}")
                owed.subtract(batched)
        self.require(not +owed, f"{+owed} is in no batch")
        for one in transfers(books):
            reference = one["reference"]
            back = reference in self.bounced
            self.require(one["returned"] == back, f"whether {reference} came back is lost")
            self.require(one["transferred"] != "", f"the transfer of {reference} is lost")
            self.require(one["amount"] == self.moved[reference], f"{reference} has changed")
        self.require(len(self.moved) == sum(len(one.payments) for one in made), "other transfers")
        settled = earned.total()
        for one in corrected.values():
            settled -= one.amount if one.counts_from > records[-1].round else 0
        spent = records[-1].purse_after.spent
        self.require(spent == settled, f"{spent} was spent, {settled} paid")
        self.require(statement(books).spent == earned.total(), "the statement says another sum")


def _lie(number):
    """What one client asks in a round, more than anybody can pay, and nobody else."""
    return f"7000.0{number:05}"


def _events_in(content):
    """Return how many events a database holds, of which these are the file and its log."""
    with tempfile.TemporaryDirectory() as folder:
        for name, one in zip(FILES, content, strict=True):
            if one is not None:
                (Path(folder) / name).write_bytes(one)
        with contextlib.closing(sqlite3.connect(Path(folder) / FILES[0])) as connection:
            return connection.execute("SELECT COUNT(*) FROM events").fetchone()[0]


# --- what the code under test meets instead of its surroundings ----------------------------------


class Clock(datetime):
    """A clock that stands, runs, and jumps, also backwards."""

    @classmethod
    def now(cls, tz=None):
        playing = Schedule.playing
        playing.seconds += playing.dice.choice([0, 0.001, 1, 3600, -7200, 86400 * 40])
        return datetime(2026, 1, 31, tzinfo=tz or UTC) + timedelta(seconds=playing.seconds)


def _pass(point):
    Schedule.playing.moment(point)


def _write(entered):
    @contextlib.contextmanager
    def write(self):
        Schedule.playing.moment("begin")
        with entered(self) as connection:
            yield connection
            Schedule.playing.moment("commit")
            (level,) = connection.connection.execute("PRAGMA synchronous").fetchone()
            synced = level >= 2
        Schedule.playing.moment("committed", Path(self.place) if synced and self.place else None)

    return write


def _read_from(entered):
    @contextlib.contextmanager
    def read(self):
        Schedule.playing.moment("read")
        with entered(self) as connection:
            yield connection

    return read


def _identity(entered):
    def identity(self):
        disk = Schedule.playing.disk
        if Path(self.place or "").parent in disk.twins:
            return disk.identity
        found = entered(self)
        if Path(self.place or "").parent == disk.places[0]:
            disk.identity = found
        return found

    return identity


@contextlib.contextmanager
def surroundings():
    """Give the code under test its fake clock, its chance and its misfortune; yield a player.

    The player plays the schedule of a seed and returns it.
    """
    with ExitStack() as stack:
        memory = Path("/dev/shm")  # noqa: S108 - a disk in memory, where there is one
        home = tempfile.mkdtemp(prefix="misfortune-", dir=memory if memory.is_dir() else None)
        stack.callback(shutil.rmtree, home)
        template = Path(home) / "template.db"
        Store.in_file(template).close()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("BARA_MISFORTUNE_KEY", "correct-horse-battery-staple")
        patch.setattr(store, "_engine", partial(_light_engine, store._engine, {}))
        patch.setattr(Store, "_migrate", _skip_if_file(Store._migrate))
        patch.setattr(Store, "write", _write(Store.write))
        patch.setattr(Store, "read", _read_from(Store.read))
        patch.setattr(Store, "identity", _identity(Store.identity))
        for module in (bara.ledger.books, bara.runs.session):
            patch.setattr(module, "point", _pass)
        patch.setattr(_events, "datetime", Clock)
        patch.setattr(
            secrets, "token_hex", lambda n: f"{Schedule.playing.dice.getrandbits(8 * n):x}"
        )
        fsync = os.fsync
        patch.setattr(os, "fsync", lambda file: (fsync(file), Schedule.playing.disk.sync(file)))

        def play(seed):
            folder = Path(home) / "run"
            folder.mkdir()
            schedule = Schedule(seed, folder, template)
            try:
                schedule.play()
            except Exception as error:  # noqa: BLE001 - a fault of the code under test, or of this file
                schedule.broken = repr(error)
                traceback.print_exc()
            except Broken as broken:
                schedule.broken = str(broken)
            finally:
                for actor in schedule.actors:
                    schedule.dead = Killed()
                    if actor.steps is not None:
                        with contextlib.suppress(Killed):
                            actor.steps.close()
                shutil.rmtree(folder)
            return schedule

        yield play


def _skip_if_file(migrate):
    """Leave out the migration of a file, which is a copy of the template."""

    def migrate_memory(opened):
        if "/" not in str(opened.place):
            migrate(opened)

    return migrate_memory


def _light_engine(engine, made, url, _patience):
    """Make an engine that waits for no lock: one made before, with connections of its own."""
    if url not in made:
        made[url] = engine(url, 0.0)
    copied = copy.copy(made[url])
    copied.pool = made[url].pool.recreate()
    return copied


def play_seeds(seeds):
    """Play the schedules of these seeds, up to the first that breaks a promise.

    Returns their figures, and what happened in the broken one.
    """
    figures = Counter()
    gc.disable()  # collected below: it would look at all that was imported, again and again
    with surroundings() as play:
        for seed in seeds:
            schedule = play(seed)
            figures += schedule.figures
            figures["schedules"] += 1
            if schedule.broken:
                return figures, story(schedule)
            if seed % 50 == 0:
                gc.collect()
    return figures, None


def story(schedule):
    """What happened in a schedule, how it ended, and how to see it again."""
    end = schedule.broken or "every promise was kept"
    command = f"python tests/e2e/misfortune.py --seed {schedule.seed} --count 1 --told"
    return "\n".join([*schedule.told, f"{end}\n{command}"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--told", action="store_true", help="say what happens, step by step")
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.count)
    if chosen.told:
        with surroundings() as play:
            for seed in seeds:
                print(story(play(seed)))
        return
    begun = time.monotonic()
    figures = Counter()
    parts = [seeds[first : first + 100] for first in range(0, len(seeds), 100)]
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        for some, broken in pool.imap_unordered(play_seeds, parts):
            figures += some
            print(f"\r{figures['schedules']} schedules", end="", file=sys.stderr, flush=True)
            if broken:
                sys.exit(f"\n{broken}")
    seconds = time.monotonic() - begun
    print(
        f"\n{seconds / 60:.1f} minutes, {figures['schedules'] / seconds:.0f} schedules per second: "
        "nobody was paid twice, nothing acknowledged was lost, decisions are the undisturbed ones"
    )
    for what, times in figures.most_common():
        print(f"{times:9}  {what}")


if __name__ == "__main__":
    main()
