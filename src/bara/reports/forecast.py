"""A forecast: what allocators would make of budgets, before anything is spent."""

from dataclasses import asdict, dataclass
from typing import Any, final

from bara.records import tell_money
from bara.reports.frames import frame
from bara.reports.html import short_table
from bara.reports.result import FEW


@dataclass(frozen=True)
class Outlook:
    """The forecast of one allocator with one budget. Intervals hold nine times in ten.

    Attributes:
        allocator: The allocator.
        budget: The budget.
        accuracy: Low, mean and high of the final accuracy.
        rounds: Low, mean and high of the rounds played.
        spent: Low, mean and high of the money spent.
        binds: The limit that most of the imagined runs come up against, in words.
        reached: How often the target was reached; None without a target.
        clients: The number of clients.
        paid: How many of them were paid at all, on average.
        few: The mean share of the money that the few paid most got.
    """

    allocator: str
    budget: float
    accuracy: tuple[float, float, float]
    rounds: tuple[float, float, float]
    spent: tuple[float, float, float]
    binds: str
    reached: float | None = None
    clients: int = 0
    paid: float = 0.0
    few: float = 0.0


@final
@dataclass(frozen=True, repr=False)
class Forecast:
    """The forecasts of allocators with several budgets.

    Attributes:
        outlooks: One for each budget and allocator.
        past_runs: How many runs it was learned from.
        draws: The number of imagined learning curves.
        source: What these curves were drawn from, in words.
        measure: The title of the metric.
        reach: The accuracy that was asked for, if one was.
        confidence: How likely the budget must reach it.
        budget: The budget that reaches it; None beyond `most`, or where no accuracy was asked for.
        most: The largest budget that was tried.
        currency: The ISO 4217 code of all amounts; None for units of no currency.
    """

    outlooks: list[Outlook]
    past_runs: int
    draws: int
    source: str
    measure: str = "accuracy"
    reach: float | None = None
    confidence: float = 0.9
    budget: float | None = None
    most: float = 0.0
    currency: str | None = None

    def to_frame(self) -> Any:
        """Return a pandas frame with a line for each budget and allocator."""
        rows = []
        for one in self.outlooks:
            row: dict[str, Any] = {"allocator": one.allocator, "budget": one.budget}
            for name in ("accuracy", "rounds", "spent"):
                low, mean, high = getattr(one, name)
                row[f"{name}_low"] = low
                row[name] = float(mean)
                row[f"{name}_high"] = high
            row["clients_paid"] = one.paid
            row["share_of_few"] = one.few
            rows.append(row)
        return frame(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as a plain tree."""
        tree: dict[str, Any] = {
            "past_runs": self.past_runs,
            "currency": self.currency,
            "forecasts": list(map(asdict, self.outlooks)),
        }
        if self.reach is not None:
            tree["reach"] = self.reach
            tree["confidence"] = self.confidence
            tree["budget"] = self.budget
            if self.budget is None:
                tree["binds"] = self.outlooks[-1].binds
        return tree

    @property
    def rows(self) -> list[list[str]]:
        """The table as people read it, its head first."""
        has_target = any(one.reached is not None for one in self.outlooks)
        head = ["budget", "allocator", f"final {self.measure}", "90 % interval", "rounds", "spent"]
        if has_target:
            head.append("reached")
        rows = [[*head, "clients paid", "binds"]]
        for one in self.outlooks:
            low, mean, high = one.accuracy
            row = [
                tell_money(one.budget, self.currency, about=True),
                one.allocator,
                f"{100 * mean:.1f} %",
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{one.rounds[1]:.0f}",
                tell_money(one.spent[1], self.currency, about=True),
            ]
            if one.reached is not None:
                row.append(f"{100 * one.reached:.0f} %")
            rows.append([*row, f"{one.paid:.0f} of {one.clients}", one.binds])
        return rows

    @property
    def told(self) -> str:
        """To how few the money goes, and what the forecast was learned from."""
        shares = [100 * one.few for one in self.outlooks]
        least = f"{min(shares):.0f}"
        most = f"{max(shares):.0f}"
        share = least if least == most else f"{least} to {most}"
        count = min(FEW, self.outlooks[0].clients)
        few = f"The {count} clients paid most get {share} % of the money."
        return f"{few} Over {self.draws} imagined learning curves, {self.source}."

    def answer(self) -> str | None:
        """Say in a line which budget reaches the accuracy that was asked for; None without one."""
        if self.reach is None:
            return None
        goal = f"{100 * self.reach:g} % with {100 * self.confidence:g} % confidence"
        if self.budget is not None:
            return f"{goal}: about {tell_money(self.budget, self.currency, about=True)}"
        most = tell_money(self.most, self.currency, about=True)
        return f"{goal}: not with up to {most}; what binds there is {self.outlooks[-1].binds}"

    def __repr__(self) -> str:
        """Describe the forecast in a line."""
        what = self.answer() or f"{len(self.outlooks)} outlooks"
        return f"<Forecast: {what}, over {self.draws} curves, {self.source}>"

    def _repr_html_(self) -> str:
        head, *rows = self.rows
        described = repr(self).replace("<Forecast", "&lt;Forecast")
        return f"<div>{short_table(head, rows)}<p>{described}</p></div>"
