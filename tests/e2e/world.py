"""A run, its copies, and what befalls them.

What is promised about the money is checked after every step.

The promise, exactly. A *settlement* is one commit that says who was paid for a round; its event's
hash tells it from a second one of the same round (a copy of a settlement has the same hash).

1. Over all copies together each round has one settlement, as long as nobody says `adopt` and nobody
   puts an older state into the ledger's own file. Copies, moves, restored folders, cloned
   databases, deleted files, kills, two processes at once: none of them makes a second one.
2. `adopt` begins a new line at the copy that is adopted: what the others settled after they parted
   is no part of it. Without a receipt the operator sees to it that the others never go on
   ("retired" below), and rule 1 holds on the line. With a receipt they cannot go on, whatever the
   operator does.
3. A settlement that the receipt covers stays the only one of its round for ever: no copy, adopted
   or not, no older state in the ledger's own file, and no new beginning settles that round again.
   (A settlement whose receipt was not yet written when the process died is covered by the next
   receipt of its line.)
4. What was acknowledged (an observer was told of it) is in the books, and stays, unless its file is
deleted. 5. The books add up: spent is the sum of payments, is what the last balance says, and is
within the budget. 6. A run that was only killed, moved, paused, approved or adopted ends with the
undisturbed run's result, byte for byte. 7. Whatever is refused is refused in one line.
"""

import json
import re
import shutil
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from acks import acknowledged
from forks import Child, call, remove

SYNTHETIC = ["federation.engine=synthetic"]
SIMULATOR = [
    "federation.engine=simulator",
    "data.train_samples=300",
    "training.memory=extrapolated",
]
COMMON = [
    "budget.total=90",
    "budget.max_rounds=25",
    "clients.count=6",
    "clients.failure_rate=0.2",
    "clients.strategic=1",
    "clients.strategy=learner(0.1)",
]
BUSY = "is being run by"
STOPPED = ("paused by the operator", "waits for `bara ledger", BUSY)
MOST_PLACES = 5


@dataclass(frozen=True)
class Look:
    """A record as it is: the hash of every event, each settled round's,
    and whether the run has ended.
    """

    events: dict[int, str]
    settled: dict[int, tuple[int, str]]  # round: event number, hash
    paid: dict[int, int]
    ended: bool


@dataclass(eq=False)
class Place:
    """A folder with a run or a copy of one.

    Attributes:
        path: Where it is.
        record: Which record it plays: its own (SQLite), or a database by name, which folders may
            share.
        torn: It was copied while somebody wrote: it may be unreadable, and then is refused.
        missing: What was taken away from it, or put there instead.
        retired: A later `adopt` or restored state has left it behind: it is no part of the line any
            more.
        seen: What its books held when they were last looked at.
    """

    path: Path
    record: str
    torn: bool = False
    missing: set[str] = field(default_factory=set)
    retired: bool = False
    seen: dict[int, tuple[int, str]] = field(default_factory=dict)


class SQLite:
    """Each folder has a record of its own."""

    def __init__(self, _home):
        self._made = 0

    def settings(self, _record):
        return []

    def new_record(self):
        self._made += 1
        return f"record-{self._made}"

    def name(self, number):
        return f"run-{number}"

    def copy_record(self, _old):
        return self.new_record()

    def rewrite(self, place):
        pass

    @contextmanager
    def connection(self, place):
        file = place.path / "ledger.db"
        if not file.exists():
            raise FileNotFoundError(file)
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection:
            yield lambda text: connection.execute(text).fetchall()

    Error = (sqlite3.Error, FileNotFoundError)

    def close(self):
        pass


