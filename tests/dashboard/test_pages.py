import json
import subprocess
import sys
import threading

import pytest
from waiting import LONG

import bara
from bara import RoundRecord
from bara.dashboard.server import RunIndex
from bara.errors import LedgerError, RunStoppedError
from bara.ledger.corrections import correct
from bara.ledger.run_state import state
from bara.ledger.statements import statement
from bara.runs.config import Config
from bara.runs.explanation import explain_round
from bara.runs.folder import RunFolder
from bara.runs.play import play_run


def test_every_page_has_a_twin_in_json(make_run, visit):
    make_run()
    visitor = visit()
    pages = {
        "/": "/index.json",
        "/runs/one": "/runs/one.json",
        "/compare?run=one": "/compare.json?run=one",
    }
    pages["/runs/one/rounds/3"] = "/runs/one/rounds/3.json"
    for page, twin in pages.items():
        assert visitor.get(page).headers["content-type"].startswith("text/html"), page
        assert visitor.get(twin).headers["content-type"] == "application/json", twin
    for address, twin in (
        ("/json", "/index.json"),
        ("/runs/one/json", "/runs/one.json"),
        ("/runs/one/rounds/3/json", "/runs/one/rounds/3.json"),
    ):
        assert visitor.get(address).json() == visitor.get(twin).json()


def test_who_decided_what_and_why_stands_on_the_page_and_its_round(make_run, visit):
    with RunFolder.find(make_run("one", "clients.failure_rate=0")) as folder:
        books = folder.hold_books()
        winner = next(iter(list(books.history())[2].payments))
        correct(books, 2, winner, -100_000, by="anna", reason="a smaller test set")
    visitor = visit()
    page = visitor.get("/runs/one.json").json()
    (told,) = page["decisions"]
    assert told["who"].startswith("anna")
    assert (told["why"], told["what"], told["amount_exact"]) == (
        "a smaller test set",
        f"corrected {winner}, round 2",
        "-0.10",
    )
    assert any("anna" in one for one in visitor.get("/runs/one/rounds/2.json").json()["words"])
    assert "a smaller test set" in visitor.get("/runs/one/decisions.csv").text
    with RunFolder.find(folder.path) as again:
        account = statement(again.open_books())
    assert page["glance"]["spent"] == pytest.approx(account.spent / 1e6)
    paid = {one["client"]: one["paid"] for one in page["clients"]["top"]}
    assert paid == {one.client: pytest.approx(one.paid / 1e6) for one in account.clients}


def test_the_numbers_are_those_of_the_ledger(make_run, visit):
    with RunFolder.find(make_run("one", "clients.failure_rate=0.3")) as folder:
        account = statement(folder.open_books())
    page = visit().get("/runs/one.json").json()
    assert page["glance"]["spent"] == account.spent / 1e6
    assert page["glance"]["left"] == account.left / 1e6
    assert sum(page["rounds"]["cost"]) == pytest.approx(account.spent / 1e6)
    assert {one["client"]: one["paid"] for one in page["clients"]["top"]} == {
        one.client: one.paid / 1e6 for one in account.clients
    }
    assert {one["client"]: one["asked"] for one in page["clients"]["top"]} == {
        one.client: one.asked / 1e6 for one in account.clients
    }
    assert page["failures"]["count"] == sum(one.void for one in account.clients) > 0
    assert page["state"]["word"] == "finished"


def test_the_model_that_is_taken_home_is_named_once_the_run_has_left_its_result(make_run, visit):
    folder = make_run()
    whole = (folder / "result.json").read_text()
    (folder / "result.json").unlink()
    visitor = visit()
    assert visitor.get("/runs/one.json").json()["glance"]["kept"] is None
    (folder / "result.json").write_text(whole)
    told = json.loads(whole)
    assert visitor.get("/runs/one.json").json()["glance"]["kept"] == {
        "model": told["kept"],
        "accuracy": told["accuracy_kept"],
    }


SMALL = [
    "budget.total=40",
    "budget.max_rounds=12",
    "clients.count=6",
    "federation.engine=synthetic",
]


def test_a_run_shows_what_its_allocator_tells_of_more_money_and_of_its_target(tmp_path, visit):
    config = Config.load(None, [*SMALL, "allocator.name=planner", "budget.target=0.9"])
    with RunFolder.new(tmp_path / "runs" / "one", config) as folder, pytest.raises(RunStoppedError):
        play_run(config, stop_after(8), folder=folder)
    outlook = visit().get("/runs/one.json").json()["glance"]["outlook"]
    assert outlook["accuracy"] == sorted(outlook["accuracy"])
    assert outlook["spend"] == sorted(outlook["spend"])
    assert outlook["target"] == 0.9
    assert outlook["chance"] is not None


