"""Apps without a strategy: the loop on the page pays their clients, and finds what they find."""

import json
import logging
import re
import sys

import pytest
from flwr.app import Context, RecordDict
from refusals import refused

from bara.errors import ConfigError
from bara.flower import answer_bids, fixed
from bara.ledger import verify
from bara.runs.database import DatabaseRun

from .conftest import LocalGrid, raising
from .test_apps_of_others import APPS, CLIENTS, load
from .test_strategy_contract import PAGE

LOOP = re.search(r"```python\n(import bara\n.*?)```", PAGE, re.DOTALL)[1]


def breaking(reply):
    """A client that bids and breaks when it works."""
    return raising(reply) if reply.metadata.message_type == "query" else reply


def play(app, mishaps=None):
    """The app under the loop of the page; returns the records of the rounds, oldest first."""
    grid = LocalGrid(app.client, CLIENTS)
    grid.mishaps = mishaps or {}
    names = {"__name__": "server_app"}
    exec(compile(LOOP, "page", "exec"), names)  # noqa: S102 - our own page
    names["app"](grid, Context(1, 0, {}, RecordDict(), {}))
    with DatabaseRun.find("sqlite:///survey.db", "survey") as run:
        books = run.open_books()
        assert verify(books, None).ok
        return list(books.history())


@pytest.fixture(params=["kaplan_meier", "federated_analytics"])
def app(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = load(APPS / f"{request.param}.py")
    monkeypatch.setitem(sys.modules, "analysis", app)
    return app


def found(folder):
    return json.loads((folder / "result.json").read_text())


def test_with_money_enough_the_loop_finds_what_the_app_finds(app, tmp_path):
    app.server(LocalGrid(app.client, CLIENTS), Context(1, 0, {}, RecordDict(), {}))
    plain = found(tmp_path)
    answer_bids(app.client, fixed("1.00"))
    records = play(app)
    assert found(tmp_path) == pytest.approx(plain, rel=1e-12)
    assert len(records) == 1 + 1
    assert len(records[1].payments) == CLIENTS


def test_who_does_not_answer_is_not_paid(app):
    answer_bids(app.client, fixed("1.00"))
    records = play(app, {("query", 1): breaking})
    assert len(records[1].payments) == CLIENTS - 1
    assert list(records[1].delivery.void.values()) == [
        "its app raised an error: RuntimeError('boom')"
    ]


@pytest.mark.parametrize(("price", "mishap"), [("9.00", None), ("1.00", breaking)])
def test_a_round_in_which_nobody_wins_or_replies_costs_nothing(app, price, mishap, tmp_path):
    answer_bids(app.client, fixed(price))
    mishaps = {("query", client): mishap for client in range(CLIENTS)}
    records = play(app, mishaps)
    assert [record.paid for record in records] == [0, 0]
    assert not (tmp_path / "result.json").exists()


def test_flower_logs_why_the_loop_cannot_go_on_in_one_line(app, logged):
    with refused(ConfigError, "answer_bids") as caught:
        play(app)
    logging.getLogger("flwr").error("ServerApp raised an exception", exc_info=caught.value)
    [refusal] = [record for record in logged.records if "raised an exc" in record.message]
    assert "answer_bids" in refusal.message
    assert refusal.exc_info is None


def test_the_loop_takes_about_twenty_five_lines():
    assert len(LOOP.strip().splitlines()) <= 32
