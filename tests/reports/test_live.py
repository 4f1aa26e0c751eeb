import io

from rich.console import Console

from bara import RoundRecord
from bara.allocators import Even, Fixed
from bara.records import Purse
from bara.runs.progress import RunScreen, watching

PURSE = Purse.of(60, 30)


def screen(play, seconds=2.0):
    ticks = iter(range(10_000))
    shown = RunScreen("digits [bold]x", PURSE, clock=lambda: seconds * next(ticks))
    return shown, play(Even(), purse=PURSE)[0]


def text(renderable):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_the_screen_shows_how_far_it_is_and_what_is_left(play):
    shown, records = screen(play)
    for record in records[:11]:
        shown.observe(record.awarded)
        shown.observe(record)
    page = text(shown)
    last = records[10]
    assert "10 of 30" in page
    assert f"{last.purse_after.left / 1e6:,.2f}" in page
    assert f"{100 * last.evaluation.accuracy:.1f} %" in page
    assert f"round 10: training {last.awarded.award.n} clients for" in page
    assert "digits [bold]x" in page
    assert max(map(len, page.splitlines())) <= 80


def test_the_time_left_goes_by_the_deadline_or_by_the_money_whichever_ends_first(play):
    shown, records = screen(play)
    assert shown.seconds_left is None
    for record in records[:11]:
        shown.observe(record)
    assert shown.seconds_left == 2.0 * 20
    purse = Purse.of(300, 30_000)
    records = play(Fixed(2), purse=purse)[0][:11]
    poor = RunScreen("", purse, clock=iter(range(99)).__next__)
    for record in records:
        poor.observe(record)
    left, cost = records[10].purse_after, sum(record.paid for record in records[1:]) / 10
    assert poor.seconds_left == left.left / cost < left.rounds_left


def test_before_the_first_round_there_is_a_screen_too():
    assert "the initial model is evaluated" in text(RunScreen("x", PURSE))


def test_only_a_run_that_can_be_resumed_says_so():
    assert "after this round; bara resume goes on" in text(RunScreen("x", PURSE, resumable=True))
    page = text(RunScreen("x", PURSE))
    assert "Ctrl-C ends it after this round" in page
    assert "resume" not in page


def test_elsewhere_there_is_a_plain_line_every_tenth_of_the_way(play, capsys):
    _, records = screen(play)
    with watching("x", PURSE, progress=True) as show:
        for record in records:
            show(record.awarded)
            show(record)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[1].startswith("round 3 of 30  accuracy ")
    assert all(isinstance(record, RoundRecord) for record in records)


def test_quiet_is_quiet(play, capsys):
    _, records = screen(play)
    with watching("x", PURSE, progress=False) as show:
        for record in records:
            show(record)
    assert capsys.readouterr() == ("", "")