def test_where_the_allocator_tells_nothing_of_more_money_nothing_is_shown(tmp_path, visit):
    config = Config.load(None, [*SMALL, "allocator.name=even"])
    with RunFolder.new(tmp_path / "runs" / "one", config) as folder, pytest.raises(RunStoppedError):
        play_run(config, stop_after(8), folder=folder)
    glance = visit().get("/runs/one.json").json()["glance"]
    assert glance["outlook"] is None
    assert glance["forecast"]["source"] == "a learning curve fitted to the rounds so far"


def test_a_run_that_has_ended_still_names_its_target(make_run, visit):
    make_run("one", "allocator.name=planner", "budget.target=0.9")
    page = visit().get("/runs/one.json").json()
    assert page["state"]["word"] == "finished"
    assert page["glance"]["outlook"]["target"] == 0.9


def stop_after(number):
    def observe(step):
        if isinstance(step, RoundRecord) and step.round == number:
            raise RunStoppedError

    return observe


@pytest.mark.parametrize("content", ["", "[]", '{"kept": 1}', "/etc/hostname"])
def test_a_result_that_is_none_leaves_the_page_as_it_is(make_run, visit, content):
    folder = make_run()
    (folder / "result.json").unlink()
    if content.startswith("/"):
        (folder / "result.json").symlink_to(content)
    else:
        (folder / "result.json").write_text(content)
    assert visit().get("/runs/one.json").json()["glance"]["kept"] is None


def test_a_round_shows_menu_choice_and_belief_as_they_were(make_run, visit):
    make_run("one", "allocator.name=bara")
    visitor = visit()
    details = visitor.get("/runs/one/rounds/5.json").json()
    assert details["cost"] == pytest.approx(details["menu"]["cost"][details["n"] - 1], abs=1e-5)
    assert len(details["belief"]["mean"]) == len(details["belief"]["arms"]) == 5
    assert [one["became"] for one in details["bids"]].count("earned") == details["n"]
    assert len(details["bids"]) == 6
    assert visitor.get("/runs/one/rounds/99.json").status_code == 404


def test_a_plan_is_drawn_down_to_what_it_leaves(make_run, visit):
    make_run("one", "allocator.name=planner", "budget.max_rounds=20")
    details = visit().get("/runs/one/rounds/10.json").json()
    plan, path = details["belief"]["plan"], details["path"]
    assert path["round"][0] == 9
    assert path["left"][0] == details["left"]
    assert path["left"][-1] == pytest.approx(details["left"] - plan["spend"], abs=1e-3)


def test_where_bids_are_dropped_nobodys_bid_and_no_menu_is_shown(make_run, visit):
    make_run("one", "ledger.retention=drop", "budget.max_rounds=4")
    visitor = visit()
    page = visitor.get("/runs/one.json").json()
    details = visitor.get("/runs/one/rounds/2.json").json()
    assert details["menu"] is None
    assert {one["became"] for one in details["bids"]} == {"earned"}
    assert all(one["asked"] is None for one in [*details["bids"], *page["clients"]["top"]])
    asked = [line.split(",")[3] for line in visitor.get("/runs/one/clients.csv").text.splitlines()]
    assert set(asked) == {"asked", ""}


def test_the_bids_of_a_round_in_training_are_not_shown_where_they_will_be_dropped(
    make_run, visit, monkeypatch
):
    monkeypatch.setattr("hostile.Hostile.train", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make_run(
            "one", "federation.engine=hostile:Hostile", "clients.count=8", "ledger.retention=drop"
        )
    page = visit().get("/runs/one.json").json()
    assert page["state"]["word"] == "stopped"
    assert page["sheet"]["round"] == 1
    assert page["sheet"]["menu"] is None
    assert {one["asked"] for one in page["sheet"]["bids"]} == {None}
    assert {one["became"] for one in page["sheet"]["bids"]} == {"training"}


def test_a_hostile_name_is_spelled_out_and_cut_but_whole_in_the_table(make_run, visit):
    make_run("one", "federation.engine=hostile:Hostile", "clients.count=8", "budget.total=100")
    visitor = visit()
    names = [one["client"] for one in visitor.get("/runs/one.json").json()["clients"]["top"]]
    assert "exe.gpj⟨U+202E⟩cod.trap" in names
    assert max(map(len, names)) < 150
    rows = visitor.get("/runs/one/clients.csv").text
    assert "x" * 10_000 in rows
    assert "\n'=HYPERLINK(0)," in rows


def test_a_run_that_cannot_be_read_says_why_and_the_others_are_listed(make_run, visit, tmp_path):
    make_run("whole")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "empty" / "config.toml").write_text("seed = 0")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.toml").write_text("= nothing")
    visitor = visit()
    listed = {one["name"]: one.get("error") for one in visitor.get("/index.json").json()["runs"]}
    assert listed["whole"] is None
    assert "there is no ledger" in listed["empty"]
    assert "cannot read the configuration" in listed["broken"]
    assert visitor.get("/runs/empty").status_code == 503


