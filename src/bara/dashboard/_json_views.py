"""The content of pages as JSON: the list of runs, one run, and several runs side by side.

Amounts have the form that `json_money` gives them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from bara.dashboard._presentation import MOST, compact, shown, thin
from bara.dashboard._round_view import Json, round_json
from bara.dashboard._run_index import RunIndex
from bara.dashboard._run_view import PATIENCE, RunView
from bara.errors import LedgerError
from bara.ledger.decisions import Decision
from bara.ledger.run_state import ClosedRound, FailedDelivery, RunState
from bara.ledger.statements import ClientTotal, line_json
from bara.records import json_money
from bara.reports.contributions import Contributions, caution
from bara.reports.frames import column
from bara.runs.engines import kind_of, stored_metric
from bara.runs.place import command_for
from bara.text import counted, listing

LISTED = 200
"""The most runs that are listed, newest first."""

COMPARED = 8
"""The most runs that one page compares; nobody can tell more lines apart."""

LISTED_POINTS = 60
"""Points of a run's curve in the list of runs."""

COMPARED_POINTS = 400
"""Points of a run's curve beside other runs."""

CLIENTS = 24
"""The most clients that a figure shows one by one; the others are added up."""

FAILURES = 20
"""The most failures that are listed, newest first."""

DECISIONS = 50
"""The most commands of operators that are listed, newest first."""

TOLD = 500
"""The most characters of an error or a request to the operator."""

RECENT = 10
"""Rounds that count as recent: for active clients and for the pace."""


def index_json(index: RunIndex) -> Json:
    """Return every run with its state; a run that cannot be read has an error instead."""
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
            points = [one.accuracy for one in _thinned(view.rounds, LISTED_POINTS)]
            row = {"name": view.name, **_summary(view), "spark": points}
            compact(row)  # a value that JSON cannot hold spoils this row, not the page
            return row
    except (LedgerError, LookupError) as error:
        return {"name": name, "run": shown(name), "error": shown(str(error), TOLD)}


def compare_json(views: Sequence[RunView]) -> Json:
    """Return the summaries of several runs, and their rounds in columns."""
    return {"runs": list(map(_compared, views)), "most": COMPARED}


def _compared(view: RunView) -> Json:
    with view.held():
        row = {
            "name": view.name,
            **_summary(view),
            "rounds": _columns(_thinned(view.rounds, COMPARED_POINTS)),
        }
        compact(row)  # as in the list of runs: raises here what JSON cannot hold
        return row


def run_json(view: RunView, after: int = -1) -> Json:
    """Return everything that a run's page shows.

    Args:
        view: The run.
        after: Only rounds after this one are included.
    """
    since = [one for one in view.rounds if one.round > after]
    newest = None
    if view.newest is not None:
        newest = round_json(view.newest, view.rounds, view.newest_words)
    return {
        **_summary(view),
        "rounds": _columns(_thinned(since, MOST)),
        "of": len(view.rounds),
        "clients": _clients(view),
        "contributions": _contributions(view),
        "failures": _failures(view),
        "decisions": list(map(_decision, view.decisions[: -DECISIONS - 1 : -1])),
        "sheet": newest,
    }


def _thinned(rounds: Sequence[ClosedRound], most: int) -> list[ClosedRound]:
    positions = thin([one.accuracy for one in rounds], most)
    return [rounds[i] for i in positions]


def _summary(view: RunView) -> Json:
    """Return what was run, its state and the numbers at a glance."""
    config = view.config
    dataset = view.engine
    if kind_of(view.engine).has_data:
        dataset = config.get("data", {}).get("name")
    return {
        "run": shown(view.name),
        "allocator": shown(_label(config.get("allocator", {}))),
        "mechanism": shown(_label(config.get("mechanism", {}))),
        "dataset": shown(str(dataset)),
        "seed": config.get("seed"),
        "currency": view.books.purse.currency,
        "metric": shown(stored_metric(config)),
        "retention": "keep" if view.books.keeps_bids else "drop",
        "state": state_json(view),
        "glance": _glance(view),
    }


