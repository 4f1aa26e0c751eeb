"""What goes wrong around a run: each time a clear line, nothing lost,
and the run goes on when the cause is gone.
"""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from programs import bara, result, started, until

from bara.server.checkpoints import load, save

SMALL = ["federation.engine=synthetic", "allocator.name=even", "budget.total=40", "clients.count=6"]
ENDLESS = [*SMALL, "budget.max_rounds=1000000", "budget.total=2000000", "clients.failure_rate=0.1"]
SIMULATED = [
    "federation.engine=simulator",
    "data.train_samples=300",
    "budget.max_rounds=8",
    "clients.count=6",
]


@pytest.fixture
def stopped(tmp_path):
    """A run that was killed in its fourth round, and the result it would have had."""
    changes = [*SMALL, "budget.max_rounds=10"]
    bara("run", "--out", tmp_path / "whole", changes=changes)
    bara(
        "run",
        "--out",
        tmp_path / "run",
        changes=changes,
        code=-9,
        environment={"BARA_FAULT": "promised@4"},
    )
    return tmp_path / "run", result(tmp_path / "whole")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that trained to its end; tests that compare with it share a worker."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    bara("run", "--out", folder, changes=SIMULATED)
    return folder


def _obey_permissions():
    """Nothing is read-only to root, unless it lets go of that privilege.

    To others this does nothing.
    """
    drop_from_bounding_set, may_override_permissions = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, may_override_permissions, 0, 0, 0)


def settled(folder):
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        return connection.execute(
            "SELECT round, client, paid FROM settlements ORDER BY 1, 2"
        ).fetchall()


def wait_for_round(folder, number, process):
    def settled_so_far():
        with suppress(sqlite3.Error):
            return any(row[0] >= number for row in settled(folder))

    until(settled_so_far, process)