class Postgres:
    """Records are databases of one server; a folder says in its configuration which."""

    def __init__(self, home, url):
        import psycopg  # noqa: PLC0415 - only where there is a server

        self._driver, self._url, self._made = psycopg, url, 0
        self._prefix = re.sub(r"\W", "_", home.name).lower()
        self.Error = (psycopg.Error, FileNotFoundError)

    def _connect(self, database="postgres"):
        url = self._url.replace("+psycopg", "").rpartition("/")[0]
        return self._driver.connect(f"{url}/{database}", autocommit=True)

    def _admin(self, *statements):
        with self._connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def settings(self, record):
        return [f"ledger.url={self._url.rpartition('/')[0]}/{record}"]

    def new_record(self, template="template0"):
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def name(self, _number):
        return "run"  # by which the database knows it

    def copy_record(self, old):
        """A clone, or None where the server will not: somebody is connected."""
        for _ in range(20):
            try:
                return self.new_record(old)
            except self._driver.errors.ObjectInUse:
                time.sleep(0.05)
            except self._driver.Error:
                break
        return None

    def drop(self, record):
        self._admin(f"DROP DATABASE IF EXISTS {record} WITH (FORCE)")

    def recreate(self, record, template):
        """The same name, but not the same database."""
        self.drop(record)
        self._admin(f"CREATE DATABASE {record} TEMPLATE {template}")

    def rewrite(self, place):
        config = place.path / "config.toml"
        if config.exists():
            config.write_text(
                re.sub(r"(?m)^(url = \".*)/\w+\"$", rf'\1/{place.record}"', config.read_text())
            )

    @contextmanager
    def connection(self, place):
        with self._connect(place.record) as connection:
            yield lambda text: connection.execute(text).fetchall()

    def close(self):
        with self._connect() as connection:
            found = connection.execute("SELECT datname FROM pg_database").fetchall()
        for (name,) in found:
            if name.startswith(f"{self._prefix}_"):
                self.drop(name)


