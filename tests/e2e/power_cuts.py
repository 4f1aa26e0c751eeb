"""Cuts the power under a run: what was not synced is lost, in part or as a whole.

Nothing acknowledged may be.

    python tests/e2e/power_cuts.py --cuts 200

A run is recorded by `recorder.c`: every write, sync, rename and removal below its disk, and every
acknowledgement, in order. At a random point of that record the power goes. What was synced before
it is there: a file's content where the file was synced, a name where its folder was. Of the rest a
random part is: writes page by page, some pages torn between sectors, sizes, names. The disk is
built so, the run resumed on it, and recorded and cut again.
"""

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import forks
from world import COMMON, SIMULATOR, SYNTHETIC, Place, SQLite, World

from bara.ledger.store import Store

PAGE, SECTOR = 4096, 512
HEAD = struct.Struct("<cQQQ")
SOURCE = Path(__file__).with_name("recorder.c")
PROGRAM = (
    "import sys, forks, power_cuts; power_cuts.same_disk(); sys.exit(forks.program(sys.argv[1:]))"
)


def same_disk():
    """A disk keeps its number over a power cut.

    Ours is built anew, and so the test says that it is the same.
    """
    Store.identity = lambda _store: "the disk of this test"


class File:
    """What is on the disk of a file, and what was done to it since it was last synced."""

    def __init__(self, content=b""):
        self.synced, self.since = bytes(content), []

    def sync(self):
        self.synced, self.since = self.survivor(None), []

    def survivor(self, rng, part=1.0):
        """Its content after a cut that keeps about that part of what was not synced.

        Without chance, all of it.
        """
        content = bytearray(self.synced)
        for offset, data in self.since:
            if data is None:
                if rng is None or rng.random() < part:
                    del content[offset:]
                    content.extend(bytes(offset - len(content)))
                continue
            for first, piece in _pages(offset, data):
                for start, some in (
                    [(first, piece)] if rng is None else _torn(first, piece, rng, part)
                ):
                    content.extend(bytes(max(0, start + len(some) - len(content))))
                    content[start : start + len(some)] = some
        return bytes(content)


def _pages(offset, data):
    first = 0
    while first < len(data):
        length = min(PAGE - (offset + first) % PAGE, len(data) - first)
        yield offset + first, data[first : first + length]
        first += length


def _torn(first, piece, rng, part):
    """A page that was not synced: it is there, or it is not, or some of its sectors are."""
    if rng.random() < 0.1:
        sectors = [(first + at, piece[at : at + SECTOR]) for at in range(0, len(piece), SECTOR)]
        return [sector for sector in sectors if rng.random() < part]
    return [(first, piece)] if rng.random() < part else []


class Folder:
    """The names that are on the disk of a folder,
    and what was done to them since it was last synced.
    """

    def __init__(self):
        self.synced, self.since = {}, []

    def now(self):
        return self.survivor(None)

    def sync(self):
        self.synced, self.since = self.now(), []

    def survivor(self, rng, part=1.0):
        names = dict(self.synced)
        for change in self.since:
            if rng is None or rng.random() < part:
                names.update(change)
        return {name: node for name, node in names.items() if node is not None}


