"""Kills, copies, moves, restored backups, deleted files,
operators and two processes at once, mixed at random.

    python tests/e2e/machine.py --minutes 30
    scripts/with_postgres.sh python tests/e2e/machine.py --minutes 30 --store postgres

Real processes of `bara run` and `bara resume`, real SIGKILLs; `world.py` says what is checked after
each step. The seed fixes what is tried, not at which instruction a kill comes.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import forks
import hypothesis
import typer
from fault_points import POINTS
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from world import Postgres, SQLite, World

from bara.cli.ledger import ledger_app

FILES = [
    "ledger.db",
    "ledger.db-wal",
    "everything",
    "receipt",
    ".opened",
    "checkpoints",
    "config.toml",
    "result.json",
]
VERBS = sorted(
    {"adopt", "pause", "topup", "approve", "decline", "void"}
    & set(typer.main.get_command(ledger_app).commands)
)

WHICH = st.integers(0, 999)
FAULTS = st.sampled_from(POINTS).flatmap(
    lambda name: st.integers(1, 3).map(lambda times: f"{name}@{times}")
)
PLAYED = st.sampled_from([True, True, False])
DELAYS = st.integers(0, 700).map(lambda milliseconds: milliseconds / 1000)


class Scene:
    """What all runs of one process share: where they are, until when,
    undisturbed results, and the figures.
    """

    def __init__(self, home, url, engine, minutes):
        self.home, self._url, self._engine = home, url, engine
        self._end = time.monotonic() + 60 * minutes
        self.figures = Counter()
        self._whole = {}
        self._made = itertools.count(1)

    def time_is_up(self):
        return time.monotonic() > self._end

    def undisturbed(self, changes):
        key = tuple(changes)
        if key not in self._whole:
            folder = self.home / f"undisturbed-{len(self._whole)}"
            words = [word for change in changes for word in ("--set", change)]
            assert forks.call("run", "--out", folder, *words).code == 0
            self._whole[key] = folder
        return self._whole[key]

    def world(self, **options):
        home = self.home / f"world-{os.getpid()}-{next(self._made)}"
        home.mkdir()
        store = SQLite(home) if self._url is None else Postgres(home, self._url)
        return World(home, store, self.undisturbed, self.figures, engine=self._engine, **options)


def machine(scene):  # noqa: C901 - as many rules as there are things that happen
    """The state machine on that scene.

    No rule depends on what a process came to: only so can hypothesis replay it.
    """

    class Machine(RuleBasedStateMachine):
        world = None

        @initialize(
            receipt=st.booleans(),
            retention=st.sampled_from(["keep", "keep", "drop"]),
            approve=st.sampled_from([False, False, True]),
            kills=st.lists(FAULTS, max_size=2),
        )
        def begin(self, kills, **options):
            if not scene.time_is_up():
                self.world = scene.world(**options)
                self._step("begin", kills=kills)
                self.world.begin(kills)

        def _step(self, what, /, **how):
            if self.world is None or scene.time_is_up():
                return False
            self.world.say(what, **how)
            return True

        @rule(which=WHICH, faults=st.lists(FAULTS, min_size=1, max_size=4))
        def is_killed_at_named_steps(self, which, faults):
            if self._step("killed", which=which, faults=faults):
                for fault in faults:
                    self.world.sit(self.world.pick(which), fault)

        @rule(which=WHICH, delays=st.lists(DELAYS, min_size=1, max_size=4))
        def is_killed_at_random_moments(self, which, delays):
            if self._step("killed", which=which, delays=delays):
                for delay in delays:
                    self.world.sit(self.world.pick(which), delay=delay)

        @rule(which=WHICH)
        def is_resumed(self, which):
            if self._step("resumed", which=which):
                self.world.sit(self.world.pick(which))

        @rule(
            one=WHICH,
            two=WHICH,
            same=st.booleans(),
            first=DELAYS,
            second=st.none() | DELAYS,
            between=DELAYS,
        )
        def is_played_twice_at_once(self, one, two, same, first, second, between):
            if self._step("twice at once", one=one, two=two, same=same):
                first_place = self.world.pick(one)
                second_place = first_place if same else self.world.pick(two)
                self.world.duel(first_place, second_place, first, second, between, lambda: None)

        @rule(
            which=WHICH,
            after=DELAYS,
            first=DELAYS,
            what=st.sampled_from(["copy", "move", *FILES, ".lock", *VERBS]),
        )
        def is_disturbed_while_it_is_played(self, which, after, first, what):
            if not self._step("disturbed", which=which, what=what) or what in {"adopt", "receipt"}:
                return  # to adopt one while another goes on is what an operator promises not to do
            place = self.world.pick(which)
            disturb = {
                "copy": lambda: self.world.copy(place, hot=True),
                "move": lambda: self.world.move(place),
                **{verb: lambda: self.world.operate(place, what, idle=False) for verb in VERBS},
            }.get(what, lambda: self.world.delete(place, what))
            self.world.duel(place, place, first, None, after, disturb)

        def _then(self, played, place):
            """What was just done to a place is looked at, and mostly tried at once."""
            self.world.check()
            if played:
                self.world.sit(place, "settled@2")

        @rule(which=WHICH, played=PLAYED)
        def is_copied(self, which, played):
            if self._step("copied", which=which, played=played):
                self.world.copy(self.world.pick(which))
                self._then(played, self.world.places[-1])

        @rule(which=WHICH)
        def is_moved(self, which):
            if self._step("moved", which=which):
                self.world.move(self.world.pick(which))
                self.world.check()

        @rule(backup=WHICH, which=WHICH, played=PLAYED)
        def is_restored_from_a_backup(self, backup, which, played):
            if self._step("restored", backup=backup, which=which, played=played):
                place = self.world.pick(which)
                self.world.restore(self.world.pick(backup), place)
                self._then(played, place)

        @rule(backup=WHICH, which=WHICH, played=PLAYED)
        def has_an_older_state_put_into_its_file(self, backup, which, played):
            if self._step("overwritten", backup=backup, which=which, played=played):
                place = self.world.pick(which)
                self.world.overwrite(self.world.pick(backup), place)
                self._then(played, place)

        @rule(which=WHICH, what=st.sampled_from(FILES))
        def loses_a_file(self, which, what):
            if self._step("deleted", which=which, what=what):
                self.world.delete(self.world.pick(which), what)
                self.world.check()

        @rule(which=WHICH)
        def has_its_files_put_back(self, which):
            if self._step("mended", which=which):
                self.world.mend(self.world.pick(which))
                self.world.check()

        @rule(which=WHICH, played=PLAYED)
        def is_adopted(self, which, played):
            if self._step("adopted", which=which, played=played):
                place = self.world.pick(which)
                self.world.operate(place, "adopt")
                self._then(played, place)

        @rule(which=WHICH, verb=st.sampled_from(VERBS))
        def is_operated(self, which, verb):
            if self._step("operated", which=which, verb=verb):
                self.world.operate(self.world.pick(which), verb)
                self.world.check()

        def teardown(self):
            if self.world is None or sys.exc_info()[0] is not None:
                return  # what failed is kept as it is
            self.world.end()
            self.world.store.close()
            forks.remove(self.world.home)
            scene.figures["runs"] += 1

    return Machine


def play(scene, seed):
    """Machine after machine, each with a seed of its own, until the time is up."""
    settings = hypothesis.settings(
        max_examples=8,
        stateful_step_count=25,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    for number in itertools.count(seed):
        if scene.time_is_up():
            return
        made = machine(scene)
        hypothesis.seed(number)(made)
        run_state_machine_as_test(made, settings=settings)
        print(
            f"\r{scene.figures['steps']} steps, {scene.figures['kills']} kills",
            end="",
            file=sys.stderr,
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--engine", choices=["synthetic", "simulator"], default="synthetic")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    forks.prepare(chosen.engine, chosen.store)
    url = os.environ["BARA_TEST_POSTGRES"] if chosen.store == "postgres" else None
    home = Path(tempfile.mkdtemp(prefix="bara-machine-"))
    scene = Scene(home, url, chosen.engine, chosen.minutes)
    begun = time.monotonic()
    try:
        play(scene, chosen.seed)
    except BaseException:
        print(f"what is left of it is in {home}", file=sys.stderr)
        raise
    forks.remove(home)
    minutes = (time.monotonic() - begun) / 60
    print(
        f"\n{chosen.engine}, {chosen.store}, {minutes:.1f} minutes: nobody was paid twice, "
        f"nothing was lost"
    )
    for what, times in sorted(scene.figures.items(), key=lambda one: -one[1]):
        print(f"{times:7}  {what}")


if __name__ == "__main__":
    main()
