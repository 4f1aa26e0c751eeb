"""A run as it goes on, in a terminal or a notebook: how far it is, what is left, whether it works, what happens now."""

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
from bara.reports.terminal import goal_line, outlook_line, per_cent, spark_line
from bara.text import counted, note, spelled

RECENT = 10
"""Rounds from which pace and cost are taken."""

Wanted = bool | None
"""Whether progress is shown; None for where somebody watches."""

Show = Callable[[AwardedRound | RoundRecord], None]


@final
class RunScreen:
    """What is on the screen while a run goes on.

    Args:
        title: What is run.
        purse: The purse the run begins with.
        clock: Seconds, from whenever.
        measure: What people read of the metric.
    """

    def __init__(
        self,
        title: str,
        purse: Purse,
        clock: Callable[[], float] = time.monotonic,
        *,
        measure: str = "accuracy",
    ) -> None:
        self._title = title
        self._measure = measure
        self._purse = purse
        self._clock = clock
        self._accuracies: list[float] = []
        self._clients: list[float] = []
        self._settled: deque[tuple[float, int]] = deque(
            maxlen=RECENT + 1
        )  # when, and what the round cost
        self._now = "the initial model is evaluated"
        self._outlook: MoneyOutlook | None = None

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Take in what happened."""
        if isinstance(step, AwardedRound):
            award = step.award
            cost = tell_money(decimal_money(award.cost), step.purse.currency)
            who = (
                f"training {counted(award.n, 'client')} for {cost}"
                if award.n
                else "nobody is recruited"
            )
            self._now = f"round {step.purse.round}: {who}"
            self._outlook = step.belief.outlook if step.belief else None
            return
        self._purse = step.purse_after
        self._accuracies.append(step.evaluation.reported_accuracy)
        if step.round:
            self._clients.append(float(step.n))
        self._settled.append((self._clock(), step.paid))

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at this pace until the deadline or the last money, whichever comes first."""
        if len(self._settled) < 2:
            return None
        (start, _), *rounds = self._settled
        pace = (self._settled[-1][0] - start) / len(rounds)
        cost = sum(paid for _, paid in rounds) / len(rounds)
        return pace * (
            min(self._purse.rounds_left, self._purse.left / cost)
            if cost
            else self._purse.rounds_left
        )

    def __rich__(self) -> Panel:
        """The screen now."""
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
        grid.add_row(
            self._measure, f"[bold]{accuracy}[/]", Text(spark_line(self._accuracies), style="green")
        )
        n = f"{self._clients[-1]:.0f}" if self._clients else "–"
        grid.add_row("clients", n, Text(spark_line(self._clients), style="cyan"))
        grid.add_row("time left", duration(self.seconds_left), Text(self._now, style="dim"))
        if self._outlook is not None:
            for name, line in (
                ("target", goal_line(self._outlook)),
                ("for money", outlook_line(self._outlook, purse.currency)),
            ):
                if line:
                    grid.add_row(name, "", Text(line))
        hint = "[dim]Ctrl-C ends it after this round; bara resume goes on[/]"
        return Panel(
            grid,
            title=Text(spelled(self._title)),
            title_align="left",
            subtitle=hint,
            subtitle_align="right",
        )


def duration(seconds: float | None) -> str:
    """A time as a clock shows it.

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
    title: str, purse: Purse, *, progress: Wanted, measure: str = "accuracy"
) -> Iterator[Show]:
    """Show a run while it goes on: a live screen on a terminal, a bar in a notebook, a line every tenth of the way.

    Args:
        title: What is run.
        purse: The purse the run begins with.
        progress: Whether to; None for where somebody watches, a terminal or a notebook.
        measure: What people read of the metric.
    """
    match audience(progress):
        case "terminal":
            screen = RunScreen(title, purse, measure=measure)
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
    """Show how many of so many things are done; what is yielded is told of each. As `watching` otherwise."""
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
    """A live bar on a terminal; nothing elsewhere."""
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
    """Who is shown how far a thing is."""
    if progress is False:
        return "nobody"
    interactive = sys.modules.get("IPython")
    if interactive and hasattr(interactive.get_ipython(), "kernel"):
        return "notebook"
    if Console(stderr=True).is_terminal:
        return "terminal"
    return "lines" if progress else "nobody"


@final
class NotebookBar:
    """A bar beneath the cell of a notebook, at most five times a second another one.

    Args:
        total: How many steps it has.
    """

    def __init__(self, total: int) -> None:
        self._display = importlib.import_module("IPython.display")
        self._handle = self._display.display(self._display.HTML(""), display_id=True)
        self._total = total
        self._shown = -math.inf

    def show(self, done: int, what: str) -> None:
        """So many steps are done, the last of them this one."""
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
            bar.show(step.round, _told(step, measure))

    return show


def _told(step: RoundRecord, measure: str) -> str:
    accuracy, spent = step.evaluation.reported_accuracy, decimal_money(step.purse_after.spent)
    return f"{measure} {per_cent(accuracy)}  n {step.n}  spent {tell_money(spent, step.purse_after.currency)}"


def attending(address: str) -> Show:
    """Write a line for whatever begins to need a person while a run goes on."""
    watch, told = Watch(address), set[str]()

    def show(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord):
            watch.tell(step)
            for one in watch.needs():
                if one.key not in told:
                    told.add(one.key)
                    note(
                        f"bara: round {step.round}: {one.text}"
                        + (f"; {one.answer}" if one.answer else "")
                    )

    return show


def _plain_lines(purse: Purse, measure: str) -> Show:
    every = max(purse.max_rounds // 10, 1)
    lost = False

    def show(step: AwardedRound | RoundRecord) -> None:
        nonlocal lost
        if isinstance(step, AwardedRound) and step.belief and step.belief.outlook:
            if step.belief.outlook.out_of_reach and not lost:
                note(f"round {step.purse.round} of {purse.max_rounds}  {step.belief.stage}")
            lost = step.belief.outlook.out_of_reach
        if isinstance(step, RoundRecord) and step.round % every == 0:
            note(f"round {step.round} of {purse.max_rounds}  {_told(step, measure)}")

    return show
