"""Who comes, who bids and who goes first: a run that cannot work ends at once, and says why."""

import threading
from collections import Counter

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app as program
from bara.errors import ConfigError, PausedError
from bara.flower import _bid_messages as bid_messages
from bara.flower import answer_bids, fixed
from bara.ledger.decisions import decisions
from bara.runs.folder import RunFolder

from .conftest import LocalGrid, amid, bidding, identified, opened_bid, raising, silent, walking_app
from .test_app import account, begin


def test_an_app_whose_clients_cannot_bid_ends_at_once(tmp_path):
    app = ClientApp()

    @app.train()
    def train(message, _context):
        return Message(message.content, reply_to=message)

    with refused(ConfigError, "5 nodes", "No query function", "client_app.py", "answer_bids"):
        begin(tmp_path / "run", grid=LocalGrid(app, 5))
    whole, payments = account(tmp_path / "run")
    assert (whole.spent, len(payments)) == (0, 1)


def test_clients_that_sit_the_first_round_out_have_answered(federate, grid):
    def declined(reply):
        del reply.content.config_records["bara-bid"]["price"]
        return reply

    grid.mishaps = {("query", client): declined for client in range(5)}
    assert len(federate().bids(1)) == 0


def nobody(grid, mishap):
    """Every node answers requests for bids with this mishap."""
    grid.mishaps = {("query", client): mishap for client in range(5)}


@pytest.mark.parametrize("number", [1, 2])
def test_a_round_that_nobody_answers_is_tried_again_and_not_used_up(
    federate, clock, logged, number
):
    class Returning(LocalGrid):
        def pull_messages(self, message_ids):
            if clock.monotonic() > 100:
                self.mishaps = {}
            return super().pull_messages(message_ids)

        def push_messages(self, messages):
            if clock.monotonic() > 100:
                self.mishaps = {}
            return super().push_messages(messages)

    grid = Returning(walking_app(), 5)
    federation = federate(on=grid, bid_seconds=10.0)
    for earlier in range(1, number):
        federation.bids(earlier)
    grid.pushed.clear()
    nobody(grid, silent)
    assert len(federation.bids(number)) == 5
    tries = logged.text.count(f"round {number}: nobody bid (no answer within 10 seconds)")
    assert tries == 3  # after 10, 20 and 40 seconds
    asked = {bid_messages.asked_round(message) for message in grid.pushed}
    assert (asked, len(grid.pushed)) == ({number}, 5 * (tries + 1))
    assert {message.metadata.ttl for message in grid.pushed} == {20}  # dead before the next try


def test_a_run_that_nobody_bids_in_pauses_and_goes_on_with_the_same_round(tmp_path, logged):
    grid = LocalGrid(walking_app(), 5)
    with amid(1, "trained", lambda: nobody(grid, silent)):
        result = begin(tmp_path / "run", grid=grid)
    assert set(result.evaluate_metrics_serverapp) == {0, 1}
    assert "round 2: none of 5 nodes bid within" in logged.text
    assert "resume with the same `flwr run`" in logged.text
    told = CliRunner().invoke(program, ["ledger", str(tmp_path / "run")]).output
    assert "needs you: the run is paused" in told
    assert len(account(tmp_path / "run")[1]) == 1 + 1
    assert "initial model" not in logged.text
    grid.mishaps = {}
    begin(tmp_path / "run", grid=grid)
    assert [len(paid) for paid in account(tmp_path / "run")[1]] == [0, 3, 3, 3]


def test_a_run_that_nobody_answers_at_first_pauses_and_says_that_its_model_is_untrained(
    tmp_path, logged
):
    grid = LocalGrid(walking_app(), 5)
    nobody(grid, silent)
    result = begin(tmp_path / "run", grid=grid)
    assert "round 1: none of 5 nodes bid within" in logged.text
    assert "the Result holds the initial model, untrained" in logged.text
    assert not result.train_metrics_clientapp
    with RunFolder.find(tmp_path / "run") as found:
        [decision] = decisions(found.open_books())
    assert (decision.what, decision.by) == ("paused", "bara")
    assert decision.reason.startswith("round 1: none of 5 nodes bid within")
    grid.mishaps = {}
    begin(tmp_path / "run", grid=grid)
    assert [len(paid) for paid in account(tmp_path / "run")[1]] == [0, 3, 3, 3]


