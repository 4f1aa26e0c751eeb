"""A run that is killed, copied, moved, restored,
cut off and operated at random pays nobody twice and loses nothing.

Each for a moment here; `make kills`, `make power-cuts` and `make thorough` are the long versions.
"""

import subprocess
import sys
from pathlib import Path

import pytest


def play(script, *options):
    command = [sys.executable, Path(__file__).with_name(script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def test_nobody_is_paid_twice_whatever_befalls_a_run():
    told = play("machine.py", "--minutes", "0.8")
    assert "nobody was paid twice, nothing was lost" in told
    assert "kills" in told
    assert "results identical" in told


def test_a_run_with_models_ends_with_the_same_ones_whatever_befalls_it():
    assert "nobody was paid twice" in play(
        "machine.py", "--minutes", "0.3", "--engine", "simulator"
    )


@pytest.mark.debian("PostgreSQL")
@pytest.mark.xdist_group("postgres")
def test_nobody_is_paid_twice_on_postgresql():
    assert "nobody was paid twice" in play("machine.py", "--minutes", "1", "--store", "postgres")


def test_a_program_of_ones_own_and_its_cashier_lose_and_double_nothing_by_kills():
    assert "nothing was lost or doubled, each batch was exported once" in play(
        "own_loop_kills.py", "--kills", "8"
    )


@pytest.mark.debian("PostgreSQL")
@pytest.mark.xdist_group("postgres")
def test_nor_do_they_on_postgresql():
    told = play("own_loop_kills.py", "--kills", "12", "--url", "$BARA_TEST_POSTGRES")
    assert "nothing was lost or doubled" in told


def test_a_power_cut_loses_nothing_that_was_acknowledged():
    assert "nothing acknowledged was lost" in play("power_cuts.py", "--cuts", "8")


@pytest.mark.parametrize(("what", "cases"), [("configurations", 50), ("ledgers", 15)])
def test_junk_is_answered_with_one_clear_line(what, cases):
    assert ": 0 things went wrong" in play("fuzz.py", what, "--cases", str(cases))
