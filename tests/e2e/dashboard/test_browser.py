"""The pages in a real browser: alive, honest, for everybody, and deaf to what names try to do."""

import csv
import io
import re
import urllib.error
import urllib.request
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import bara
from bara.errors import WaitingError
from bara.ledger import operators
from bara.reports.html import comparison_report
from bara.runs.database import DatabaseRun

pytestmark = [
    pytest.mark.debian("Chromium"),
    pytest.mark.xdist_group("browser"),  # one for all of them
]


def ready(page, address):
    page.goto(address)
    page.wait_for_selector("body[data-closed], body[data-ready], #runs li")


def closed(page):
    return int(page.get_attribute("body", "data-closed"))


def chosen(page, round_number):
    expect(page.locator("#choice")).to_have_text(re.compile(f"^Round {round_number}: "))


def test_the_page_follows_a_running_run_round_by_round_to_its_end(
    start, dashboard, browse, shoot, tmp_path
):
    slow = [
        "federation.delay=0.1",
        f"federation.gate={tmp_path}/gate",
        "budget.max_rounds=40",
        "allocator.name=planner",
    ]
    run = start("live", *slow)
    page = browse()
    page.goto(f"{dashboard()}/")
    expect(page.locator("#runs .state")).to_have_attribute("data-word", "running")
    page.click("#runs a")
    expect(page.locator("#state")).to_have_text(re.compile("^round 4 is training · last news"))
    seen = []
    page.expose_function("note", lambda number: seen.append(int(number)))
    page.evaluate(
        "new MutationObserver(() => note(document.body.dataset.closed)).observe(document.body, "
        "{attributes: true})"
    )
    assert closed(page) == 3
    (tmp_path / "gate-4").touch()
    expect(page.locator("#state")).to_have_text(re.compile("^round 20 is training · last news"))
    expect(page.locator("#tiles")).to_contain_text("Forecast of the final accuracy")
    shoot(page, "live-1440-light")
    (tmp_path / "gate-20").touch()
    expect(page.locator("#state")).to_have_attribute("data-word", "finished", timeout=120_000)
    expect(page.locator("#tiles")).to_contain_text("The model you take home")
    assert closed(page) == 40
    assert seen == sorted(seen)
    assert 19 in seen, "it came in one leap, not as it happened"
    assert run.wait(120) == 0


def test_a_page_that_the_server_refused_asks_again_and_misses_nothing(dashboard, browse, tmp_path):
    books = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 80, "max_rounds": 9},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "ledger": {"url": books},
    }
    page = browse()
    refused = []

    def refuse(route):  # the browser asks no more; 503 would stand in its console
        refused.append(route)
        route.fulfill(status=204)

    with bara.open_session("autumn", config) as session:
        session.begin(0.1)
        page.route("**/events?*", refuse, times=1)
        ready(page, f"{dashboard(books)}/runs/autumn")
        expect(page.locator("#state")).to_have_text("connection lost, trying again")
        session.award({"north": 3, "south": 4, "east": 6})
        session.settle(0.2)
        expect(page.locator("#choice")).to_have_text(re.compile("^Round 1: "))
        session.award({"north": 3, "south": 4, "east": 6})
        session.settle(0.3)
        expect(page.locator("#choice")).to_have_text(re.compile("^Round 2: "))
    assert len(refused) == 1


def test_a_page_that_is_opened_before_the_run_waits_for_it(play, dashboard, browse):
    address = dashboard()
    page = browse()
    page.goto(f"{address}/")
    expect(page.locator("#state")).to_have_text("no run is here yet")
    play("late", "budget.max_rounds=5")
    page.wait_for_selector("#runs a")
    assert page.locator("#runs a").all_inner_texts()[0] == "late"