class Disk:
    """A folder as the record says it became, and as a cut would leave it."""

    def __init__(self, path):
        self._path, self.root = path, self._read(path)
        self.acknowledged = {}

    def _read(self, path):
        folder = Folder()
        for one in path.iterdir():
            folder.synced[one.name] = self._read(one) if one.is_dir() else File(one.read_bytes())
        return folder

    def _node(self, path):
        node = self.root
        for name in Path(path).relative_to(self._path).parts:
            node = node.now()[name] if isinstance(node, Folder) else None
        return node

    def _name(self, path, node):
        self._node(Path(path).parent).since.append({Path(path).name: node})

    def tell(self, kind, path, data, number):
        """One line of the record."""
        if kind == "a":
            round_number, paid = map(int, data.split())
            self.acknowledged[round_number] = paid
        elif path.endswith(" (deleted)"):
            return
        elif kind in "cm":
            self._name(path, File() if kind == "c" else Folder())
        elif kind == "u":
            self._name(path, None)
        elif kind == "r":
            new = data.decode()
            assert Path(path).parent == Path(new).parent, "a rename between folders is not foreseen"
            self._node(Path(path).parent).since.append(
                {Path(path).name: None, Path(new).name: self._node(path)}
            )
        elif kind == "s":
            self._node(path).sync()
        else:
            self._node(path).since.append((number, data if kind == "w" else None))

    def build(self, rng=None):
        """Make the folder what a cut at this point would leave; without chance, what it is."""
        shutil.rmtree(self._path)
        self._build(self.root, self._path, rng)

    def _build(self, node, path, rng):
        part = 1.0 if rng is None else rng.choice([0.0, 0.3, 0.7, 1.0])
        kept = node.survivor(rng, part)
        if isinstance(node, File):
            path.write_bytes(rng.randbytes(32768) if rng and path.name.endswith("-shm") else kept)
            return
        path.mkdir()
        for name, one in kept.items():
            self._build(one, path / name, rng)


def read_record(path):
    """The lines of a record; the last may be cut short."""
    lines, text, at = [], path.read_bytes(), 0
    while at < len(text):
        kind, number, *lengths = HEAD.unpack_from(text, at)
        at += HEAD.size
        name, data = text[at : at + lengths[0]].decode(), text[at + lengths[0] : at + sum(lengths)]
        lines.append((kind.decode(), name, data, number))
        at += sum(lengths)
    return lines