class World:
    """One run and everything that happens to it."""

    def __init__(self, home, store, undisturbed, figures, *, engine, receipt, retention, approve):
        self.home, self.store, self._undisturbed, self.figures = home, store, undisturbed, figures
        self.changes = [*(SIMULATOR if engine == "simulator" else SYNTHETIC), *COMMON]
        self.changes += [f"ledger.retention={retention}"]
        self.receipt = home / "receipt.json" if receipt else None
        self._extra = [f"ledger.receipt={self.receipt}"] * receipt + [
            "ledger.approve_above=4.4"
        ] * approve
        self.saved_receipt = None
        self.acts, self.receipted = {}, {}
        self.tainted = False
        self._made, self._sittings = 0, 0
        first = Place(self._path(), store.new_record())
        self.places, self.owner = [first], first.record

    def say(self, what, /, **how):
        with (self.home / "journal").open("a") as file:
            file.write(f"{what} {how}\n")
        self.figures["steps"] += 1

    def _path(self):
        self._made += 1
        folder = self.home / str(self._made)
        folder.mkdir()
        return folder / self.store.name(self._made)

    def pick(self, number):
        """A place by any number; the owner's more often than the others'."""
        playable = [place for place in self.places if self.receipt or not place.retired]
        owners = [place for place in playable if place.record == self.owner]
        order = [*owners * 2, *playable] or self.places
        return order[number % len(order)]

    # --- what befalls it ------------------------------------------------------------------------

    def begin(self, kills):
        """Start the run, killed again and again, until it has books."""
        place = self.places[0]
        for fault in [*kills, ""]:
            self.sit(place, fault)
            if self.look(place) is not None:
                return
        raise AssertionError("it never began")

    def start(self, place, fault=""):
        """Run or resume, in the background; what it acknowledges goes to a file of its own."""
        self._sittings += 1
        acks = self.home / f"acks-{self._sittings}"
        if (place.path / "config.toml").exists() or place.seen:
            words = ["resume", place.path]
        else:
            changes = [*self.changes, *self._extra, *self.store.settings(place.record)]
            words = [
                "run",
                "--out",
                place.path,
                *(word for one in changes for word in ("--set", one)),
            ]
        return Child(*words, "--log", f"acks:Acks:{acks}", fault=fault), acks

    def sit(self, place, fault="", delay=None):
        """One sitting: killed at a named point, or after a while, or not at all."""
        before, expected = self.look(place), self._expectation(place)
        child, acks = self.start(place, fault)
        if delay is not None:
            child.kill(delay)
        outcome = child.wait()
        self._count(outcome)
        if outcome.code != -9:
            self._judge(expected, outcome, before)
        self.check([(place, acks)])
        return outcome

    def _expectation(self, place):
        """What a sitting that nobody disturbs must come to: `goes on`,
        `refused`, or None for either.
        """
        look = self.look(place)
        if look is None or look.ended or place.torn:
            return None
        if place.record != self.owner:
            return "refused"
        return None if place.missing or (self.receipt and self.saved_receipt) else "goes on"

    @staticmethod
    def _judge(expected, outcome, before):
        if expected == "goes on":
            assert outcome.code == 0 or any(why in outcome.words for why in STOPPED), outcome
        if expected == "refused":
            assert outcome.code in {1, 2}, (outcome, before)

    def duel(self, one, two, first, second, between, meanwhile):
        """Two processes at once, and something meanwhile.

        The first is killed, the second may end by itself.
        """
        sittings = [(one, *self.start(one))]
        time.sleep(between)
        sittings.append((two, *self.start(two)))
        meanwhile()
        sittings[0][1].kill(first)
        if second is not None:
            sittings[1][1].kill(second)
        for _, child, _ in sittings:
            self._count(child.wait())
        self.check([(place, acks) for place, _, acks in sittings])

    def copy(self, place, *, hot=False):
        """`cp -a`, of the database too."""
        if len(self.places) >= MOST_PLACES:
            spare = [one for one in self.places if one.record != self.owner and one is not place]
            if not spare:
                return
            shutil.rmtree(spare[0].path, ignore_errors=True)
            self.places.remove(spare[0])
        if not place.path.exists():
            return
        target = self._path()
        try:
            shutil.copytree(place.path, target, symlinks=True)
        except (shutil.Error, OSError):  # a file was gone before it was its turn
            assert hot
            shutil.rmtree(target, ignore_errors=True)
            return
        record = self.store.copy_record(place.record) or place.record
        made = Place(target, record, place.torn or hot, set(place.missing), place.retired)
        self.store.rewrite(made)
        look = self.look(made)
        made.seen = {} if look is None else look.settled
        self.places.append(made)
        self.figures["copies"] += 1

    def move(self, place):
        """A rename within the file system."""
        if place.path.exists():
            target = self._path()
            place.path.rename(target)
            place.path = target
            self.figures["moves"] += 1

    def restore(self, backup, place):
        """The folder (or database) is removed,
        and a backup of it takes its place under the same name.
        """
        if backup is place or not backup.path.exists() or backup.retired:
            return
        if isinstance(self.store, Postgres):
            if backup.record == place.record:
                return
            self.store.recreate(place.record, backup.record)
            if self.owner == place.record:
                self.owner = None
            others = [one for one in self.places if one.record == place.record]
        else:
            shutil.rmtree(place.path, ignore_errors=True)
            shutil.copytree(backup.path, place.path, symlinks=True)
            if self.owner == place.record:
                self.owner = None
            place.record, others = self.store.new_record(), [place]
            place.missing = set(backup.missing)
        for one in others:
            one.torn, one.retired, one.seen = backup.torn, backup.retired, dict(backup.seen)
        self.figures["restored"] += 1

    def overwrite(self, backup, place):
        """An older state in the ledger's own file: only a receipt can tell."""
        if not self.receipt or isinstance(self.store, Postgres) or backup is place:
            return
        if not all((one.path / "ledger.db").exists() for one in (backup, place)):
            return
        for end in ("", "-wal"):
            old, new = (one.path / f"ledger.db{end}" for one in (backup, place))
            if old.exists():
                with new.open("r+b" if new.exists() else "wb") as file:
                    file.write(old.read_bytes())
                    file.truncate()
            else:
                new.unlink(missing_ok=True)
        (place.path / "ledger.db-shm").unlink(missing_ok=True)
        place.torn = place.torn or backup.torn
        self._another_state(place)
        self.figures["overwritten"] += 1

    def _another_state(self, place):
        place.missing.add("its own books")
        look = self.look(place)
        place.seen = {} if look is None else look.settled
        self.acts = dict(self.receipted)
        for one in self.places:
            one.retired = one.retired or one is not place

    def delete(self, place, what):
        """A file is gone."""
        ways = {
            "receipt": self._delete_receipt,
            "ledger.db": self._delete_books,
            "everything": self._delete_books,
            "ledger.db-wal": self._delete_log,
        }
        ways.get(what, self._delete_file)(place, what)
        self.figures["deleted"] += 1

    def _delete_file(self, place, what):
        if what == ".opened" and "books" in place.missing and not self._receipt_knows():
            return  # then it is a configuration, not a run
        remove(place.path / what)
        if what == "config.toml":
            place.missing.add("configuration")

    def _delete_receipt(self, _place, _what):
        begun_anew = any(
            "books" in one.missing for one in self.places
        )  # then nothing else knows of the run
        if self.receipt and self.receipt.exists() and not begun_anew:
            self.saved_receipt = self.receipt.read_text()
            self.receipt.unlink()

    def _receipt_knows(self):
        return bool(self.receipt) and not self.saved_receipt

    def _delete_books(self, place, what):
        nothing_left = what == "everything" or not (place.path / ".opened").exists()
        if (nothing_left and not self._receipt_knows()) or isinstance(self.store, Postgres):
            return
        self._keep_a_backup(place)
        for path in [
            *place.path.glob("ledger.db*"),
            *[place.path / ".opened"] * (what == "everything"),
        ]:
            remove(path)
        place.missing.add("books")
        place.seen = {}
        if self.owner == place.record:
            self.owner = None

    def _delete_log(self, place, what):
        if self.receipt and not isinstance(self.store, Postgres):
            remove(place.path / what)
            remove(place.path / "ledger.db-shm")
            self._another_state(place)

    def _keep_a_backup(self, place):
        """What nobody has any more, nothing can be learned from."""
        if not any(
            one is not place and not (one.torn or one.missing or one.retired) for one in self.places
        ):
            self.copy(place)

    def mend(self, place):
        """What was deleted is put back as far as somebody has it."""
        if self.saved_receipt is not None:
            if not self.receipt.exists():
                self.receipt.write_text(self.saved_receipt)
            self.saved_receipt = None
        own = place.path / "config.toml"
        others = [
            one.path / "config.toml" for one in self.places if (one.path / "config.toml").exists()
        ]
        if others and place.path.exists() and not own.exists():
            shutil.copy(others[0], own)
            self.store.rewrite(place)
        if own.exists():
            place.missing.discard("configuration")

    def operate(self, place, verb, *, idle=True):
        """What an operator may say; refused or done, never half."""
        before = self.look(place) if idle else None
        words = {"topup": ["topup", "3"]}.get(verb, [verb])
        if verb in {"approve", "decline", "void"}:
            words.append(str(1 + max(place.seen, default=0)))
        if verb in {"topup", "adopt", "approve", "decline", "void"}:
            words += ["--reason", "it is stuck"]
        outcome = call("ledger", place.path, *words)
        self.figures[f"{verb}: {'done' if outcome.code == 0 else 'refused'}"] += 1
        after = self.look(place) if idle else None
        if outcome.code and before is not None and after is not None:
            assert before.events == after.events, (
                f"{words} was refused, and is in the books: {outcome.words}"
            )
        if outcome.code == 0:
            self.tainted |= verb in {"topup", "decline", "void"}
            if verb == "adopt":
                self._adopted(place, after)

    def _adopted(self, place, look):
        self.owner = place.record
        for one in self.places:
            one.retired = one.record != place.record
        self.acts = {number: value for number, (_, value) in look.settled.items()}

    # --- what must hold --------------------------------------------------------------------------

    def look(self, place):
        """The record of that place; None where there is none, or where it may be torn and is."""
        try:
            with self.store.connection(place) as ask:
                events = ask("SELECT number, hash FROM events WHERE run = 1 ORDER BY number")
                settled = ask(
                    "SELECT round, number, hash FROM events WHERE run = 1 AND kind = 'settled'"
                )
                paid = ask("SELECT round, sum(paid) FROM settlements WHERE run = 1 GROUP BY round")
                closings = ask(
                    "SELECT round, total, spent_before, paid, spent_after "
                    "FROM closings ORDER BY round"
                )
                ended = ask("SELECT 1 FROM events WHERE kind = 'closed'")
        except self.store.Error:
            return None
        look = Look(
            dict(events),
            {row[0]: row[1:] for row in settled},
            {r: int(p) for r, p in paid},
            bool(ended),
        )
        if not (place.torn or "its own books" in place.missing):
            self.adds_up(look, closings)
        return look if events else None

    @staticmethod
    def adds_up(look, closings):
        """Each round begins with what the one before left, and holds what was paid in it."""
        spent = 0
        for number, total, before, paid, after in closings:
            assert (before, paid) == (spent, look.paid.get(number, 0)), (
                f"round {number} does not add up"
            )
            spent += paid
            assert after == spent <= total, f"round {number} does not add up"
        assert sum(look.paid.values()) == spent
        assert sorted(look.settled) == [row[0] for row in closings] == list(range(len(closings)))

    def check(self, sittings=()):
        """Everything that is promised, over all places together."""
        looks = {place: self.look(place) for place in self.places}
        for place, acks in sittings:
            self._nothing_acknowledged_is_lost(place, looks[place], acknowledged(acks))
        for place, look in looks.items():
            if look is None:
                assert place.torn or place.missing or not place.seen, (
                    f"the books of {place} are gone"
                )
                continue
            lost = [number for number, one in place.seen.items() if look.settled.get(number) != one]
            assert not lost, f"rounds {lost} of {place.path} are lost or changed"
            if place.record != self.owner:
                new = look.settled.keys() - place.seen.keys()
                assert not new, f"a copy went on by itself: rounds {new} of {place.path}"
            place.seen = look.settled
            if not (place.retired or place.torn):
                for number, (_, value) in look.settled.items():
                    assert self.acts.setdefault(number, value) == value, (
                        f"round {number} is settled twice"
                    )
        self._check_receipt(looks.values())

    @staticmethod
    def _nothing_acknowledged_is_lost(place, look, acks):
        if not acks or "books" in place.missing or "its own books" in place.missing:
            return
        lost = {
            number: paid
            for number, paid in acks.items()
            if look is None or look.paid.get(number, 0) != paid
        }
        assert not lost, f"acknowledged, but not in the books of {place.path}: {lost}"

    def _check_receipt(self, looks):
        if self.receipt is None or not self.receipt.exists():
            return
        told = json.loads(self.receipt.read_text())
        for look in looks:
            if look is not None and look.events.get(told["events"]) == told["head"]:
                for number, (event, value) in look.settled.items():
                    if event <= told["events"]:
                        assert self.receipted.setdefault(number, value) == value, (
                            f"round {number} is settled twice"
                        )

    def _count(self, outcome):
        self.figures[{0: "ended", -9: "kills"}.get(outcome.code, "stopped or refused")] += 1

    # --- the end ---------------------------------------------------------------------------------

    def end(self):
        """Left in peace, the run that may go on goes on, ends, and is what it would have been."""
        owners = [place for place in self.places if place.record == self.owner and not place.torn]
        for place in owners:
            self.mend(place)
        owners = [place for place in owners if not place.missing and self.look(place) is not None]
        if not owners:
            self.figures["runs lost with their files"] += 1
            return
        place = owners[0]
        for _ in range(60):
            outcome = self.sit(place)
            if outcome.code == 0:
                break
            if found := re.search(r"approve (\d+) ", outcome.words):
                assert (
                    call("ledger", place.path, "approve", found[1], "--reason", "it waits").code
                    == 0
                )
            elif BUSY in outcome.words:
                time.sleep(0.1)
        else:
            raise AssertionError(f"it does not end: {outcome}")
        self._check_end(place)

    def _check_end(self, place):
        receipt = ["--receipt", self.receipt] if self.receipt else []
        assert call("ledger", place.path, "verify", *receipt).code == 0
        account = json.loads(call("ledger", place.path, "statement", "--json").words)
        look = self.look(place)
        assert account["outstanding"] == 0
        assert round(account["spent"] * 1e6) == sum(look.paid.values())
        assert abs(account["spent"] - sum(client["paid"] for client in account["clients"])) < 1e-6
        self.figures["rounds settled"] += len(look.settled)
        self.figures["runs ended"] += 1
        if not self.tainted:
            whole = self._undisturbed(self.changes)
            for name in ["result.json", *(path.name for path in whole.glob("model-*.npz"))]:
                assert (place.path / name).read_bytes() == (whole / name).read_bytes(), (
                    f"another {name}"
                )
            self.figures["results identical"] += 1
