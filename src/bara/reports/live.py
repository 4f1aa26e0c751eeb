"""A run as it goes on, in the terminal: how far it is, what is left, whether it works, and what happens now."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bara.records import AwardedRound, Purse, RoundRecord, decimal_money
from bara.reports.terminal import per_cent, spark_line
from bara.text import note, spelled

RECENT = 10
"""Rounds from which pace and cost are taken."""

Show = Callable[[AwardedRound | RoundRecord], None]


@final
class RunScreen:
    """What is on the screen while a run goes on.

    Args:
        title: What is run.
        purse: The purse the run begins with.
        clock: Seconds, from whenever.
    """

    def __init__(self, title: str, purse: Purse, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._purse = purse
        self._clock = clock
        self._accuracies: list[float] = []
        self._clients: list[float] = []
        self._settled: deque[tuple[float, int]] = deque(maxlen=RECENT + 1)  # when, and what the round cost
        self._now = "the initial model is evaluated"

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Take in what happened."""
        if isinstance(step, AwardedRound):
            award = step.award
            who = f"{award.n} clients train for {decimal_money(award.cost):,.2f}" if award.n else "nobody is recruited"
            self._now = f"round {step.purse.round}: {who}"
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
        return pace * (min(self._purse.rounds_left, self._purse.left / cost) if cost else self._purse.rounds_left)

    def __rich__(self) -> Panel:
        """The screen now."""
        purse = self._purse
        played = purse.max_rounds - purse.rounds_left
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(no_wrap=True, justify="right")
        grid.add_column(ratio=1, no_wrap=True)
        grid.add_row("round", f"{played} of {purse.max_rounds}", ProgressBar(purse.max_rounds, played))
        money = f"{decimal_money(purse.left):,.2f}"
        bar = ProgressBar(purse.total, purse.left, complete_style="yellow", finished_style="yellow")
        grid.add_row("purse left", money, bar)
        accuracy = per_cent(self._accuracies[-1]) if self._accuracies else "–"
        grid.add_row("accuracy", f"[bold]{accuracy}[/]", Text(spark_line(self._accuracies), style="green"))
        n = f"{self._clients[-1]:.0f}" if self._clients else "–"
        grid.add_row("clients", n, Text(spark_line(self._clients), style="cyan"))
        grid.add_row("time left", duration(self.seconds_left), Text(self._now, style="dim"))
        hint = "[dim]Ctrl-C ends it after this round; bara resume goes on[/]"
        return Panel(grid, title=Text(spelled(self._title)), title_align="left", subtitle=hint, subtitle_align="right")


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
def watching(title: str, purse: Purse, *, quiet: bool) -> Iterator[Show]:
    """Show a run while it goes on: a live screen on a terminal, elsewhere a plain line every tenth of the way."""
    console = Console(stderr=True)
    if quiet:
        yield lambda _step: None
    elif console.is_terminal:
        screen = RunScreen(title, purse)
        with Live(screen, console=console, refresh_per_second=8, transient=True):
            yield screen.observe
    else:
        yield _plain_lines(purse)


def _plain_lines(purse: Purse) -> Show:
    every = max(purse.max_rounds // 10, 1)

    def show(step: AwardedRound | RoundRecord) -> None:
        if isinstance(step, RoundRecord) and step.round % every == 0:
            accuracy, spent = step.evaluation.reported_accuracy, decimal_money(step.purse_after.spent)
            note(
                f"round {step.round} of {purse.max_rounds}  accuracy {per_cent(accuracy)}  n {step.n}  "
                f"spent {spent:,.2f}"
            )

    return show
