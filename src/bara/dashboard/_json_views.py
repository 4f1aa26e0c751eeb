"""What pages show, as JSON: the list of runs, one run, several side by side; amounts as `json_money` has them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from bara.dashboard._presentation import compact, shown, thin
from bara.dashboard._round_view import Json, round_json
from bara.dashboard._run_index import RunIndex
from bara.dashboard._run_view import PATIENCE, RunView
from bara.errors import LedgerError
from bara.ledger.progress import ClosedRound
from bara.ledger.statements import ClientTotal, line_json
from bara.records import json_money
from bara.reports.contributions import Contributions, caution
from bara.runs.config import WITH_DATA
from bara.runs.folder import command_for
from bara.server.metrics import stored_title
from bara.text import counted

LISTED = 200
"""Runs that are listed, newest first."""

COMPARED = 8
"""Runs that one page compares; more lines than that no eye can tell apart."""

LISTED_POINTS, COMPARED_POINTS = 60, 400
"""Points of a run's curve in the list, and beside others."""

CLIENTS = 24
"""Clients that a figure shows one by one; the others are added up."""

FAILURES = 20
"""Failures that are listed, newest first."""

TOLD = 500
"""Characters that are shown of why a run is not."""

RECENT = 10


def index_json(index: RunIndex) -> Json:
    """Every run with where it stands; one that cannot be read says why."""
    names = index.names()
    return {
        "folder": shown(index.title),
        "count": len(names),
        "runs": [_listed(index, name) for name in names[:LISTED]],
    }


def _listed(index: RunIndex, name: str) -> Json:
    try:
        view = index.view(name)
        with view.held(PATIENCE):
            values = [one.accuracy for one in view.rounds]
            row = {
                "name": view.name,
                **_summary(view),
                "spark": [values[i] for i in thin(values, LISTED_POINTS)],
            }
            compact(row)  # what is no JSON is this run's trouble, not that of the page
            return row
    except (LedgerError, LookupError) as error:
        return {"name": name, "run": shown(name), "error": shown(str(error), TOLD)}


def compare_json(views: Sequence[RunView]) -> Json:
    """What they reached and what it cost, and their rounds in columns."""
    return {"runs": [_compared(view) for view in views], "most": COMPARED}


def _compared(view: RunView) -> Json:
    with view.held():
        kept = thin([one.accuracy for one in view.rounds], COMPARED_POINTS)
        row = {
            "name": view.name,
            **_summary(view),
            "rounds": _columns([view.rounds[i] for i in kept]),
        }
        compact(row)
        return row


def run_json(view: RunView, after: int = -1) -> Json:
    """Everything a run's page shows; with `after`, only the rounds since."""
    since = [one for one in view.rounds if one.round > after]
    kept = thin([one.accuracy for one in since])
    return {
        **_summary(view),
        "rounds": _columns([since[i] for i in kept]),
        "of": len(view.rounds),
        "clients": _clients(view),
        "contributions": _contributions(view),
        "failures": _failures(view),
        "sheet": None
        if view.newest is None
        else round_json(view.newest, view.rounds, view.newest_words),
    }


def _summary(view: RunView) -> Json:
    """What was run and how it stands."""
    config, engine = view.config, view.engine
    dataset = config.get("data", {}).get("name") if engine in WITH_DATA else engine
    return {
        "run": shown(view.name),
        "allocator": shown(_label(config.get("allocator", {}))),
        "mechanism": shown(_label(config.get("mechanism", {}))),
        "dataset": shown(str(dataset)),
        "seed": config.get("seed"),
        "currency": view.books.purse.currency,
        "metric": shown(stored_title(config)),
        "retention": "keep" if view.books.keeps_bids else "drop",
        "state": state_json(view),
        "glance": _glance(view),
    }


def state_json(view: RunView) -> Json:
    """Whether it runs, waits, has ended or was stopped before its end, and since when there is no news."""
    state = view.state
    if state is None:
        return {"word": "unknown"}
    going = "stopped" if view.alone else "running"
    waits = any(one.key.startswith("approval") for one in view.needs)
    word = (
        "finished"
        if state.ended is not None
        else "waiting"
        if waits
        else "paused"
        if state.paused
        else going
    )
    training = view.newest is not None and not view.newest.settled and word == "running"
    return {
        "word": word,
        "ended": state.ended and shown(state.ended),
        "at": state.at,
        "head": state.head,
        "closed": state.closed,
        "resume": command_for("resume", Path(view.place), view.engine)
        if word == "stopped"
        else None,
        "training": view.newest.round if training and view.newest is not None else None,
        "needs": [
            {"text": shown(one.text, TOLD), "answer": one.answer and shown(one.answer, TOLD)}
            for one in view.needs
        ],
    }


def _glance(view: RunView) -> Json:
    """The few numbers that answer: where is my money going, and is it working?"""
    rounds, state = view.rounds, view.state
    total = state.total if state is not None else view.books.purse.total
    spent = rounds[-1].spent if rounds else 0
    played = rounds[-1].round if rounds else 0
    active = {client for one in rounds[-RECENT:] for client in one.delivered}
    return {
        **json_money(budget=total, spent=spent, left=total - spent),
        "rounds": played,
        "max_rounds": view.max_rounds,
        "rounds_left": 0
        if state is not None and state.ended is not None
        else view.max_rounds - played,
        "seconds_a_round": _pace(rounds),
        "accuracy": rounds[-1].accuracy if rounds else None,
        "accuracy_best": max((one.accuracy for one in rounds), default=None),
        "kept": None
        if view.kept is None
        else {"model": shown(view.kept[0]), "accuracy": view.kept[1]},
        "loss": rounds[-1].loss if rounds else None,
        "forecast": None if view.forecast is None else asdict(view.forecast),
        "outlook": _outlook(view),
        "active": len(active),
        "clients": view.config.get("clients", {}).get("count"),
        "bought": _bought(rounds),
        **json_money(returned=sum(one.returned for one in view.failures)),
        "failed": len(view.failures),
        "top_share": _top_share(view.totals, spent),
    }


