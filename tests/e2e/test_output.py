"""What a run tells of itself never fails it,
and whatever fails is one line in which nothing steers the terminal.
"""

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from programs import arguments, bara, result, started, until
from typer.testing import CliRunner

from bara.cli import app
from bara.cli.output import errors

STEERING = "\x1b]0;owned\x07\x1b[2J\u202e"
"""A title for the window, a bell, a screen wiped, and a change of direction."""

SMALL = ["federation.engine=synthetic", "budget.total=20", "budget.max_rounds=6", "clients.count=6"]
SMALL += ["allocator.name=even"]
PLUGINS = '''
import time
from pathlib import Path
import numpy as np
from bara import Bids, Delivery, Evaluation, Evidence, Offer
from bara.server.checkpoints import CheckpointStore

STEERING = "\\x1b]0;owned\\x07\\x1b[2J\\u202e"

class Failing:
    """Fails in the third round."""

    def ask(self, purse):
        return Offer.recruit(2) if purse.round < 3 else {}["nowhere" + STEERING]

    def tell(self, record):
        pass

class Strangers:
    """Clients that chose their names, and their excuses, with care."""

    def __init__(self, config):
        pass

    def evaluate(self):
        return Evaluation(0.1)

    def bids(self, round):
        return Bids.of({"=1+1": 0.1, STEERING: 0.1, "-2+3": 0.1, "@plain": 1})

    def train(self, round, award):
        *others, first = award.clients
        delivered = {one: Evidence() for one in others}
        return Delivery(Evaluation(0.5), delivered, {first: "+cmd|' /C calc'!A0" + STEERING})

class Saving(Strangers):
    """Saves a model that is large."""

    def train(self, round, award):
        CheckpointStore(Path(), durable=True).put(round, {"state": np.zeros(50_000)})
        return super().train(round, award)

def slow():
    """A dataset that is loaded for ever."""
    Path("loading").touch()
    time.sleep(600)
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with plug-ins in it, in which the program is started."""
    (tmp_path / "plugins.py").write_text(PLUGINS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(done):
    """The one line in which a program said what is wrong."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("round ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("bara: ")
    assert lines[0].isprintable()
    return lines[0]


@pytest.mark.parametrize("streams", [("stderr", "stdout"), ("stderr",)])
def test_who_stops_reading_does_not_stop_the_run(here, streams):
    reading, writing = os.pipe()
    os.close(reading)
    kept = {"stdout": subprocess.DEVNULL, **dict.fromkeys(streams, writing)}
    done = subprocess.run(arguments("run", "--out", "one", changes=SMALL), check=False, **kept)
    os.close(writing)
    assert done.returncode == (141 if "stdout" in streams else 0)
    assert result(here / "one")["rounds"] == 6


def test_a_full_disk_under_the_output_is_one_line_and_under_the_progress_nothing(here):
    with Path("/dev/full").open("w") as full:
        command = arguments("run", "--out", "one", changes=SMALL)
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        quiet = subprocess.run(
            arguments("resume", "one"), stdout=subprocess.DEVNULL, stderr=full, check=False
        )
    assert done.returncode == 1
    assert complaint(done) == (
        "bara: standard output: No space left on device; the books are whole; go on with: bara "
        "resume one"
    )
    assert quiet.returncode == 0
    assert result(here / "one")["rounds"] == 6


@pytest.mark.usefixtures("here")
def test_a_terminal_that_knows_ascii_alone_is_shown_a_run_and_its_account():
    ascii_alone = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    assert bara("run", "--out", "one", changes=SMALL, environment=ascii_alone).stdout.isascii()
    assert "client-3" in bara("ledger", "one", environment=ascii_alone).stdout


def test_streams_that_are_closed_do_not_matter(here):
    shell = 'exec "$@" >&- 2>&-'
    subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *arguments("run", "--out", "one", changes=SMALL)], check=True
    )
    assert result(here / "one")["rounds"] == 6


def test_a_plug_in_that_fails_is_named_with_its_line_and_the_run_can_go_on(here):
    failing = [*SMALL, "allocator.name=plugins:Failing"]
    said = complaint(bara("run", "--out", "one", changes=failing, code=1))
    assert f"(in the plug-in plugins:Failing, {here / 'plugins.py'}:14)" in said
    assert "bara: KeyError: 'nowhere" in said
    assert said.endswith("the books are whole; go on with: bara resume one")
    assert "bug in bara" not in said
    for words in (["--debug", "resume", "one"], ["resume", "one", "--debug"]):
        assert "Traceback (most recent call last)" in bara(*words, code=1).stderr


def test_ctrl_c_while_data_are_loaded_is_one_line(here):
    changes = ["federation.engine=simulator", "data.name=plugins:slow"]
    with started("run", "--out", "one", changes=changes) as process:
        until((here / "loading").exists, process)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # a shell says 130 for both
    assert said == "bara: interrupted\n"
    assert not (here / "one").exists()


def test_ctrl_c_is_heard_while_the_program_is_still_imported(here):
    """The parser that every verb needs stands still while it is imported."""
    (here / "typer.py").write_text(
        "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(600)\n"
    )
    found = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    with started("--version", env={**os.environ, "PYTHONPATH": found}) as process:
        until((here / "loading").exists, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "bara: interrupted\n"


def test_a_checkpoint_that_finds_no_room_stops_the_run_with_its_books_whole(here):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    changes = ["federation.engine=plugins:Saving", *SMALL[1:]]
    said = complaint(bara("run", "--out", "one", changes=changes, code=1, preexec_fn=limited))
    assert "checkpoints/round-1.npz: File too large" in said
    assert said.endswith("the books are whole; go on with: bara resume one")
    assert answer("ledger", "one", "verify").startswith("the record is whole")
    assert not list(here.glob("checkpoints/*"))


def answer(*words, code=0):
    """What the program prints, without a process of its own."""
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def strangers(here, monkeypatch):
    """A finished run of theirs."""
    monkeypatch.syspath_prepend(here)
    monkeypatch.delitem(sys.modules, "plugins", raising=False)
    answer("run", "--out", "one", *settings("federation.engine=plugins:Strangers", *SMALL[1:]))
    return here / "one"


def settings(*changes):
    return [word for change in changes for word in ("--set", change)]


def test_what_strangers_call_themselves_steers_neither_terminal_nor_spreadsheet(strangers):
    shown = [
        ["report", strangers],
        ["ledger", strangers],
        ["ledger", strangers, "statement", "--client", "=1+1"],
    ]
    answer("ledger", strangers, "payouts", "--new")
    payouts, own = ["payouts", "--batch", "1"], ["statement", "--csv", "--client", STEERING]
    exports = [payouts, ["export", "--csv"], ["statement", "--csv"], own]
    for words in (*shown, *(["ledger", strangers, *words] for words in exports)):
        assert not {*STEERING, "\r"} & {*answer(*words)} - {*"]0;owned[2J"}, words
    assert "⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+202E⟩" in answer("ledger", strangers)
    refusal = answer("ledger", strangers, "statement", "--client", "\x1b[2Jno\nsuch", code=1)
    assert refusal.startswith("bara: no client '\\x1b[2Jno\\nsuch' has bid in 'one'; ")
    texts = [answer("ledger", strangers, *words) for words in exports]
    for text in (*texts, Path("one-report/figures/rounds.csv").read_text()):
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in cells if cell[:1] in {*"=+-@\t\r"}]
    assert "\n'=1+1," in texts[2]
    assert "\n⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+202E⟩," in texts[2]
    assert ",'+cmd|' /C calc'!A0⟨U+001B⟩" in texts[1]


def test_every_amount_in_json_stands_beside_its_exact_text(here):
    changes = settings(
        *SMALL, "budget.total='4611686018427.387903'", "clients.bids=constant(99999999999.5)"
    )
    run = json.loads(answer("run", "--out", "one", "--json", *changes))
    account = json.loads(answer("ledger", "one", "statement", "--json"))
    export = json.loads(answer("ledger", "one", "export"))
    assert run["budget_exact"] == account["budget_exact"] == "4611686018427.387903"
    assert run["payments_exact"] == {one["client"]: one["paid_exact"] for one in account["clients"]}
    assert run == result(here / "one")
    for tree in (run, account, export):
        found = list(amounts(tree))
        assert len(found) > 5
        assert all(float(exact) == number for exact, number in found)


def amounts(tree):
    """Every amount that is there as text, with the number beside it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, str) and key.endswith("_exact"):
                yield value, tree[key.removesuffix("_exact")]
            yield from amounts(value)
    elif isinstance(tree, list):
        for one in tree:
            yield from amounts(one)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--out", "x" * 300], "File name too long"),
        (["resume", "x" * 300], "File name too long"),
        (
            ["run", "--out", "bad\udcff"],
            "the run's folder must have a name in UTF-8, got 'bad\\udcff'",
        ),
        (
            ["run", "--set", "ledger.receipt=bad\udcff"],
            "ledger.receipt must be text without NUL or lone surrogates, got 'bad\\udcff'",
        ),
        (["run", "--set", f"ledger.receipt={'x' * 300}"], "File name too long"),
        (["run", "--set", f"budget.max_rounds={2**63}"], "max_rounds must be from 1 to 2147483647"),
        (["run", "/dev/zero"], "/dev/zero is not a TOML file: it has more than 256 MB"),
        (["ledger", "/dev/null"], "there is no run in '/dev/null'"),
        (["receipt", "plugins.py", "--public-key", "00"], "plugins.py cannot be read as a receipt"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_no_file_can_be_called_or_hold_is_bad_usage(words, message):
    synthetic = settings("federation.engine=synthetic") if words[0] == "run" else []
    said = answer(*words, *synthetic, code=2)
    assert message in said
    assert said.count("\n") == 1


def test_a_report_that_cannot_be_written_is_one_line(here):
    answer("run", "--out", "one", *settings(*SMALL))
    (here / "one-report/report.html").mkdir(parents=True)
    said = "bara: cannot write one-report/report.html: Is a directory\n"
    assert answer("report", "one", code=1) == said


@pytest.mark.parametrize(
    "junk", ["[]", '{"command": 1, "config": 2, "cells": 3}', "[" * 100_000, "{"]
)
def test_a_folder_that_holds_no_comparison_is_one_line(here, junk):
    (here / "comparison.json").write_text(junk)
    assert "comparison.json' does not describe a comparison" in answer("report", here, code=2)


def test_a_fault_of_our_own_says_so_and_how_to_see_the_rest(capsys):
    for faulty in (KeyError("x"), RecursionError("deep"), MemoryError()):
        with pytest.raises(typer.Exit) as ended, errors():
            raise faulty
        assert ended.value.exit_code == 1
        said = capsys.readouterr().err  # a thread that another test left behind may log there, too
        (line,) = [line for line in said.splitlines() if line.startswith("bara: ")]
        assert line.startswith(
            "bara: this is a bug in bara; please report it with the output of --debug: "
        )
        assert "Traceback" not in said
