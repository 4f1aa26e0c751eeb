"""Junk in configurations and in ledger files: each time a result or one clear line,
never a traceback or a hang.

    python tests/e2e/fuzz.py configurations --cases 2000
    python tests/e2e/fuzz.py ledgers --cases 1000

Every case is a process of its own with little memory and time. Whatever goes wrong is listed, with
its cause.
"""

import argparse
import datetime as dt
import hashlib
import json
import math
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import forks
import tomli_w

from bara.runs.config import Config

GIGABYTE = 2**30
SECONDS = 20


def limited():
    """So much memory and no more: what asks for terabytes is to be told so,
    and is not to take the machine down.
    """
    resource.setrlimit(resource.RLIMIT_AS, (6 * GIGABYTE, 6 * GIGABYTE))


def plainly(words):
    """One command in this process: its exit code, what it printed,
    and the traceback it would have left.
    """
    trace, code = "", 1
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as file:
        sys.stdout = sys.stderr = file
        try:
            code = forks.program(words)
        except Exception:  # noqa: BLE001 - whatever it is, it is to be told
            trace = traceback.format_exc()
        file.seek(0)
        return {"code": code, "words": file.read(), "trace": trace}


def problem(answer):
    """What is wrong with an answer, or None."""
    if answer is None:
        return "it hangs, or was killed"
    if answer["trace"]:
        return answer["trace"].strip().splitlines()[-1] + " | " + _last_place(answer["trace"])
    if "Traceback" in answer["words"] or "a bug in bara" in answer["words"]:
        return f"a traceback, or a line that stands for one: {answer['words'].strip()[-200:]!r}"
    lines = [
        line
        for line in answer["words"].splitlines()
        if line.startswith(("bara: ", "the record is NOT whole"))
    ]
    if answer["code"] not in {0, 1, 2}:
        return f"exit code {answer['code']}"
    if answer["code"] and len(lines) != 1 and "Usage:" not in answer["words"]:
        return f"{len(lines)} lines say why: {answer['words'][-300:]!r}"
    return None


def _last_place(trace):
    places = [line.strip() for line in trace.splitlines() if "/bara/" in line]
    return places[-1].rpartition("/src/")[2] if places else ""


# --- configurations -------------------------------------------------------------------------------