def state_json(view: RunView) -> Json:
    """Return the state of a run: its word, the time of its last event and what needs a person."""
    state = view.state
    if state is None:
        return {"word": "unknown"}
    word = _state_word(view, state)
    resume = None
    if word == "stopped":
        resume = command_for("resume", Path(view.place), view.engine)
    training = None
    if word == "running" and view.newest is not None and not view.newest.settled:
        training = view.newest.round
    needs = []
    for one in view.needs:
        answer = one.answer and shown(one.answer, TOLD)
        needs.append({"text": shown(one.text, TOLD), "answer": answer})
    return {
        "word": word,
        "ended": state.ended and shown(state.ended),
        "over": view.over,
        "at": state.at,
        "head": state.head,
        "closed": state.closed,
        "resume": resume,
        "training": training,
        "needs": needs,
    }


def _state_word(view: RunView, state: RunState) -> str:
    if state.ended is not None:
        return "finished"
    if any(one.key.startswith("approval") for one in view.needs):
        return "waiting"
    if state.paused:
        return "paused"
    return "stopped" if view.played is False else "running"


def _glance(view: RunView) -> Json:
    """Return the numbers that answer: where is my money going, and is it working?"""
    state = view.state
    total = view.books.purse.total if state is None else state.total
    ended = state is not None and state.ended is not None
    rounds = view.rounds
    last = rounds[-1] if rounds else None
    spent = 0 if state is None else state.spent
    played = 0 if last is None else last.round
    active = set[str]()
    for one in rounds[-RECENT:]:
        active.update(one.delivered)
    kept = None
    if view.kept is not None:
        model, accuracy_kept = view.kept
        kept = {"model": shown(model), "accuracy": accuracy_kept}
    return {
        **json_money(budget=total, spent=spent, left=total - spent),
        "rounds": played,
        "max_rounds": view.max_rounds,
        "rounds_left": 0 if ended else view.max_rounds - played,
        "seconds_a_round": _pace(rounds),
        "accuracy": None if last is None else last.accuracy,
        "accuracy_best": max((one.accuracy for one in rounds), default=None),
        "kept": kept,
        "loss": None if last is None else last.loss,
        "forecast": None if view.forecast is None else asdict(view.forecast),
        "outlook": _outlook(view),
        "active": len(active),
        "clients": view.config.get("clients", {}).get("count"),
        "bought": _bought(rounds),
        **json_money(returned=sum(one.returned for one in view.failures)),
        "failed": len(view.failures),
        "top_share": _top_share(view.totals, spent),
        "never_paid": _never_paid(view),
        "oldest": None if last is None else last.oldest,
    }


def _outlook(view: RunView) -> Json | None:
    """Return what the allocator told about more money, in columns, and about its target."""
    told = view.outlook
    if told is None:
        return None
    points = told["prospects"]
    return {
        **json_money(spend=column(points, "spend"), enough=told.get("enough")),
        "accuracy": column(points, "accuracy"),
        "low": column(points, "low"),
        "high": column(points, "high"),
        "target": view.config.get("budget", {}).get("target"),
        "chance": told.get("chance"),
        "sure": told.get("sure"),
        "out_of_reach": told.get("out_of_reach"),
    }


def _bought(rounds: Sequence[ClosedRound]) -> Json | None:
    """Return what the last tenth of the money spent, or the last round, did to the accuracy.

    The accuracy before and after is a mean over as many rounds, at most five.
    """
    if len(rounds) < 12:
        return None
    last = rounds[-1]
    start = next(i for i, one in enumerate(rounds) if one.spent >= 0.9 * last.spent)
    start = min(start, len(rounds) - 2)
    mean_of = min(len(rounds) - 1 - start, 5)
    before = fmean(one.accuracy for one in rounds[max(start + 1 - mean_of, 0) : start + 1])
    now = fmean(one.accuracy for one in rounds[-mean_of:])
    return {
        **json_money(money=last.spent - rounds[start].spent),
        "rounds": last.round - rounds[start].round,
        "points": 100 * (now - before),
    }


