"""A run as one HTML file: no network, no script, figures drawn as SVG."""

import math
from collections.abc import Sequence
from html import escape
from itertools import accumulate

from bara.experiments.results import Result

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #667; --line: #0072b2; --rule: #8884; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #16181c; --soft: #9aa; --line: #56b4e9; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; }
.facts div span { display: block; color: var(--soft); font-size: .85rem; } .facts b { font-size: 1.5rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 0 2rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
polyline { fill: none; stroke: var(--line); stroke-width: 1.8; } .grid { stroke: var(--rule); }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } pre { overflow-x: auto; background: #8881; padding: .7rem; }
.scroll { max-height: 24rem; overflow: auto; }
"""


def nice_step(span: float, parts: int = 4) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that covers the span in so many parts.

    >>> nice_step(0.87), nice_step(19), nice_step(1500)
    (0.25, 5.0, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(span / parts))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor * parts >= span)


def chart(title: str, xs: Sequence[float], ys: Sequence[float], x_name: str) -> str:
    """One line over one axis from zero, with axes in numbers and a text for those who cannot see it."""
    left, top, width, height = 44, 8, 420, 180
    step = nice_step(max(*ys, 1e-9))
    high = 4 * step
    start, end = min(xs), max(*xs, min(xs) + 1e-9)
    points = " ".join(
        f"{left + (x - start) / (end - start) * width:.1f},{top + (high - y) / high * height:.1f}"
        for x, y in zip(xs, ys, strict=True)
    )
    grid = "".join(
        f'<line class="grid" x1="{left}" x2="{left + width}" y1="{top + k * height / 4}" y2="{top + k * height / 4}"/>'
        f'<text x="{left - 6}" y="{top + k * height / 4 + 4}" text-anchor="end">{(4 - k) * step:,.4g}</text>'
        for k in range(5)
    )
    axis = (
        f'<text x="{left}" y="{top + height + 16}">{start:,.4g}</text>'
        f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{end:,.5g}</text>'
        f'<text x="{left + width / 2}" y="{top + height + 16}" text-anchor="middle">{escape(x_name)}</text>'
    )
    label = f"{title}: from {ys[0]:.3g} to {ys[-1]:.3g}, over {x_name}"
    return (
        f"<section><h2>{escape(title)}</h2>"
        f'<svg viewBox="0 0 {left + width + 8} {top + height + 24}" role="img" aria-label="{escape(label)}">'
        f'{grid}<polyline points="{points}"/>{axis}</svg></section>'
    )


def run_report(result: Result, config_toml: str, command: str) -> str:
    """The whole page of one run."""
    rounds = [entry["round"] for entry in result.history]
    accuracy = [entry["accuracy"] for entry in result.history]
    spent = list(accumulate(entry["cost"] for entry in result.history))
    figures = [
        chart("Accuracy over rounds", rounds, accuracy, "round"),
        chart("Accuracy over money spent", spent, accuracy, "spent"),
        chart("Clients a round", rounds[1:] or rounds, [e["n"] for e in result.history][1:] or [0], "round"),
        chart("Money left", rounds, [result.budget - s for s in spent], "round"),
    ]
    title = f"{result.dataset}: {result.allocator} on {result.mechanism}"
    facts = {
        "final accuracy": f"{100 * result.accuracy_final:.1f} %",
        "best round": f"{100 * result.accuracy_best:.1f} %",
        "mean of the last ten": f"{100 * result.accuracy_last10:.1f} %",
        "spent": f"{result.spent:,.2f} of {result.budget:,.2f}",
        "rounds": f"{result.rounds}",
    }
    shown = "".join(f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>" for name, value in facts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{result.clients} clients, seed {result.seed}; ended because "
        f'{escape(result.ended)}.</p><div class="facts">{shown}</div><div class="figures">{"".join(figures)}</div>'
        f'<h2>Payments</h2><div class="scroll">{_payments(result)}</div>'
        f"<h2>Repeat it</h2><pre>{escape(command)}</pre><h2>Configuration</h2><pre>{escape(config_toml)}</pre>"
        "</body></html>"
    )


def _payments(result: Result) -> str:
    """Who was paid what, and beside it, where privacy was traded, how much of it was given for that."""
    privacy = result.privacy or {}
    names = ["client", "paid", *(["rounds won", "sum of ε", f"ε at δ = {_delta(privacy):g}"] if privacy else [])]
    rows = [
        [escape(client), f"{amount:,.6f}", *(_spent(privacy[client]) if privacy else [])]
        for client, amount in result.payments.items()
    ]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _delta(privacy: dict[str, dict[str, float]]) -> float:
    return next(iter(privacy.values()))["delta"]


def _spent(privacy: dict[str, float]) -> list[str]:
    return [f"{privacy['rounds']:.0f}", f"{privacy['epsilon_sum']:.2f}", f"{privacy['epsilon']:.2f}"]