def test_where_one_client_cannot_bid_and_no_other_answers_the_run_is_refused_at_once(
    federate, grid
):
    nobody(grid, silent)
    grid.mishaps["query", 2] = raising
    with refused(ConfigError, "5 nodes", "boom", "answer_bids"):
        federate().bids(1)


def sitting_out(reply):
    """A client that answers and does not bid."""
    del reply.content.config_records["bara-bid"]["price"]
    return reply


def test_rounds_that_everybody_sits_out_pass_but_not_for_ever(federate, grid):
    federation = federate()
    nobody(grid, sitting_out)
    assert [len(federation.bids(number)) for number in (1, 2)] == [0, 0]
    grid.mishaps = {}
    federation.bids(3)
    nobody(grid, sitting_out)
    assert [len(federation.bids(number)) for number in (4, 5)] == [0, 0]
    with refused(PausedError, "round 6", "sit out"):
        federation.bids(6)


def test_a_run_whose_clients_all_crash_pauses_early_and_says_so(tmp_path, logged):
    grid = LocalGrid(walking_app(), 5)
    grid.mishaps = {("train", client): raising for client in range(5)}
    begin(tmp_path / "run", grid=grid, **{"bara.budget.max-rounds": 100})
    told = "nobody delivered in the last 3 rounds: all 4 clients that won failed (its app raised"
    assert told in logged.text
    whole, payments = account(tmp_path / "run")
    assert whole.spent == 0
    assert len(payments) < 6


@pytest.mark.parametrize(("mishap", "trained"), [(raising, 1), (silent, 2)])
def test_where_all_have_crashed_no_round_is_used_up_by_their_backing_off(
    tmp_path, logged, mishap, trained
):
    grid = LocalGrid(walking_app(), 5)
    grid.mishaps = {("train", client): mishap for client in range(5)}
    keys = {"bara.budget.max-rounds": 3, "bara.budget.total": 90}
    keys |= {"bara.mechanism.reserve": 6, "bara.allocator.n": 5}
    begin(tmp_path / "run", grid=grid, **keys)
    asked = [one for one in grid.pushed if one.metadata.message_type == "train"]
    assert len(asked) == 5 * trained  # whom nobody has heard of is asked again
    assert ("all 5 clients that won failed (its app raised" in logged.text) == (trained == 1)


@pytest.mark.parametrize("rounds", [1, 3, 100])
def test_a_reserve_below_every_price_pauses_the_run_at_once_and_can_be_corrected(
    tmp_path, logged, rounds
):
    keys = {"bara.mechanism.reserve": 0.5, "bara.budget.max-rounds": rounds}
    begin(tmp_path / "run", **keys)
    reasons = ("5 clients bid", "the cheapest asks 1.00", "bara.mechanism.reserve")
    paused = [line for line in logged.messages if "nobody could win in the last 1 round" in line]
    assert len(paused) == (rounds > 1)
    assert all(reason in line for reason in reasons for line in paused)
    assert len(account(tmp_path / "run")[1]) == 1 + 1
    keys["bara.mechanism.reserve"] = 6.0  # nothing was promised, so the run starts afresh
    begin(tmp_path / "run", **keys)
    assert [len(paid) for paid in account(tmp_path / "run")[1]][:2] == [0, 3]


@pytest.mark.parametrize("number", [2, 3])
def test_where_somebody_could_be_paid_once_prices_may_be_too_high_for_two_rounds(
    tmp_path, logged, number
):
    grid = LocalGrid(walking_app(), 5)
    dear = {("query", client): bidding(price=5_000_000) for client in range(5)}
    keys = {"bara.mechanism.reserve": 4.0, "bara.budget.max-rounds": 100}

    def raise_prices():
        grid.mishaps = dear

    with amid(number - 1, "trained", raise_prices):
        begin(tmp_path / "run", grid=grid, **keys)
    assert "nobody could win in the last 3 rounds" in logged.text
    assert len(account(tmp_path / "run")[1]) == 1 + number - 1 + 3