def _outlook(view: RunView) -> Json | None:
    """Return what the allocator told about more money, in columns, and about its target."""
    told = view.outlook
    if told is None:
        return None
    points = told["prospects"]
    goal = {key: told.get(key) for key in ("chance", "sure", "out_of_reach")}
    return {
        **json_money(spend=[one["spend"] for one in points], enough=told.get("enough")),
        **{key: [one[key] for one in points] for key in ("accuracy", "low", "high")},
        "target": view.config.get("budget", {}).get("target"),
        **goal,
    }


def _bought(rounds: Sequence[ClosedRound], part: float = 0.1) -> Json | None:
    """What the last tenth of the budget did to the accuracy, each end a mean of five rounds."""
    if len(rounds) < 12:
        return None
    since = rounds[-1].spent - part * rounds[-1].total
    start = next(i for i, one in enumerate(rounds) if one.spent >= since)
    before, now = rounds[max(start - 4, 0) : start + 1], rounds[-5:]
    return {
        **json_money(money=rounds[-1].spent - rounds[start].spent),
        "rounds": rounds[-1].round - rounds[start].round,
        "points": 100
        * (fmean(one.accuracy for one in now) - fmean(one.accuracy for one in before)),
    }


def _columns(rounds: Sequence[ClosedRound]) -> Json:
    """Rounds in columns, as figures want them."""
    return {
        "round": [one.round for one in rounds],
        "n": [len(one.delivered) for one in rounds],
        "void": [len(one.void) for one in rounds],
        **json_money(
            cost=[one.paid for one in rounds],
            spent=[one.spent for one in rounds],
            left=[one.total - one.spent for one in rounds],
        ),
        "accuracy": [one.accuracy for one in rounds],
        "loss": [one.loss for one in rounds],
    }


def _clients(view: RunView) -> Json:
    """Who was paid most, one by one, and all others together."""
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    rest = ranked[CLIENTS:]
    return {
        "top": [_total(one, shown(one.client)) for one in ranked[:CLIENTS]],
        "others": _total(_sum(rest), counted(len(rest), "other")) if rest else None,
        "count": len(ranked),
    }


def _contributions(view: RunView) -> Json | None:
    """What the model is better by for each client's updates, and how far that is to be trusted."""
    summed = Contributions()
    for one in view.rounds:
        summed.tell(one.contributions)
    found = summed.summary()
    if found is None:
        return None
    top = list(found.items())[:CLIENTS]
    paid = {client: view.totals[client].paid if client in view.totals else 0 for client, _ in top}
    clients = [
        {"client": shown(client), **one, **json_money(paid=paid[client])} for client, one in top
    ]
    return {"clients": clients, "caution": caution(found)}


def _failures(view: RunView) -> Json:
    """Why winners did not deliver, and the newest of them."""
    reasons = Counter(shown(one.reason) for one in view.failures)
    newest = view.failures[: -FAILURES - 1 : -1]
    return {
        "count": len(view.failures),
        "reasons": [
            {"reason": reason, "count": count} for reason, count in reasons.most_common(FAILURES)
        ],
        "newest": [
            {
                "round": one.round,
                "client": shown(one.client),
                "reason": shown(one.reason),
                **json_money(returned=one.returned),
            }
            for one in newest
        ],
    }


def _label(section: Mapping[str, Any]) -> str:
    options = [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in section.items()
    ]
    return ":".join(
        [str(section.get("name", "")), *(one for one in options if not one.startswith("name="))]
    )


def _pace(rounds: Sequence[ClosedRound]) -> float | None:
    """Seconds a round took of late."""
    some = rounds[-RECENT:]
    if len(some) < 2:
        return None
    first, last = (datetime.fromisoformat(one.at) for one in (some[0], some[-1]))
    return (last - first).total_seconds() / (len(some) - 1)


def _top_share(totals: Mapping[str, ClientTotal], spent: int) -> Json | None:
    """How much of the money the best paid quarter of all clients got."""
    if not spent:
        return None
    ranked = sorted((one.paid for one in totals.values()), reverse=True)
    some = max(len(ranked) // 4, 1)
    return {"clients": some, "share": sum(ranked[:some]) / spent}


def _sum(totals: Sequence[ClientTotal]) -> ClientTotal:
    asked = [one.asked for one in totals]
    return ClientTotal(
        "",
        won=sum(one.won for one in totals),
        void=sum(one.void for one in totals),
        asked=None if None in asked else sum(filter(None, asked)),
        promised=sum(one.promised for one in totals),
        paid=sum(one.paid for one in totals),
        returned=sum(one.returned for one in totals),
    )


def _total(one: ClientTotal, label: str) -> Json:
    kept = {
        key: value
        for key, value in line_json(one).items()
        if not key.startswith(("promised", "privacy"))
    }
    return {**kept, "client": label}
