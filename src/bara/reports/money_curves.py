"""What money buys, in a line for the terminal; its figure is among `bara.reports.charts`."""

from bara.allocators.prospects import PARTS
from bara.records import MoneyOutlook, decimal_money, tell_money

HALF, ALL, TWICE = (PARTS.index(part) for part in (0.5, 1.0, 2.0))


def outlook_line(outlook: MoneyOutlook, currency: str | None = None) -> str:
    """What half of the money left, all of it and twice as much would buy, in one line; empty where nothing is known."""
    if not outlook.prospects:
        return ""
    points = [outlook.prospects[part] for part in (HALF, ALL, TWICE)]
    told = ", ".join(f"{_about(one.spend, currency)}: {_percent(one.accuracy)}" for one in points)
    return told + (
        "" if outlook.enough is None else f"; enough: about {_about(outlook.enough, currency)}"
    )


def goal_line(outlook: MoneyOutlook) -> str:
    """How it stands with a target; empty without one."""
    if outlook.sure is None or outlook.chance is None:
        return ""
    if outlook.out_of_reach:
        return "looks out of reach"
    return f"{100 * outlook.sure:.0f} % sure that it is reached; {100 * outlook.chance:.0f} % that it can be"


def _about(micros: int, currency: str | None) -> str:
    return tell_money(decimal_money(micros), currency, about=True)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