def test_a_single_runs_folder_opens_on_its_page(make_run, visit):
    visitor = visit(folder=make_run())
    assert visitor.get("/").headers["location"] == "/runs/one"
    assert visitor.get("/runs/one.json").json()["run"] == "one"


def test_runs_in_folders_of_folders_are_found(make_run, visit):
    make_run("monday/one")
    visitor = visit()
    assert [one["name"] for one in visitor.get("/index.json").json()["runs"]] == ["monday/one"]
    assert visitor.get("/runs/monday/one/rounds/1.json").json()["round"] == 1


def test_a_comparison_names_the_runs_in_the_order_asked_and_at_most_eight(make_run, visit):
    for number in range(9):
        make_run(f"r{number}", f"seed={number}", "budget.max_rounds=2")
    query = "&".join(f"run=r{number}" for number in (3, 1, 3, 0, 2, 4, 5, 6, 7, 8))
    assert [one["name"] for one in visit().get(f"/compare.json?{query}").json()["runs"]] == [
        "r3",
        "r1",
        "r0",
        "r2",
        "r4",
        "r5",
        "r6",
        "r7",
    ]


def test_an_unfinished_run_has_a_forecast_and_a_finished_one_has_none(make_run, visit, tmp_path):
    make_run("done")
    config = Config.load(None, [*SMALL, "allocator.name=even", "budget.max_rounds=30"])
    with (
        RunFolder.new(tmp_path / "runs" / "open", config) as folder,
        pytest.raises(RunStoppedError),
    ):
        play_run(config, stop_after(12), folder=folder)
    visitor = visit()
    assert visitor.get("/runs/done.json").json()["glance"]["forecast"] is None
    forecast = visitor.get("/runs/open.json").json()["glance"]["forecast"]
    assert 0 <= forecast["low"] < forecast["accuracy"] < forecast["high"] <= 1


HOLD = """
import sys
from pathlib import Path
from bara.runs.config import Config
from bara.runs.folder import RunFolder
with RunFolder.new(Path(sys.argv[1]), Config.load(None, ["federation.engine=synthetic"])) as folder:
    folder.claim_books()
    print("started", flush=True)
    sys.stdin.read()
"""


def test_a_run_whose_process_was_killed_is_stopped_and_says_how_to_resume_it(tmp_path, visit):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "runs" / "one two"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b"started\n"
        view = RunIndex(tmp_path / "runs").view("one two")
        assert visit().get("/runs/one two.json").json()["state"]["word"] == "running"
        changes = view.changes
        view.refresh()
        assert view.changes == changes
    finally:
        process.kill()
        process.communicate(timeout=60)
    view.refresh()
    view.refresh()
    assert view.changes == changes + 1
    state_now = visit().get("/runs/one two.json").json()["state"]
    assert state_now["word"] == "stopped"
    assert state_now["resume"] == f"bara resume '{tmp_path}/runs/one two'"


def test_a_crowd_that_comes_at_once_is_one_look(make_run, monkeypatch):
    make_run()
    index, looks = RunIndex(make_run("two").parent), []
    monkeypatch.setattr("bara.dashboard._run_index.FRESH", LONG)
    monkeypatch.setattr(
        "bara.dashboard._run_view.state", lambda books: looks.append(1) or state(books)
    )
    for _ in range(20):
        index.view("one")
    assert len(looks) == 1
    index.view("one").refresh()  # who asks without patience is served what is there now
    assert len(looks) == 2
    assert index.view("one").changes == 1