def test_rounds_that_are_too_poor_for_a_client_pass_and_say_so(tmp_path, logged):
    keys = {"bara.allocator.name": "even", "bara.allocator.n": "", "bara.budget.total": 5}
    begin(tmp_path / "run", **keys)
    told = "nobody wins: one client costs 2.00, the round may cost 1.25"
    assert logged.text.count(told) == 4
    assert len(account(tmp_path / "run")[1]) == 1 + 4


def test_a_simulation_that_crashed_is_noticed_at_once(federate, grid, monkeypatch, clock):
    nobody(grid, silent)
    ended = threading.Thread()
    monkeypatch.setattr(threading, "main_thread", lambda: ended)
    with refused(PausedError, "simulation has crashed"):
        federate(bid_seconds=600.0).bids(1)
    assert clock.monotonic() < 1


@pytest.mark.parametrize(
    "mod", [fixedclipping_mod, adaptiveclipping_mod, LocalDpMod(1.0, 1.0, 1.0, 1e-5)]
)
def test_bids_pass_mods_that_expect_a_model(mod):
    app = ClientApp(mods=[mod])
    answer_bids(app, fixed(2))
    assert opened_bid(app).price == 2_000_000
    seen = []

    @app.train()
    def train(message, _context):
        seen.append(message)
        return Message(message.content, reply_to=message)

    work = identified(Message(RecordDict(), 7, "train"), "work")
    assert app(work, Context(1, 7, {}, RecordDict(), {})).has_error()  # mods still guard training
    assert not seen


def test_a_window_that_most_miss_is_warned_of(federate, grid, logged):
    grid.mishaps = {("query", client): silent for client in range(3)}
    assert len(federate().bids(1)) == 2
    assert (
        "round 1: 3 of 5 nodes did not bid within 0.2 seconds; raise bara.federation.bid-seconds"
        in logged.text
    )


def test_a_window_that_few_miss_is_not(federate, grid, logged):
    grid.mishaps = {("query", client): silent for client in range(2)}
    federate().bids(1)
    assert "raise bara.federation.bid-seconds" not in logged.text


def test_while_a_server_waits_it_says_who_is_there(federate, logged):
    with refused(PausedError, "3 nodes", "0.1", "2"):
        federate(on=LocalGrid(walking_app(), 2), fewest=3, patience=0.1).bids(1)
    assert logged.text.count("waiting for 3 nodes; connected: node 100, node 101") == 1


def test_clients_that_are_known_by_key_are_shown_by_name(tmp_path, logged):
    begin(tmp_path / "run", grid=LocalGrid(walking_app(), 2), **{"bara.federation.patience": 1.2})
    assert "waiting for 5 nodes; connected: key-" in logged.text


def winners(folder):
    with RunFolder.find(folder) as found:
        return [record.awarded.award.clients for record in found.open_books().history()][1:]


def test_equal_bids_take_turns_by_the_seed(tmp_path):
    app = walking_app(prices=dict.fromkeys(range(5), 1))
    for name, seed, rounds in (("one", 1, 25), ("again", 1, 5), ("other", 2, 5)):
        keys = {"bara.budget.max-rounds": rounds, "bara.allocator.n": 1, "bara.seed": seed}
        begin(tmp_path / name, grid=LocalGrid(app, 5), **keys)
    won = Counter(client for (client,) in winners(tmp_path / "one"))
    assert len(won) == 5
    assert max(won.values()) <= 10
    assert (
        winners(tmp_path / "again") == winners(tmp_path / "one")[:5] != winners(tmp_path / "other")
    )


def test_a_client_cannot_say_that_it_goes_first(tmp_path):
    def pushing(reply):
        reply.content.config_records["bara-bid"]["column-tie"] = 0.001
        return reply

    grid = LocalGrid(walking_app(prices=dict.fromkeys(range(5), 1)), 5)
    grid.mishaps = {("query", client): pushing for client in range(5)}
    begin(tmp_path / "run", grid=grid, **{"bara.budget.max-rounds": 25, "bara.allocator.n": 1})
    assert len(set(winners(tmp_path / "run"))) == 5