def _columns(rounds: Sequence[ClosedRound]) -> Json:
    """Return the rounds in columns, as figures need them."""
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
    """Return the clients that were paid most, one by one, and all others together."""
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    others = None
    if rest := ranked[CLIENTS:]:
        others = _total(_sum(rest), counted(len(rest), "other"))
    return {
        "top": [_total(one, shown(one.client)) for one in ranked[:CLIENTS]],
        "others": others,
        "count": len(ranked),
    }


def _contributions(view: RunView) -> Json | None:
    """Return how much each client's updates improved the model, and how far to trust that."""
    summed = Contributions()
    for one in view.rounds:
        summed.tell(one.contributions)
    found = summed.summary()
    if found is None:
        return None
    clients = []
    for client, contribution in list(found.items())[:CLIENTS]:
        paid = view.totals[client].paid if client in view.totals else 0
        clients.append({"client": shown(client), **contribution, **json_money(paid=paid)})
    return {"clients": clients, "caution": caution(found)}


def _failures(view: RunView) -> Json:
    """Return why winners did not deliver, and the newest failures."""
    counts = Counter(shown(one.reason) for one in view.failures)
    reasons = []
    for reason, count in counts.most_common(FAILURES):
        reasons.append({"reason": reason, "count": count})
    newest = view.failures[: -FAILURES - 1 : -1]
    return {
        "count": len(view.failures),
        "reasons": reasons,
        "newest": list(map(_failure, newest)),
    }


def _failure(one: FailedDelivery) -> Json:
    return {
        "round": one.round,
        "client": shown(one.client),
        "reason": shown(one.reason),
        **json_money(returned=one.returned),
    }


def _decision(one: Decision) -> Json:
    """Return an operator's command as one line: when, what, who and why."""
    who = one.by or "not stored"
    if one.login:
        who += f" (login {one.login})"
    return {
        "at": one.at[:16].replace("T", " "),
        "what": f"{one.what} {one.about}".strip(),
        **json_money(amount=one.amount),
        "who": shown(who),
        "why": shown(one.reason, TOLD),
    }


def _label(section: Mapping[str, Any]) -> str:
    """Return the name and options of an allocator or mechanism, as in `even:carry_over=true`."""
    words = [str(section.get("name", ""))]
    for key, value in section.items():
        if key == "name":
            continue
        text = str(value).lower() if isinstance(value, bool) else value
        words.append(f"{key}={text}")
    return ":".join(words)


def _pace(rounds: Sequence[ClosedRound]) -> float | None:
    """Return the mean seconds that a recent round took."""
    recent = rounds[-RECENT:]
    if len(recent) < 2:
        return None
    first = datetime.fromisoformat(recent[0].at)
    last = datetime.fromisoformat(recent[-1].at)
    return (last - first).total_seconds() / (len(recent) - 1)


def _top_share(totals: Mapping[str, ClientTotal], spent: int) -> Json | None:
    """Return the share of the money that went to the best paid quarter of the clients."""
    if not spent:
        return None
    ranked = sorted((one.paid for one in totals.values()), reverse=True)
    quarter = max(len(ranked) // 4, 1)
    return {"clients": quarter, "share": sum(ranked[:quarter]) / spent}


def _never_paid(view: RunView) -> Json:
    """Return how many clients bid and were never paid, and the names of the first."""
    names = sorted(client for client, total in view.totals.items() if not total.paid)
    return {"count": len(names), "names": shown(listing(names))}


def _sum(totals: Sequence[ClientTotal]) -> ClientTotal:
    """Add up totals; the sum of the asks is None if one of them is unknown."""
    added = ClientTotal("")
    for one in totals:
        added.won += one.won
        added.void += one.void
        added.promised += one.promised
        added.paid += one.paid
        added.returned += one.returned
        if added.asked is None or one.asked is None:
            added.asked = None
        else:
            added.asked += one.asked
    return added


def _total(one: ClientTotal, label: str) -> Json:
    hidden = ("promised", "privacy")
    row = {key: value for key, value in line_json(one).items() if not key.startswith(hidden)}
    return {**row, "client": label}