def test_a_round_waits_for_another_that_is_being_explained_and_the_list_of_runs_does_not(
    make_run, visit, monkeypatch
):
    make_run()
    visitor, explained, answers = visit(), [threading.Event(), threading.Event()], []

    def explain(books, number, read=explain_round, **how):
        if number == 2:
            explained[0].set()
            explained[1].wait(60)
        return read(books, number, **how)

    def ask(number):
        return threading.Thread(
            target=lambda: answers.append(
                visitor.get(f"/runs/one/rounds/{number}.json").status_code
            )
        )

    monkeypatch.setattr("bara.dashboard._run_view.explain_round", explain)
    for module in ("_run_index", "_run_view", "_json_views"):
        monkeypatch.setattr(f"bara.dashboard.{module}.PATIENCE", 0.1)
    asking = [ask(2), ask(3)]
    asking[0].start()
    assert explained[0].wait(60)
    asking[1].start()
    assert "does not answer" in visitor.get("/index.json").json()["runs"][0]["error"]
    explained[1].set()
    for one in asking:
        one.join(60)
    assert answers == [200, 200]


def test_a_look_that_fails_halfway_counts_nothing_twice(make_run, monkeypatch):
    folder = make_run("one", "clients.failure_rate=0.5")
    whole = RunIndex(folder.parent).view("one").totals

    def away(*_):
        monkeypatch.undo()
        raise LedgerError("the database is away")

    index = RunIndex(folder.parent)
    monkeypatch.setattr("bara.dashboard._run_view.failures", away)
    with pytest.raises(LedgerError):
        index.view("one")
    assert index.view("one").totals == whole


def test_a_folder_that_holds_a_password_is_one_line_and_the_others_are_shown(
    make_run, visit, monkeypatch
):
    monkeypatch.setenv("BARA_LEDGER_HOSTS", "127.0.0.1:1")
    folder = make_run().parent / "spoilt"
    folder.mkdir()
    (folder / "config.toml").write_text(
        '[ledger]\nurl = "postgresql+psycopg://me:secret@127.0.0.1:1/x"\n'
    )
    answer = visit().get("/index.json")
    assert answer.status_code == 200
    by_name = {run["name"]: run for run in answer.json()["runs"]}
    assert "ledger.url holds a password" in by_name["spoilt"]["error"]
    assert "error" not in by_name["one"]
    assert "secret" not in answer.text
    assert "ledger.url holds a password" in visit(folder=folder).get("/runs/spoilt.json").text


def test_the_runs_of_a_database_are_shown_by_its_url(tmp_path, visit):
    url = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 30, "max_rounds": 4, "currency": "EUR"},
        "clients": {"count": 3},
        "ledger": {"url": url},
    }
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        session.award({"north": "2.50", "south": "3.10", "east": "4.00"})
        visitor = visit(folder=url)
        (run,) = visitor.get("/index.json").json()["runs"]
        assert (run["run"], run["currency"], run["dataset"]) == ("spring", "EUR", "own-loop")
        assert (
            "Round 1. Before any bid was opened"
            in visitor.get("/runs/spring/rounds/1.json").json()["words"][0]
        )


STEEP = [0.26, 0.57, 0.79, 0.89, 0.96, 0.94, 0.95, 0.97, 0.97, 0.97, 0.98, 0.99]

# the accuracies, the price of the last round, how many rounds a tenth bought, and which points
CURVES = {
    "the last round, which costs more": (STEEP, 8, 1, 1),
    "two rounds": ([0.5] * 18 + [0.6, 0.7], 2, 2, 15),
    "seven rounds, by means of five": ([0.5] * 65 + [0.51, 0.52, 0.53, 0.54, 0.55], 2, 7, 3),
}


@pytest.mark.parametrize(("accuracies", "last", "rounds", "points"), CURVES.values(), ids=CURVES)
def test_the_last_tenth_of_the_money_spent_or_the_last_round_is_told_by_what_it_bought(
    tmp_path, visit, accuracies, last, rounds, points
):
    url = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 1000, "max_rounds": 99},
        "clients": {"count": 3},
        "mechanism": {"name": "bid-price-first"},
        "allocator": {"name": "fixed", "n": 1},
        "ledger": {"url": url},
    }
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        for number, accuracy in enumerate(accuracies, 1):
            session.ask()
            price = last if number == len(accuracies) else 2
            session.award({"north": 1, "south": price, "east": 9})
            session.settle(accuracy)
    bought = visit(folder=url).get("/runs/spring.json").json()["glance"]["bought"]
    assert bought["rounds"] == rounds
    assert bought["points"] == pytest.approx(points)
