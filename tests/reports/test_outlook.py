import io
from dataclasses import replace

import pytest
from rich.console import Console

from bara import Purse, RoundRecord
from bara.reports.charts import run_charts
from bara.reports.html import run_report
from bara.reports.terminal import goal_line, outlook_line, run_summary
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.runs.progress import RunScreen, watching

SMALL = [
    *(
        "federation.engine=synthetic",
        "clients.count=12",
        "budget.total=120",
        "budget.max_rounds=40",
    ),
    *("federation.delta=0.02", "federation.v_1=2e-4"),
]


def config(*changes):
    return Config.load(None, [*SMALL, *changes])


@pytest.fixture(scope="module")
def towards():
    """A run that reaches its target with money to spare, and its steps."""
    steps = []
    return play_run(config("budget.target=0.4"), steps.append), steps


def text(renderable, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_a_summary_says_what_stays_in_the_purse(towards):
    result, _ = towards
    page = " ".join(text(run_summary(result, {}), 160).split())
    assert f"{result.budget - result.spent:,.2f} stays in the purse" in page
    assert "the target of 40 % is reached" in page
    assert "left in the purse" in run_report(result, "", "")


def test_the_live_screen_shows_target_and_what_more_money_would_buy(towards):
    _, steps = towards
    screen = RunScreen("x", Purse.of(120, 40))
    for step in steps[:31]:
        screen.observe(step)
    outlook = next(
        step for step in reversed(steps[:31]) if not isinstance(step, RoundRecord)
    ).belief.outlook
    page = text(screen)
    assert goal_line(outlook) in page
    assert outlook_line(outlook) in page
    assert max(map(len, page.splitlines())) <= 80


def test_a_target_out_of_reach_is_said_once_where_progress_is_plain_lines(capsys):
    with watching("x", Purse.of(120, 40), progress=True) as show:
        play_run(config("budget.target=0.9", "federation.a_max=0.4"), show)
    said = [line for line in capsys.readouterr().err.splitlines() if "out of reach" in line]
    assert said
    assert len(said) <= 3
    assert "is expected, and" in said[0]


def test_a_figure_marks_what_is_enough(towards):
    result, steps = towards
    belief = next(step.belief for step in steps[::-1] if not isinstance(step, RoundRecord))
    outlook = {
        "prospects": [vars(one) for one in belief.outlook.prospects],
        "enough": belief.outlook.prospects[3].spend,
    }
    drawn = {
        chart.title: chart for chart in run_charts(replace(result, belief={"outlook": outlook}))
    }
    ((place, name),) = drawn["What more money would buy"].marks
    assert name == "enough"
    assert place == belief.outlook.prospects[3].spend / 1e6
