"""The progress of a run or a comparison, shown on a terminal, in a notebook or as plain lines."""

import importlib
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import count
from typing import Literal, final

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bara.ledger.attention import Watch
from bara.records import AwardedRound, MoneyOutlook, Purse, RoundRecord, decimal_money, tell_money
from bara.reports.terminal import Spark, goal_line, outlook_line, per_cent
from bara.text import counted, note, spelled

RECENT = 10
"""How many recent rounds the pace and the cost of a round are taken from."""

Wanted = bool | None
"""Whether to show progress; None to show it only on a terminal and in a notebook."""

Show = Callable[[AwardedRound | RoundRecord], None]
"""A function that is called with each round as awarded and as settled, and shows it."""


@final
class RunScreen:
    """The live screen of a run: money, rounds and time left, accuracy, and what happens now.

    Args:
        title: The title of the run.
        purse: The purse that the run begins with.
        clock: Returns the time in seconds, from any starting point.
        measure: The name of the metric, as people read it.
        resumable: Whether `bara resume` can go on with the run.
    """

    def __init__(
        self,
        title: str,
        purse: Purse,
        clock: Callable[[], float] = time.monotonic,
        *,
        measure: str = "accuracy",
        resumable: bool = False,
    ) -> None:
        self._title = title
        self._measure = measure
        self._resumable = resumable
        self._purse = purse
        self._clock = clock
        self._accuracies: list[float] = []
        self._clients: list[float] = []
        # When each recent round was settled, and what the round cost.
        self._settled: deque[tuple[float, int]] = deque(maxlen=RECENT + 1)
        self._now = "the initial model is evaluated"
        self._outlook: MoneyOutlook | None = None

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Take in a round that was awarded or settled."""
        if isinstance(step, AwardedRound):
            award = step.award
            what = "nobody is recruited"
            if award.n:
                cost = tell_money(decimal_money(award.cost), step.purse.currency)
                what = f"training {counted(award.n, 'client')} for {cost}"
            self._now = f"round {step.purse.round}: {what}"
            self._outlook = step.belief.outlook if step.belief else None
            return
        self._purse = step.purse_after
        self._accuracies.append(step.evaluation.reported_accuracy)
        if step.round:
            self._clients.append(float(step.n))
        self._settled.append((self._clock(), step.paid))

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the deadline or the last money, at the pace and cost of recent rounds.

        None before two rounds are settled.
        """
        if len(self._settled) < 2:
            return None
        begin, _ = self._settled[0]
        end, _ = self._settled[-1]
        costs = [paid for _, paid in self._settled][1:]
        pace = (end - begin) / len(costs)
        cost = sum(costs) / len(costs)
        rounds: float = self._purse.rounds_left
        if cost:
            rounds = min(rounds, self._purse.left / cost)
        return pace * rounds

    def __rich__(self) -> Panel:
        """Draw the screen as it is now."""
        purse = self._purse
        played = purse.max_rounds - purse.rounds_left
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(no_wrap=True, justify="right")
        grid.add_column(ratio=1, no_wrap=True)
        grid.add_row(
            "round", f"{played} of {purse.max_rounds}", ProgressBar(purse.max_rounds, played)
        )
        money = tell_money(decimal_money(purse.left), purse.currency)
        bar = ProgressBar(purse.total, purse.left, complete_style="yellow", finished_style="yellow")
        grid.add_row("purse left", money, bar)
        accuracy = per_cent(self._accuracies[-1]) if self._accuracies else "–"
        grid.add_row(self._measure, f"[bold]{accuracy}[/]", Spark(self._accuracies, "green"))
        n = f"{self._clients[-1]:.0f}" if self._clients else "–"
        grid.add_row("clients", n, Spark(self._clients, "cyan"))
        grid.add_row("time left", duration(self.seconds_left), Text(self._now, style="dim"))
        if self._outlook is not None:
            goal = goal_line(self._outlook)
            if goal:
                grid.add_row("target", "", Text(goal))
            outlook = outlook_line(self._outlook, purse.currency)
            if outlook:
                grid.add_row("for money", "", Text(outlook))
        hint = "Ctrl-C ends it after this round"
        if self._resumable:
            hint += "; bara resume goes on"
        return Panel(
            grid,
            title=Text(spelled(self._title)),
            title_align="left",
            subtitle=f"[dim]{hint}[/]",
            subtitle_align="right",
        )