def test_the_award_that_waits_stands_on_the_page_with_the_command_that_answers_it(
    tmp_path, dashboard, browse, shoot
):
    books = {"url": f"sqlite:///{tmp_path}/books.db", "approve_above": 1000}
    money = {"total": 8000, "max_rounds": 9, "currency": "EUR"}
    config = {
        "budget": money,
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "ledger": books,
    }
    with bara.open_session("autumn", config) as session:
        session.begin(0.1)
        with pytest.raises(WaitingError):
            session.award({"north": "300.00", "south": "310.00", "east": "600.00"})
    page = browse()
    address = dashboard(books["url"])
    ready(page, f"{address}/runs/autumn")
    expect(page.locator("body")).to_contain_text(
        "round 1 promises 1,200.00 EUR and waits for your answer"
    )
    expect(page.locator("body")).to_contain_text(
        "--run autumn approve 1 --reason TEXT, or decline 1"
    )
    expect(page.locator("#state")).to_contain_text("1 thing needs you")
    command = page.locator("#needs code").inner_text()
    assert command.endswith("approve 1 --reason TEXT")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#needs .copy")
    expect(page.locator("#needs .copy")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == command
    expect(page.locator("#belief")).to_be_hidden()
    for empty in ("#failed", "#n", "#payments", "#loss", "#decisions"):
        expect(page.locator(empty)).to_be_hidden()
    for figure in ("#accuracy", "#menu"):
        counted = page.locator(f"{figure} svg text[text-anchor=middle]").all_text_contents()
        assert len(set(counted)) == len(counted) > 1, f"{figure} counts {counted}"
    shoot(page, "waiting-1440-light")
    with DatabaseRun.find(books["url"]) as place:
        operators.top_up(place.open_books(), bara.money("1000.00"), by="berta", reason="a gift")
    expect(page.locator("#tiles")).to_contain_text("9,000.00 EUR")
    expect(page.locator("#needs .copy")).to_have_text("copied")
    with DatabaseRun.find(books["url"]) as place:
        operators.decline(place.open_books(), 1, by="anna", reason="a long reason " * 20)
    for width in (1440, 390):
        page = browse(width=width)
        ready(page, f"{address}/runs/autumn")
        expect(page.locator("#decisions")).to_contain_text("anna")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        beyond = (
            "all => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML)"
        )
        assert page.eval_on_selector_all(".tile, .card, figure, .needs, header", beyond) == []
        shoot(page, f"decided-{width}-light")


def test_one_failed_delivery_is_counted_in_the_singular(tmp_path, dashboard, browse):
    url = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 80, "max_rounds": 9},
        "clients": {"count": 3},
        "ledger": {"url": url},
    }
    with bara.open_session("autumn", {**config, "allocator": {"name": "fixed", "n": 2}}) as session:
        session.begin(0.1)
        session.award({"north": 3, "south": 4, "east": 6})
        session.settle(0.2, void={"north": "its disk was full"})
    page = browse()
    ready(page, f"{dashboard(url)}/runs/autumn")
    expect(page.locator("body")).to_contain_text("1 delivery failed, and 6.00 came back")


def test_the_slider_goes_back_through_the_rounds(play, dashboard, browse):
    play("one", "budget.max_rounds=30", "allocator.name=bara")
    address = dashboard()
    page = browse()
    ready(page, f"{address}/runs/one")
    newest = page.inner_text("#choice")
    page.focus("#round")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    chosen(page, 27)
    assert page.inner_text("#choice") != newest
    expect(page).to_have_url(re.compile("/runs/one/rounds/27$"))
    page.click("#earlier")
    chosen(page, 26)
    page.click("#follow")
    chosen(page, 30)
    ready(page, f"{address}/runs/one/rounds/7")
    chosen(page, 7)
    assert page.locator("#belief .plot .band").count() == 1


def test_dragging_the_slider_asks_for_where_it_stops_and_not_for_every_round_on_the_way(
    play, dashboard, browse
):
    play("one", "budget.max_rounds=10")
    page, asked = browse(), []
    ready(page, f"{dashboard()}/runs/one")
    page.route(
        "**/rounds/*.json",
        lambda route: asked.append(route) or (len(asked) > 1 and route.continue_()),
    )
    page.focus("#round")
    with page.expect_request("**/rounds/9.json"):
        page.keyboard.press("ArrowLeft")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    asked[0].continue_()
    chosen(page, 6)
    assert [route.request.url.rpartition("/")[2] for route in asked] == ["9.json", "6.json"]


def test_runs_are_compared_side_by_side(play, dashboard, browse, shoot):
    for name in ("even", "bara"):
        play(name, "budget.max_rounds=20", f"allocator.name={name}")
    address = dashboard()
    page = browse()
    ready(page, f"{address}/")
    for box in page.locator("#runs input").all():
        box.check()
    page.click("#compare")
    page.wait_for_selector("body[data-ready='2']")
    assert page.locator("#accuracy svg path.line").count() == 2
    by_rounds = page.locator("#accuracy svg path.line").first.get_attribute("d")
    page.click("text=over money")
    assert page.locator("#accuracy svg path.line").first.get_attribute("d") != by_rounds
    assert {"even", "bara"} <= set(page.inner_text("#table").split())
    shoot(page, "compare-1440-light")


def test_figures_and_tables_are_downloaded(play, dashboard, browse):
    play("one", "budget.max_rounds=15")
    page = browse()
    ready(page, f"{dashboard()}/runs/one")
    with page.expect_download() as waiting:
        page.click("#accuracy >> text=SVG")
    figure = ET.fromstring(Path(waiting.value.path()).read_text())  # noqa: S314 - our own file
    assert waiting.value.suggested_filename == "accuracy.svg"
    paths = figure.findall("{http://www.w3.org/2000/svg}path")
    assert paths[0].get("stroke").startswith("rgb")
    with page.expect_download() as waiting:
        page.click("#payments >> text=CSV")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert len(rows) == 8
    assert any(row["client"].startswith("'=HYPERLINK") for row in rows)
    with page.expect_download() as waiting:
        page.click("#rounds-csv")
    assert len(Path(waiting.value.path()).read_text().splitlines()) == 17