class Laboratory:
    """A disk on which a run is recorded and cut."""

    def __init__(self, home, changes, rng, figures):
        self.disk, self.acks, self.run = (
            home / "disk",
            home / "acks",
            home / "disk" / "runs" / "run",
        )
        self.receipt = home / "disk" / "second" / "receipt.json"
        self._home, self._rng, self.figures = home, rng, figures
        self.shim = home / "recorder.so"
        flags = ["-shared", "-fPIC", "-O1", "-o", self.shim]
        subprocess.run(
            [shutil.which("gcc"), *flags, SOURCE, "-ldl", "-lpthread"],
            check=True,
            capture_output=True,
        )
        self._words = [word for change in changes for word in ("--set", change)]
        assert forks.call("run", "--out", home / "whole", *self._words).code == 0
        self._begin()

    def _begin(self):
        shutil.rmtree(self.disk, ignore_errors=True)
        self.receipt.parent.mkdir(parents=True)
        self.promised = {}  # what was acknowledged in earlier sessions

    def words(self):
        if (self.run / "config.toml").exists():
            return ["resume", self.run]
        forks.remove(self.run)  # a folder without a configuration was never a run
        return ["run", "--out", self.run, *self._words, "--set", f"ledger.receipt={self.receipt}"]

    def record(self):
        """Play the run on this disk to its end.

        Returns the disk before it, and what was done to it.
        """
        record = self._home / "record"
        for path in (record, self.acks):
            forks.remove(path)
        self.acks.mkdir()
        words = [*self.words(), "--log", f"acks:Acks:{self.acks}/told"]
        before = Disk(self.disk)
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self.shim),
            "BARA_DISK": str(self.disk),
            "BARA_ACKS": str(self.acks),
            "BARA_RECORD": str(record),
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
            ),
        }
        command = [sys.executable, "-c", PROGRAM, *map(str, words)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        lines = read_record(record)
        self._nothing_is_missed(before, lines)
        self.figures["sessions recorded"] += 1
        self.figures["operations recorded"] += len(lines)
        return lines

    def _nothing_is_missed(self, before, lines):
        """Without a cut the record must come to the very folder that is there,
        or the recorder has missed something.
        """
        there = {path: path.read_bytes() for path in self.disk.rglob("*") if path.is_file()}
        found = self._home / "found"
        forks.remove(found)
        self.disk.rename(found)
        self.disk.mkdir()
        for line in lines:
            before.tell(*line)
        before.build()
        built = {path: path.read_bytes() for path in self.disk.rglob("*") if path.is_file()}
        there, built = (
            {p: c for p, c in one.items() if not p.name.endswith("-shm")} for one in (there, built)
        )
        assert there == built, "the recorder has missed something"

    def cut(self, start, lines):
        """Build the disk as a cut at a random point leaves it.

        Returns what was acknowledged by then.
        """
        forks.remove(self.disk)
        shutil.copytree(start, self.disk)
        disk = Disk(self.disk)
        for line in lines[: self._rng.randint(0, len(lines))]:
            disk.tell(*line)
        disk.build(self._rng)
        self.figures["cuts"] += 1
        self.figures["acknowledged before a cut"] += len(disk.acknowledged)
        return {**self.promised, **disk.acknowledged}

    def check(self, acknowledged):
        """Nothing acknowledged is lost, the record is whole,
        the run goes on to its result, nobody is paid again.
        """
        place, store = Place(self.run, ""), SQLite(None)
        look = World.look(_Looking(store), place)
        lost = {
            r: paid
            for r, paid in acknowledged.items()
            if look is None or look.paid.get(r, 0) != paid
        }
        assert not lost, f"acknowledged, then lost in a power cut: {lost}"
        if not (self.run / "config.toml").exists():
            self.figures["before the run began"] += 1
            return
        if look is not None:
            receipt = ["--receipt", self.receipt] if self.receipt.exists() else []
            whole = forks.call("ledger", self.run, "verify", *receipt, before=same_disk)
            assert whole.code == 0, whole
        done = forks.call("resume", self.run, before=same_disk)
        assert done.code == 0, done
        after = World.look(_Looking(store), place)
        assert look is None or look.settled.items() <= after.settled.items(), (
            "a round was settled again"
        )
        for name in [
            "result.json",
            *(path.name for path in (self._home / "whole").glob("model-*.npz")),
        ]:
            assert (self.run / name).read_bytes() == (self._home / "whole" / name).read_bytes(), (
                f"another {name}"
            )
        assert (
            forks.call(
                "ledger", self.run, "verify", "--receipt", self.receipt, before=same_disk
            ).code
            == 0
        )
        self.figures["resumed to the same result"] += 1

    def play(self, cuts, each=6, generations=3):
        """Cut so often: several cuts of each recorded session,
        from one of which the next is recorded.
        """
        start = self._home / "start"
        while self.figures["cuts"] < cuts:
            self._begin()
            for _ in range(generations):
                forks.remove(start)
                shutil.copytree(self.disk, start)
                lines = self.record()
                for _ in range(min(each, cuts - self.figures["cuts"])):
                    told = self.cut(start, lines)
                    self.check(told)
                if self.figures["cuts"] >= cuts:
                    return
                self.promised = self.cut(start, lines)
                self.figures["cuts"] -= 1  # checked as the start of the next session, not by itself
                print(f"\r{self.figures['cuts']} cuts", end="", file=sys.stderr, flush=True)


class _Looking:
    """As much of a world as looking needs."""

    def __init__(self, store):
        self.store = store

    adds_up = staticmethod(World.adds_up)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--engine", choices=["synthetic", "simulator"], default="synthetic")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    forks.prepare(chosen.engine)
    home, begun = Path(tempfile.mkdtemp(prefix="bara-cuts-")), time.monotonic()
    engine = SIMULATOR if chosen.engine == "simulator" else SYNTHETIC
    laboratory = Laboratory(home, [*engine, *COMMON], random.Random(chosen.seed), Counter())
    try:
        laboratory.play(chosen.cuts)
    except BaseException:
        print(f"what is left of it is in {home}", file=sys.stderr)
        raise
    forks.remove(home)
    print(
        f"\n{chosen.engine}, {(time.monotonic() - begun) / 60:.1f} minutes: nothing acknowledged "
        f"was lost"
    )
    for what, times in sorted(laboratory.figures.items(), key=lambda one: -one[1]):
        print(f"{times:9}  {what}")


if __name__ == "__main__":
    main()