def duration(seconds: float | None) -> str:
    """Format a time as a clock shows it; None is an unknown time.

    >>> duration(75), duration(3700), duration(None)
    ('1:15', '1:01:40', '–')
    """
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def watching(
    title: str,
    purse: Purse,
    *,
    progress: Wanted,
    measure: str = "accuracy",
    resumable: bool = False,
) -> Iterator[Show]:
    """Show a run while it is played; yield the function to call with each round.

    A terminal gets a live screen, a notebook a bar, and anything else about ten plain lines.

    Args:
        title: The title of the run.
        purse: The purse that the run begins with.
        progress: Whether to show progress; None only on a terminal and in a notebook.
        measure: The name of the metric, as people read it.
        resumable: Whether `bara resume` can go on with the run, which the live screen then says.
    """
    match audience(progress):
        case "terminal":
            screen = RunScreen(title, purse, measure=measure, resumable=resumable)
            with Live(screen, console=Console(stderr=True), refresh_per_second=8, transient=True):
                yield screen.observe
        case "notebook":
            yield _in_notebook(purse, measure)
        case "lines":
            yield _plain_lines(purse, measure)
        case "nobody":
            yield lambda _step: None


@contextmanager
def counting(total: int, *, progress: Wanted) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` tasks are done; yield the function to call with each task's name.

    Args:
        total: The number of tasks.
        progress: As for `watching`.
    """
    done = count(1)
    match audience(progress):
        case "terminal":
            with progress_bar() as bar:
                task = bar.add_task("running", total=total, note="")
                yield lambda what: bar.update(task, advance=1, note=spelled(what))
        case "notebook":
            shown = NotebookBar(total)
            yield lambda what: shown.show(next(done), what)
        case "lines":
            yield lambda what: note(f"{next(done)} of {total}: {what}")
        case "nobody":
            yield lambda _what: None


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """Show a live bar on a terminal, and nothing elsewhere.

    Args:
        quiet: Whether to show nothing on a terminal, either.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns,
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=quiet or not console.is_terminal,
    ) as progress:
        yield progress


def audience(progress: Wanted) -> Literal["terminal", "notebook", "lines", "nobody"]:
    """Return who is to be shown progress."""
    if progress is False:
        return "nobody"
    interactive = sys.modules.get("IPython")
    if interactive and hasattr(interactive.get_ipython(), "kernel"):
        return "notebook"
    if Console(stderr=True).is_terminal:
        return "terminal"
    if progress:
        return "lines"
    return "nobody"


@final
class NotebookBar:
    """A bar beneath a notebook's cell, redrawn at most five times a second.

    Args:
        total: The number of steps.
    """

    def __init__(self, total: int) -> None:
        self._display = importlib.import_module("IPython.display")
        self._handle = self._display.display(self._display.HTML(""), display_id=True)
        self._total = total
        self._shown = -math.inf

    def show(self, done: int, what: str) -> None:
        """Show that `done` steps are done, and what the last of them was."""
        now = time.monotonic()
        if now - self._shown < 0.2 and done < self._total:
            return
        self._shown = now
        bar = f'<progress max="{self._total}" value="{done}"></progress>'
        self._handle.update(self._display.HTML(f"{bar} {done} of {self._total}: {escape(what)}"))


def _in_notebook(purse: Purse, measure: str) -> Show:
    bar = NotebookBar(purse.max_rounds)

    def show(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord):
            bar.show(step.round, _round_words(step, measure))

    return show


def _round_words(record: RoundRecord, measure: str) -> str:
    accuracy = per_cent(record.evaluation.reported_accuracy)
    purse = record.purse_after
    spent = tell_money(decimal_money(purse.spent), purse.currency)
    return f"{measure} {accuracy}  n {record.n}  spent {spent}"


def attending(address: str) -> Show:
    """Return a function that writes a line for each new thing in a run that needs a person.

    Args:
        address: How commands name the run: the DIR of `bara ledger DIR ...`.
    """
    watch = Watch(address)
    told: set[str] = set()

    def show(step: AwardedRound | RoundRecord) -> None:
        if not isinstance(step, RoundRecord):
            return
        watch.tell(step)
        for one in watch.needs():
            if one.key not in told:
                told.add(one.key)
                line = f"bara: round {step.round}: {one.text}"
                if one.answer:
                    line += f"; {one.answer}"
                note(line)

    return show


def _plain_lines(purse: Purse, measure: str) -> Show:
    """Write a line every tenth of the way, and when a target gets out of reach."""
    every = max(purse.max_rounds // 10, 1)
    was_out_of_reach = False

    def show(step: AwardedRound | RoundRecord) -> None:
        nonlocal was_out_of_reach
        if isinstance(step, AwardedRound) and step.belief and step.belief.outlook:
            out_of_reach = step.belief.outlook.out_of_reach
            if out_of_reach and not was_out_of_reach:
                note(f"round {step.purse.round} of {purse.max_rounds}  {step.belief.stage}")
            was_out_of_reach = out_of_reach
        if isinstance(step, RoundRecord) and step.round % every == 0:
            note(f"round {step.round} of {purse.max_rounds}  {_round_words(step, measure)}")

    return show