BASE = {
    "budget": {"total": 6, "max_rounds": 3},
    "clients": {"count": 4},
    "allocator": {"name": "even"},
    "federation": {"engine": "synthetic"},
}
OPTIONS = [
    "allocator.carry_over",
    "mechanism.reserve",
    "federation.ceiling",
    "federation.noise",
    "federation.",
    "nonsense",
]
JUNK = [
    *(0, -1, 1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(0.0, -0.0, 0.5, -0.5, 1e-300, 1e300, 5e-324, math.nan, math.inf, -math.inf, 1.0, 3.0),
    *(
        True,
        False,
        "",
        " ",
        "0",
        "1",
        "-1",
        "1e400",
        "nan",
        "inf",
        "0.0000001",
        "1_000",
        "١٢",
        "3,5",
        "0x10",
    ),
    *(
        "x" * 100_000,
        "9" * 5000,
        "a\nb",
        "\x00",
        "\x1b[31m",
        "é",
        "\u202e",
        "../../etc",
        "/",
        "//",
        "~",
        "%s%n",
        "{0}",
    ),
    *(
        "uniform(nan, inf)",
        "uniform(1, 0)",
        "uniform(1e308, 1e309)",
        "uniform(0, 0)",
        "normal(1, -1)",
        "lognormal(900, 9)",
    ),
    *(
        "shards(0)",
        "shards(99999999999)",
        "dirichlet(0)",
        "quantity(1e400)",
        "overbid(1e400)",
        "learner(-1)",
        "mixed",
    ),
    *(
        "no.such:Thing",
        "os:system",
        "builtins:exec",
        ":",
        "a:",
        "json:dumps",
        "synthetic",
        "planner",
        "drop",
        "samples",
    ),
    *(
        "sqlite:///",
        "sqlite://",
        "postgresql+psycopg://",
        "mysql://x/y",
        "://",
        "sqlite:////nowhere/at/all.db",
    ),
    *(
        [],
        [[]],
        [1, "a", None.__class__.__name__],
        {},
        {"a": {"b": [{}]}},
        {"name": "even"},
        [[[[[[]]]]]],
    ),
    *(dt.date(1, 1, 1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC), dt.time(0)),
]
AS_TEXT = [
    "\udcff",
    "\udcff\udcfe",
    "",
    "[",
    "{a=1}",
    "'''",
    "1979-05-27",
    "nan",
    "-inf",
    "[nan]",
    "9" * 400,
    "0b1",
    "é",
]
MAY_TAKE_LONG = {"budget.max_rounds", "budget.total", "clients.count"}
"""More of these is more work, and no hang."""


def put(tree, key, value):
    *sections, last = key.split(".")
    for section in sections:
        if not isinstance(tree.setdefault(section, {}), dict):
            tree[section] = {}
        tree = tree[section]
    tree[last] = value


def keys_of(model, prefix=""):
    """Every key of a table and of those within it."""
    for name, field in model.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            yield from keys_of(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def configuration_cases(rng, count):
    """Every key with every value of the list, in a random order; then two and three at a time."""
    keys = [
        *keys_of(Config),
        *OPTIONS,
        "budget",
        "clients",
        "ledger",
        "data",
        "training",
        "mechanism",
        "allocator",
    ]
    single = [[("file", key, value)] for key in keys for value in JUNK]
    single += [[("set", key, value)] for key in keys for value in AS_TEXT]
    rng.shuffle(single)
    each = {case[0][1]: case for case in single}  # one of every key, however few there are
    order = [*each.values(), *single]
    yield from order[:count]
    for _ in range(count - len(order)):
        yield [rng.choice(single)[0] for _ in range(rng.randint(2, 3))]


def play_configuration(home, case, answer_file):
    """In the child: run it, and look at what it left."""
    tree, words = json.loads(json.dumps(BASE)), []
    for how, key, value in case:
        if how == "file":
            put(tree, key, value)
        else:
            words += ["--set", f"{key}={value}"]
    os.chdir(home)  # names that are no paths are files here
    try:
        (home / "config.toml").write_text(tomli_w.dumps(tree))
    except (TypeError, ValueError, AttributeError):
        return  # what TOML cannot say, no file says
    answer = plainly(["run", home / "config.toml", "--out", home / "run", *words])
    answer["nonsense"] = nonsense(home / "run") if answer["code"] == 0 else None
    answer_file.write_text(json.dumps(answer))


def nonsense(folder):
    """What a run that succeeded must not have: numbers that are none,
    in its configuration or in its result.
    """
    config, result = (folder / "config.toml").read_text(), (folder / "result.json").read_text()
    for value in _leaves(tomllib.loads(config)):
        if isinstance(value, float) and not math.isfinite(value):
            return f"accepted {value}"
    if "NaN" in result or "Infinity" in result:
        return "a result that is not finite"
    told = json.loads(result)
    if told["spent"] > told["budget"] + 1e-9 or told["spent"] < 0:
        return f"spent {told['spent']} of {told['budget']}"
    return None


def _leaves(tree):
    if isinstance(tree, dict | list):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(one)
    else:
        yield tree


def fuzz_configurations(home, rng, count, figures):
    for number, case in enumerate(configuration_cases(rng, count)):
        place = home / str(number)
        place.mkdir()
        answer_file = home / "answer.json"
        forks.remove(answer_file)
        code = forks.play(
            play_configuration, place, case, answer_file, before=limited, seconds=SECONDS
        )
        told = answer_file.exists()
        answer = json.loads(answer_file.read_text()) if told else None
        slow = not told and code == -14 and any(key in MAY_TAKE_LONG for _, key, _ in case)
        if not told and code == 0:
            figures["what TOML cannot say"] += 1
        elif slow:
            figures["much work, stopped"] += 1
        else:
            wrong = problem(answer) or answer["nonsense"]
            figures[
                "wrong" if wrong else "run" if answer["code"] == 0 else "refused in one line"
            ] += 1
            if wrong:
                yield f"{_short(case)}: {wrong}"
        forks.remove(place)


def _short(case):
    return "; ".join(f"{how} {key} = {str(value)[:40]!r}" for how, key, value in case)


# --- ledgers --------------------------------------------------------------------------------------

LEDGER = [
    *("federation.engine=synthetic", "budget.total=12", "budget.max_rounds=5", "clients.count=4"),
    "clients.failure_rate=0.3",
]
TABLES = ("runs", "events", "promises", "settlements", "closings", "top_ups", "sealed", "memories")
VALUES = [
    *(
        None,
        0,
        -1,
        1,
        2**62,
        -(2**63),
        0.5,
        1e300,
        b"",
        b"\xff\x00",
        b"[]",
        "",
        "[]",
        "{}",
        "null",
        "x",
        "0" * 64,
    ),
    *(
        '{"a":',
        "1e999",
        "\x1b[31m",
        "é" * 5000,
        '{"ended":7}',
        '{"place":[]}',
        "0001",
        "9999",
        "NaN",
        '"',
        "[[[[",
    ),
]
COMMANDS = [["statement", "--json"], ["export"], ["payouts"]]
"""What these print of an unchanged record, they print of a changed one, or refuse it."""


def make_ledgers(home):
    """A run that has ended and one that is paused, each with its receipt.

    Of both what they say, and every row.
    """
    made = {}
    for name, fault in (("ended", ""), ("stopped", "promised@3")):
        folder = home / name
        changes = [*LEDGER, f"ledger.receipt={home / name}.receipt"]
        forks.call("run", "--out", folder, *(w for c in changes for w in ("--set", c)), fault=fault)
        with closing(sqlite3.connect(folder / "ledger.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            stored = connection.execute("SELECT previous, hash, number FROM events ORDER BY number")
            assert stored.fetchall() == list(hashes(connection)), "who rehashes does it otherwise"
        made[name] = {
            "rows": rows(folder),
            "said": forks.answers(lambda f=folder: ask(f, COMMANDS)),
        }
    return made


def rows(folder):
    """Every row of the record, or None where it cannot be read.

    SQLite checks less of a schema that is only read.
    """
    try:
        with closing(
            sqlite3.connect(f"file:{folder / 'ledger.db'}?immutable=1", uri=True)
        ) as connection:
            return [
                [repr(sorted(map(repr, connection.execute(f"SELECT * FROM {t}"))))]  # noqa: S608 - ours
                for t in TABLES
            ]
    except (sqlite3.Error, UnicodeError):
        return None


def ask(folder, commands):
    """In the child: what each command says."""
    return [plainly(["ledger", folder, *words]) for words in commands]


def ask_all(folder):
    """In the child: every reading command, the dashboard, and, last, to go on."""
    from starlette.testclient import TestClient  # noqa: PLC0415

    from bara.dashboard.server import Address, RunIndex, make_app  # noqa: PLC0415 - in the child

    told = ask(folder, [["verify", "--receipt", f"{folder}.receipt"], *COMMANDS])
    visitor = TestClient(
        make_app(RunIndex(folder), Address().rules()),
        base_url="http://localhost",
        raise_server_exceptions=False,
    )
    pages = ["/index.json", f"/runs/{folder.name}.json", f"/runs/{folder.name}/rounds/1.json"]
    statuses = [visitor.get(page).status_code for page in pages]
    return {
        "told": told,
        "pages": dict(zip(pages, statuses, strict=True)),
        "resume": plainly(["resume", folder]),
    }


def flip(folder, rng):
    """Some bits of the file are others."""
    path = folder / "ledger.db"
    content, times = bytearray(path.read_bytes()), rng.choice([1, 1, 2, 8, 64])
    for _ in range(times):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return f"{times} bits flipped"


def edit(folder, rng):
    """One value, one row or the schema is another.

    The triggers that forbid it are dropped first, and made again.
    """
    with closing(sqlite3.connect(folder / "ledger.db", isolation_level=None)) as connection:
        table = rng.choice(
            [*TABLES, "events", "events", "settlements", "promises", "alembic_version"]
        )
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        keys = [one[1] for one in columns if one[5]] or [columns[0][1]]
        found = connection.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()  # noqa: S608
        if not found:
            return f"{table} is empty"
        rules = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        kept = rules.fetchall()
        for name, _ in kept:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        what = rng.choice(["value", "value", "value", "nudge", "delete", "swap", "drop", "rehash"])
        here, there = (
            " AND ".join(
                f"{key} = {value!r}" for key, value in zip(keys, rng.choice(found), strict=True)
            )
            for _ in range(2)
        )
        column, value = rng.choice(columns)[1], rng.choice(VALUES)
        try:
            return _edit(connection, what, table, column, value, here, there)
        except sqlite3.Error as error:
            return f"{what} {table}.{column}: {error}"
        finally:
            for _, sql in kept:
                with suppress(sqlite3.Error):  # a table may be gone
                    connection.execute(sql)


def _edit(connection, what, table, column, value, here, there):
    if what == "value":
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {here}", [value])  # noqa: S608
        return f"{table}.{column} = {value!r:.30} where {here}"
    if what == "nudge":
        connection.execute(f"UPDATE {table} SET {column} = {column} + 1 WHERE {here}")  # noqa: S608
        return f"{table}.{column} + 1 where {here}"
    if what == "delete":
        connection.execute(f"DELETE FROM {table} WHERE {here}")  # noqa: S608
        return f"{table} without {here}"
    if what == "swap":
        other = f"(SELECT {column} FROM {table} WHERE {there})"  # noqa: S608
        connection.execute(f"UPDATE {table} SET {column} = {other} WHERE {here}")  # noqa: S608
        return f"{table}.{column} where {here} is that of {there}"
    if what == "drop":
        connection.execute(f"ALTER TABLE {table} RENAME TO lost")
        return f"there is no table {table}"
    number, body = connection.execute(
        "SELECT number, body FROM events ORDER BY random() LIMIT 1"
    ).fetchone()
    text = value if isinstance(value, str) else body.replace("1", "2")
    connection.execute("UPDATE events SET body = ? WHERE number = ?", [text, number])
    rehash(connection)
    return f"event {number} = {text!r:.40}, rehashed"


def rehash(connection):
    """Hashes made anew for whatever the bodies say, as somebody would who has no key to fear."""
    connection.executemany(
        "UPDATE events SET previous = ?, hash = ? WHERE number = ?", list(hashes(connection))
    )


def hashes(connection):
    """Of each event: the hash before, its own, and its number."""
    (name,) = connection.execute("SELECT name FROM runs").fetchone()
    previous = "0" * 64
    for number, kind, about, at, body in connection.execute(
        "SELECT number, kind, round, at, body FROM events ORDER BY number"
    ).fetchall():
        made_of = [name, number, kind, about, at, body, _amounts(connection, kind, about, number)]
        text = json.dumps(made_of, separators=(",", ":"), ensure_ascii=False)
        value = hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
        yield previous, value, number
        previous = value


def _amounts(connection, kind, about, number):
    def rows_of(text, *values):
        return [list(row) for row in connection.execute(text, values)]

    if kind == "opened":
        return rows_of("SELECT total, max_rounds FROM runs")[0]
    if kind == "awarded":
        return rows_of("SELECT client, amount FROM promises WHERE round = ? ORDER BY rank", about)
    if kind == "settled":
        paid = rows_of(
            "SELECT client, paid, reason FROM settlements WHERE round = ? ORDER BY client", about
        )
        balance = "SELECT total, spent_before, paid, spent_after FROM closings WHERE round = ?"
        return [paid, *rows_of(balance, about)]
    if kind == "topped up":
        return [row[0] for row in rows_of("SELECT amount FROM top_ups WHERE number = ?", number)]
    return []


def fuzz_ledgers(home, rng, count, figures):
    made = make_ledgers(home)
    kept = home / "kept"
    kept.mkdir()
    for name in made:
        (home / name).rename(kept / name)
        (home / f"{name}.receipt").rename(kept / f"{name}.receipt")
    for _ in range(count):
        name = rng.choice(list(made))
        for path in (home / name, home / f"{name}.receipt"):
            forks.remove(path)
        shutil.copytree(kept / name, home / name)
        shutil.copy(kept / f"{name}.receipt", home / f"{name}.receipt")
        before = made[name]
        done = f"{name}: {rng.choice([flip, edit, edit])(home / name, rng)}"
        changed = rows(home / name) != before["rows"]
        answer = forks.answers(lambda f=home / name: ask_all(f), before=limited, seconds=60)
        found = list(_ledger_problems(answer, before, changed=changed))
        figures["wrong" if found else _outcome(answer, changed)] += 1
        yield from (f"{done}: {one}" for one in dict.fromkeys(found))


def _outcome(answer, changed):
    if answer["told"][0]["code"]:
        return "changed, and found or refused" if changed else "unchanged rows, refused"
    return "unchanged rows, whole"


def _ledger_problems(answer, before, *, changed):
    if answer is None:
        yield "it hangs, or was killed"
        return
    verified, *told = answer["told"]
    for words, one in [
        (["verify"], verified),
        *zip(COMMANDS, told, strict=True),
        (["resume"], answer["resume"]),
    ]:
        if wrong := problem(one):
            yield f"{' '.join(words)}: {wrong}"
    if changed and verified["code"] == 0:
        yield "verify takes a changed record for whole"
    for words, one, said in zip(COMMANDS, told, before["said"], strict=True):
        if one["code"] == 0 and one["words"] != said["words"]:
            yield f"{' '.join(words)} tells what was never so"
    if changed and answer["resume"]["code"] == 0:
        yield "resume goes on from a changed record"
    yield from (
        f"{page} answers {status}" for page, status in answer["pages"].items() if status == 500
    )


# --- all of them ----------------------------------------------------------------------------------

WAYS = {"configurations": fuzz_configurations, "ledgers": fuzz_ledgers}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(WAYS))
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    forks.prepare("dashboard")
    figures, begun, home = Counter(), time.monotonic(), Path(tempfile.mkdtemp(prefix="bara-fuzz-"))
    wrong = []
    for one in WAYS[chosen.what](home, random.Random(chosen.seed), chosen.cases, figures):
        wrong.append(one)
        print(one, flush=True)
    shutil.rmtree(home)
    minutes = (time.monotonic() - begun) / 60
    print(
        f"{chosen.what}, {sum(figures.values())} cases, {minutes:.1f} minutes: {len(wrong)} "
        f"things went wrong"
    )
    for what, times in figures.most_common():
        print(f"{times:7}  {what}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