def test_hostile_names_show_as_text(play, dashboard, browse):
    play("one", "budget.max_rounds=15")
    page = browse()
    ready(page, f"{dashboard()}/runs/one")
    page.click("#payments >> text=Table")
    page.click("#bids summary")
    shown = page.inner_text("#payments table")
    assert "<script>document.title='owned'</script>" in shown
    assert "exe.gpj⟨U+202E⟩cod.trap" in shown
    assert "(10,000 characters)" in shown
    assert "<b>gone</b>" in page.inner_text("#failures")
    assert page.title() == "one · bara"
    assert page.locator("main img, main script, main b:text-is('gone')").count() == 0


LINES = """(cells) => cells.map((cell) => {
    const number = document.createRange();
    number.setStart(cell.firstChild, 0);
    number.setEnd(cell.firstChild, cell.textContent.indexOf(" "));
    return number.getClientRects().length;
})"""
"""In how many lines each amount stands."""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.mark.parametrize("width", [1440, 390])
def test_everybody_can_use_it(play, dashboard, browse, shoot, width):
    play("one", "budget.max_rounds=25", "allocator.name=planner")
    play("two", "budget.max_rounds=25", "allocator.name=even", "ledger.retention=drop")
    address = dashboard()
    page = browse(width)
    pages = {
        "index": "/",
        "run": "/runs/one/rounds/12",
        "dropped": "/runs/two",
        "compare": "/compare?run=one&run=two",
    }
    for name, path in pages.items():
        ready(page, address + path)
        if name == "run":
            chosen(page, 12)
            page.click("#accuracy >> text=Table")
            page.click("#bids summary")
        page.evaluate(FRAMES)  # a figure is drawn anew for the width that it comes to have
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{name} is wider than the screen"
        )
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            shoot(page, f"{name}-{width}-{scheme}")
            found = Axe().run(page).response["violations"]
            grave = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
            assert grave == [], f"{name}, {scheme}"


def test_a_phone_breaks_no_amount_and_an_axis_ends_beside_its_values(tmp_path, dashboard, browse):
    books = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 8000, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "ledger": {"url": books},
    }
    with bara.open_session("autumn", config) as session:
        session.begin(0.1)
        session.award({"a clinic with a long name": "300.00", "south": "310.00", "east": "600.00"})
    page = browse(390)
    ready(page, f"{dashboard(books)}/runs/autumn")
    page.click("#bids summary")
    amounts = page.locator("#bids td", has_text="EUR")
    expect(amounts.first).to_be_visible()
    assert amounts.evaluate_all(LINES) == [1] * amounts.count()
    extent = "import('/assets/scales.js').then(({ extent }) => extent([1, 19], {}, 3))"
    assert page.evaluate(extent) == [0, 20]


def test_a_figure_is_read_with_the_keyboard_alone(play, dashboard, browse):
    play("one", "budget.max_rounds=15")
    page = browse()
    ready(page, f"{dashboard()}/runs/one")
    page.focus("#accuracy .plot")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#accuracy [aria-live]").startswith("round 14, accuracy")
    assert "Left and right arrow keys" in page.get_attribute("#accuracy .plot", "aria-label")


def test_beyond_this_machine_the_token_opens_and_nothing_else_does(play, dashboard, browse):
    play("one", "budget.max_rounds=3")
    token = "a token of our own"  # noqa: S105
    address = dashboard(None, "--host", "0.0.0.0", "--token", token)  # noqa: S104
    base = address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{base}/index.json")  # noqa: S310
    page = browse()
    page.goto(f"{base}/runs/one?token={token}")
    page.wait_for_selector("body[data-closed]")
    assert page.url == f"{base}/runs/one"
    assert page.evaluate("document.cookie") == ""


def test_the_table_of_a_comparison_is_whole_on_a_phone(browse):
    common = {"federation": "synthetic", "budget": {"total": 40, "max_rounds": 8}, "clients": 6}
    mechanisms = ["bid-price-first", "proportional-share"]
    found = bara.compare(
        common, allocators=["even", "fixed:n=2"], mechanisms=mechanisms, seeds=2, jobs=1
    )
    page = browse(width=390)
    page.set_content(comparison_report(found))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    beyond = "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
    assert page.evaluate(f"[...document.querySelectorAll('.scroll')].map({beyond})") == [[0, 0]]
    expect(page.get_by_text("proportional-share").first).to_be_visible()