def test_ctrl_c_ends_after_the_rounds_books_are_closed_and_says_how_to_go_on(tmp_path):
    folder = tmp_path / "run"
    with started("run", "--out", folder, changes=ENDLESS) as process:
        wait_for_round(folder, 3, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"go on with: bara resume {folder}" in errors
    assert "Traceback" not in errors
    assert json.loads(bara("ledger", folder, "statement", "--json").stdout)["outstanding"] == 0


def test_an_operator_may_top_up_and_pause_while_the_run_goes_on(tmp_path):
    folder = tmp_path / "run"
    with started("run", "--out", folder, changes=ENDLESS) as process:
        wait_for_round(folder, 2, process)
        for amount in (1, 2, "0.5"):
            bara("ledger", folder, "topup", amount, "--reason", "agreed")
        bara("ledger", folder, "pause")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "paused by the operator" in errors
    account = json.loads(bara("ledger", folder, "statement", "--json").stdout)
    assert (account["topped_up"], account["budget"], account["outstanding"]) == (
        3.5,
        2_000_003.5,
        0,
    )
    assert bara("ledger", folder, "verify").stdout.startswith("the record is whole")


def test_a_second_process_on_one_run_is_refused_and_a_dead_one_does_not_block(tmp_path):
    folder = tmp_path / "run"
    with started("run", "--out", folder, changes=ENDLESS) as process:
        wait_for_round(folder, 2, process)
        refused = bara("resume", folder, code=1)
        assert f"is being run by process {process.pid}" in refused.stderr
        refused = bara("ledger", folder, "void", 1, "--reason", "why not", code=1)
        assert f"is being run by process {process.pid}" in refused.stderr
        assert bara("ledger", folder, "verify").stdout.startswith("the record is whole")
    bara("ledger", folder, "pause")
    paused = settled(folder)
    with started("resume", folder) as process:
        wait_for_round(folder, paused[-1][0] + 1, process)


def test_a_database_locked_by_another_program_is_waited_for_and_then_a_clear_error(stopped):
    folder, whole = stopped
    before = settled(folder)
    with closing(sqlite3.connect(folder / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = bara("resume", folder, code=1)
        assert "database is locked; this step is stored as a whole or not at all" in done.stderr
    assert settled(folder) == before
    bara("resume", folder)
    assert result(folder) == whole


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(tmp_path):
    """The size of files is limited, which the program meets as a write
    that fails, as on a full disk.
    """
    folder = tmp_path / "run"

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    changes = [*SMALL, "budget.max_rounds=150", "budget.total=600"]
    done = bara("run", "--out", folder, changes=changes, code=1, preexec_fn=limited)
    assert "this step is stored as a whole or not at all" in done.stderr
    assert "Traceback" not in done.stderr
    before = settled(folder)
    assert before
    bara("resume", folder)
    assert settled(folder)[: len(before)] == before
    bara("run", "--out", tmp_path / "whole", changes=changes)
    assert result(folder) == result(tmp_path / "whole")


@pytest.mark.debian("root")
def test_a_small_file_system_that_fills_up_loses_nothing(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small],
        check=True,
        capture_output=True,
    )
    try:
        changes = [*SMALL, "budget.max_rounds=400", "budget.total=1600"]
        done = bara("run", "--out", small / "run", changes=changes, code=1)
        assert "full" in done.stderr or "No space" in done.stderr
        before = settled(small / "run")
        assert before
        subprocess.run(["/bin/mount", "-o", "remount,size=40m", small], check=True)
        bara("resume", small / "run")
        assert settled(small / "run")[: len(before)] == before
        assert bara("ledger", small / "run", "verify").stdout.startswith("the record is whole")
    finally:
        subprocess.run(["/bin/umount", small], check=True)


def test_a_read_only_folder_is_a_clear_error(stopped):
    folder, whole = stopped
    before = settled(folder)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = bara("resume", folder, code=1, preexec_fn=_obey_permissions)
    assert f"cannot write to {folder}: Permission denied" in done.stderr
    done = bara(
        "ledger", folder, "topup", "1", "--reason", "agreed", code=1, preexec_fn=_obey_permissions
    )
    assert "readonly database; nothing was changed" in done.stderr
    assert "Traceback" not in done.stderr
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert settled(folder) == before
    bara("resume", folder)
    assert result(folder) == whole


@pytest.mark.parametrize("which", ["whole", "run"])
def test_a_ledger_in_a_read_only_folder_can_be_read(stopped, which):
    """One that was finished, and one that was killed and has its log beside it."""
    folder = stopped[0].with_name(which)
    verbs = [
        ["verify"],
        ["statement"],
        ["statement", "--json"],
        ["export"],
        ["export", "--csv"],
        ["payouts"],
    ]
    paths = (folder, *folder.iterdir())
    names = sorted(path.name for path in paths)
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    shown = [bara("ledger", folder, *verb, preexec_fn=_obey_permissions).stdout for verb in verbs]
    assert sorted(path.name for path in (folder, *folder.iterdir())) == names
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert shown == [bara("ledger", folder, *verb).stdout for verb in verbs]
    assert shown[0].startswith("the record is whole")


def test_an_operator_answers_what_waits_and_the_run_says_how(tmp_path):
    folder = tmp_path / "run"
    changes = [*SMALL, "budget.max_rounds=2", "ledger.approve_above=1"]
    done = bara("run", "--out", folder, changes=changes, code=1)
    assert (
        f"bara ledger {folder} approve 1 --reason TEXT` or `decline 1 --reason TEXT`" in done.stderr
    )
    assert "round 1 waits for approval" in bara("ledger", folder).stdout
    assert (
        f"go on with: bara resume {folder}"
        in bara("ledger", folder, "decline", 1, "--reason", "agreed").stdout
    )
    assert "approve 2 " in bara("resume", folder, code=1).stderr
    assert (
        f"train it with: bara resume {folder}"
        in bara("ledger", folder, "approve", 2, "--reason", "agreed").stdout
    )
    bara("resume", folder)
    assert [entry["n"] > 0 for entry in result(folder)["history"]] == [False, False, True]


def test_an_operator_takes_back_what_was_promised_before_a_kill(stopped):
    folder, _ = stopped
    done = bara("ledger", folder, "void", 4, "--reason", "the machine is gone")
    assert done.stdout == f"round 4 is void; go on with: bara resume {folder}\n"
    bara("resume", folder)
    assert not any(paid for number, _, paid in settled(folder) if number == 4)
    assert result(folder)["history"][4]["n"] == 0
    assert (
        "round 4 is already settled"
        in bara("ledger", folder, "void", 4, "--reason", "again", code=1).stderr
    )
    assert bara("ledger", folder, "verify").stdout.startswith("the record is whole")


def zero(path):
    """A checkpoint whose weights somebody set to zero, whole in itself."""
    found = load(path)
    save(
        path,
        {name: np.zeros_like(array) for name, array in found.arrays.items()},
        found.round,
        found.extra,
    )


@pytest.mark.xdist_group("undisturbed")
@pytest.mark.parametrize("damage", ["newest cut short", "all cut short", "all gone", "all zeroed"])
def test_damaged_checkpoints_cost_time_and_nothing_else(undisturbed, tmp_path, damage):
    folder = tmp_path / "run"
    bara(
        "run", "--out", folder, changes=SIMULATED, code=-9, environment={"BARA_FAULT": "promised@6"}
    )
    saved = sorted((folder / "checkpoints").iterdir())
    for path in saved[-1:] if damage == "newest cut short" else saved:
        if damage == "all gone":
            path.unlink()
        elif damage == "all zeroed":
            zero(path)
        else:
            path.write_bytes(path.read_bytes()[:100])
    bara("resume", folder)
    for name in ("result.json", "model-final.npz", "model-best.npz", "model-average.npz"):
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()


def test_a_ledger_that_was_tampered_with_is_not_resumed(stopped):
    folder, _ = stopped
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        connection.execute("DROP TRIGGER promises_no_update")
        connection.execute("UPDATE promises SET amount = amount + 1 WHERE round = 4")
        connection.commit()
    done = bara("resume", folder, code=1)
    assert (
        "is not whole: event 13: its hash does not fit its content (awarded of round 4)"
        in done.stderr
    )
    assert bara("ledger", folder, "verify", code=1).stdout.startswith(
        "the record is NOT whole: event 13"
    )


def test_a_removed_tail_is_found_by_the_receipt(tmp_path):
    folder, receipt = tmp_path / "run", tmp_path / "receipt.json"
    bara(
        "run", "--out", folder, changes=[*SMALL, "budget.max_rounds=4", f"ledger.receipt={receipt}"]
    )
    assert ", the receipt fits" in bara("ledger", folder, "verify").stdout
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        connection.execute("DROP TRIGGER events_no_delete")
        connection.execute("DELETE FROM events WHERE kind = 'closed'")
        connection.commit()
    elsewhere = receipt.rename(tmp_path / "elsewhere.json")
    with_it = bara("ledger", folder, "verify", "--receipt", elsewhere, code=1)
    assert "its tail is missing" in with_it.stdout
    elsewhere.rename(receipt)
    assert "its tail is missing" in bara("ledger", folder, "verify", code=1).stdout
    assert "its tail is missing" in bara("resume", folder, code=1).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["resume", "nowhere"], "there is no run in 'nowhere'"),
        (["ledger", "nowhere", "verify"], "there is no run in 'nowhere'"),
        (
            ["run", "--set", "ledger.key=BARA_NO_SUCH_KEY"],
            "environment variable 'BARA_NO_SUCH_KEY', which is not set",
        ),
        (["run", "--set", "ledger.retention=burn"], "ledger.retention"),
    ],
)
def test_bad_usage_is_one_clear_line(tmp_path, words, message):
    done = bara(*words, code=2, cwd=tmp_path)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_run_whose_books_are_gone_does_not_begin_anew(stopped):
    folder, _ = stopped
    for path in folder.glob("ledger.db*"):
        path.unlink()
    for words in (["resume", folder], ["ledger", folder, "statement"]):
        assert "were opened in" in bara(*words, code=1).stderr
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (0,)


def test_a_relative_database_is_the_same_from_every_folder(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    changes = [*SMALL, "budget.max_rounds=6", "ledger.url=sqlite:///books.db"]
    fault = {"BARA_FAULT": "promised@4"}
    bara(
        "run",
        "--out",
        tmp_path / "run",
        changes=changes,
        code=-9,
        environment=fault,
        cwd=tmp_path / "here",
    )
    bara("resume", tmp_path / "run", cwd=tmp_path / "there")
    assert not list((tmp_path / "there").iterdir())
    assert len(result(tmp_path / "run")["history"]) == 7


def test_another_runs_receipt_is_not_written_over(tmp_path):
    changes = [*SMALL, "budget.max_rounds=3", f"ledger.receipt={tmp_path / 'receipt.json'}"]
    bara("run", "--out", tmp_path / "one", changes=changes)
    before = (tmp_path / "receipt.json").read_bytes()
    again = bara("run", tmp_path / "one" / "config.toml", "--out", tmp_path / "two", code=2)
    assert "may be another run's" in again.stderr
    assert (tmp_path / "receipt.json").read_bytes() == before


def test_a_second_ctrl_c_stops_at_once_and_costs_nothing(tmp_path):
    """The fourth round waits for a file that comes only after the second interruption."""
    gated = [
        "federation.engine=hostile:Hostile",
        "clients.count=8",
        "budget.total=300",
        "budget.max_rounds=6",
    ]
    path = os.pathsep.join(
        [str(Path(__file__).parent.parent / "dashboard"), os.environ.get("PYTHONPATH", "")]
    )
    there = {**os.environ, "PYTHONPATH": path}
    gate = tmp_path / "gate"
    opened = tmp_path / "gate-4"
    opened.touch()
    bara(
        "run",
        "--out",
        tmp_path / "whole",
        changes=[*gated, f"federation.gate={gate}"],
        environment=there,
    )
    opened.unlink()
    folder = tmp_path / "run"
    with started(
        "run", "--out", folder, changes=[*gated, f"federation.gate={gate}"], env=there
    ) as process:
        wait_for_round(folder, 3, process)
        process.send_signal(signal.SIGINT)
        assert any("Ctrl-C again" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert {number for number, *_ in settled(folder)} == {1, 2, 3}
    opened.touch()
    bara("resume", folder, environment=there)
    assert settled(folder) == settled(tmp_path / "whole")


@pytest.mark.xdist_group("undisturbed")
def test_a_copied_folder_that_is_adopted_goes_on_elsewhere_with_other_processes(
    undisturbed, tmp_path
):
    first, second = tmp_path / "first", tmp_path / "second" / "first"
    bara(
        "run", "--out", first, changes=SIMULATED, code=-9, environment={"BARA_FAULT": "promised@5"}
    )
    shutil.copytree(first, second)
    config = (second / "config.toml").read_text()
    assert config.count("\nworkers = ") == 1
    (second / "config.toml").write_text(re.sub("\nworkers = .*\n", "\nworkers = 2\n", config))
    assert f"bara ledger {second} adopt" in bara("resume", second, code=1).stderr
    bara("ledger", second, "adopt", "--reason", "agreed")
    bara("resume", second)
    assert result(second) == result(undisturbed)
    assert (second / "model-final.npz").read_bytes() == (
        undisturbed / "model-final.npz"
    ).read_bytes()


def test_a_client_checks_what_the_operator_signed(tmp_path):
    folder, secret = tmp_path / "run", {"SECRET": "of the operator"}
    bara(
        "run",
        "--out",
        folder,
        changes=[*SMALL, "budget.max_rounds=4", "ledger.key=SECRET"],
        environment=secret,
    )
    key = bara("ledger", folder, "sign", environment=secret).stdout.strip()
    account = json.loads(bara("ledger", folder, "statement", "--json").stdout)
    client, paid = next((one["client"], one["paid"]) for one in account["clients"] if one["paid"])
    signed = bara("ledger", folder, "sign", "--client", client, environment=secret).stdout
    (tmp_path / "signed.json").write_text(signed)
    good = ["receipt", tmp_path / "signed.json", "--public-key", key]
    assert (
        f"the receipt is good: the operator signed that {client} earned"
        in bara(*good, "--paid", paid).stdout
    )
    assert "Traceback" not in bara(*good, "--paid", paid + 1, code=1).stderr
    assert (
        "Traceback"
        not in bara("receipt", tmp_path / "signed.json", "--public-key", "00" * 32, code=1).stderr
    )
    (tmp_path / "none.json").write_text("{")
    assert (
        "cannot be read as a receipt"
        in bara("receipt", tmp_path / "none.json", "--public-key", key, code=2).stderr
    )
    assert "signing needs a key" in bara("ledger", folder, "sign", code=2).stderr
