"""A run or a comparison as one HTML file: no network, no script, figures drawn as SVG."""

import math
from collections.abc import Sequence
from html import escape

from bara.records import money, show_money, tell_money
from bara.reports.charts import Chart, Line, comparison_charts, frontier_chart, headline, run_charts
from bara.reports.comparison import Comparison
from bara.reports.comparison_table import (
    Best,
    comparison_rows,
    explain_first,
    frontier_rows,
    rows_of,
    suite_rows,
)
from bara.reports.contributions import caution
from bara.reports.result import Result, by_setting, measure_of
from bara.reports.statistics import FEWEST
from bara.text import counted

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #667; --line: #0072b2; --rule: #8884; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #16181c; --soft: #9aa; --line: #56b4e9; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; }
.facts div span { display: block; color: var(--soft); font-size: .85rem; } .facts b { font-size: 1.5rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: 0 2rem; }
.figures svg, .print svg { width: 100%; height: auto; } .figures svg text { fill: var(--soft); font-size: 11px; }
.print { max-width: 46rem; background: #fff; }
polyline { fill: none; stroke: var(--c); stroke-width: 1.8; } .grid { stroke: var(--rule); }
.mark { stroke: var(--soft); stroke-dasharray: 2 3; }
polygon { fill: var(--c); opacity: .18; } .legend { margin: 0; font-size: .85rem; color: var(--soft); }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend i { display: inline-block; width: 1em; height: .25em; margin: 0 .4em .2em 0; background: var(--c); }
.c0 { --c: var(--line); } .c1 { --c: #d55e00; } .c2 { --c: #009e73; } .c3 { --c: #cc79a7; } .c4 { --c: #e69f00; }
.c5 { --c: #999; } .c6 { --c: #a3a500; } .c7 { --c: #7f6bd1; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } pre { overflow-x: auto; background: #8881; padding: .7rem; }
.scroll { max-height: 24rem; overflow: auto; }
.d1 { stroke-dasharray: 6 3; } .d2 { stroke-dasharray: 2 2; } .d3 { stroke-dasharray: 8 2 2 2; }
@media (max-width: 40rem) {
  .scroll { max-height: none; } table, tbody { display: block; }
  tr:first-child { display: none; } tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--rule); }
  td, td:first-child { display: flex; justify-content: space-between; gap: 1rem; padding: 0; text-align: right;
    overflow-wrap: anywhere; }
  td::before { content: attr(data-column); color: var(--soft); } td:empty { display: none; }
}
"""


def nice_step(span: float, parts: int = 4) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that covers the span in so many parts.

    >>> nice_step(0.87), nice_step(19), nice_step(1500)
    (0.25, 5.0, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(span / parts))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor * parts >= span)


def draw(chart: Chart) -> str:
    """Lines over axes in numbers, bands behind them, a legend, and a text for those who cannot see it."""
    left, top, width, height = 52, 8, 420, 180
    every = [y for line in chart.lines for ys in (line.ys, *(line.band or ())) for y in ys]
    step = nice_step(max(*every, 1e-9) - min(*every, 0.0))
    below = math.floor(min(*every, 0.0) / step)
    above = max(math.ceil(max(*every, 1e-9) / step), below + 1)
    start = min(x for line in chart.lines for x in line.xs)
    end = max(*(x for line in chart.lines for x in line.xs), start + 1e-9)

    def points(xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(
            f"{left + (x - start) / (end - start) * width:.1f},"
            f"{top + (above - y / step) / (above - below) * height:.1f}"
            for x, y in zip(xs, ys, strict=True)
        )

    drawn = ""
    for number, line in enumerate(chart.lines):
        if line.band:
            low, high = line.band
            outline = f"{points(line.xs, high)} {points(line.xs[::-1], low[::-1])}"
            drawn += f'<polygon class="{_look(number, line)}" points="{outline}"/>'
        drawn += f'<polyline class="{_look(number, line)}" points="{points(line.xs, line.ys)}"/>'
    for place, name in chart.marks:
        x = left + min(max((place - start) / (end - start), 0.0), 1.0) * width
        drawn += f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}"/>'
        drawn += f'<text x="{x + 4:.1f}" y="{top + 12}">{escape(name)}</text>'
    grid = ""
    for tick in range(below, above + 1):
        y = top + (above - tick) / (above - below) * height
        grid += f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        grid += f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick * step, chart)}</text>'
    axis = (
        f'<text x="{left}" y="{top + height + 16}">{start:,.4g}</text>'
        f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{end:,.5g}</text>'
        f'<text x="{left + width / 2}" y="{top + height + 16}" text-anchor="middle">{escape(chart.x_name)}</text>'
    )
    told = "; ".join(
        f"{line.name} from {line.ys[0]:.3g} to {line.ys[-1]:.3g}" for line in chart.lines
    )
    label = f"{chart.title}, over {chart.x_name}: {told}"
    names = "".join(
        f'<span><i class="{_look(number, line)}"></i>{escape(line.name)}</span>'
        for number, line in enumerate(chart.lines)
    )
    legend = f'<p class="legend">{names}</p>' if len(chart.lines) > 1 else ""
    return (
        f"<section><h2>{escape(chart.title)}</h2>"
        f'<svg viewBox="0 0 {left + width + 8} {top + height + 24}" role="img" aria-label="{escape(label)}">'
        f"{grid}{drawn}{axis}</svg>{legend}</section>"
    )


def _look(number: int, line: Line) -> str:
    colour, dashes = line.look or (number, number // 8)
    return f"c{colour % 8} d{dashes % 4}"


def _tick(value: float, chart: Chart) -> str:
    return f"{100 * value:,.4g} %" if chart.per_cent else f"{value:,.4g}"


def page(title: str, body: str) -> str:
    """A whole document: no network, no script."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}"
        "</body></html>"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are text, and shown as such."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, head, row))}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><tr>{names}</tr>{body}</table></div>'


def _cell(column: str, text: str) -> str:
    """On a phone each row stands by itself, and each of its cells says which column it is of."""
    shown = f"<b>{escape(text)}</b>" if isinstance(text, Best) else escape(text)
    return f'<td data-column="{escape(column)}">{shown}</td>'


def figures(charts: Sequence[Chart]) -> str:
    """Charts beside each other as the width allows."""
    return f'<div class="figures">{"".join(map(draw, charts))}</div>'


def repeat(command: str, config_toml: str) -> str:
    """The command, and the configuration it needs, where there is one."""
    config = f'<details><summary>Configuration</summary><pre tabindex="0">{escape(config_toml)}</pre></details>'
    return f"<h2>Repeat it</h2><pre>{escape(command)}</pre>{config if config_toml else ''}"


def run_report(result: Result, config_toml: str, command: str) -> str:
    """The whole page of one run."""
    facts = _facts(result) | _remembered(result)
    shown = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>"
        for name, value in facts.items()
    )
    return page(
        f"{result.dataset}: {result.allocator} on {result.mechanism}",
        f"<p>{counted(result.clients, 'client')}, seed {result.seed}; ended because {escape(result.ended)}.</p>"
        f'<div class="facts">{shown}</div>{figures(run_charts(result))}'
        f"<h2>Payments</h2>{_payments(result)}{_contributions(result)}{repeat(command, config_toml)}",
    )


def comparison_report(comparison: Comparison) -> str:
    """The whole page of a comparison: a table and the curves of each setting it was made in."""
    body, results, frontier = "", comparison.results, comparison.frontier
    if frontier is not None:
        results = [result for result in results if result.share == frontier.full]
        head, *rows = frontier_rows(frontier)
        body = f"{table(head, rows)}{figures([frontier_chart(frontier)])}<h2>With {100 * frontier.full:g} %</h2>"
    if comparison.standings is not None:
        head, *rows = suite_rows(comparison.standings)
        body += table(head, rows)
    for setting, runs in by_setting(results).items():
        head, *rows = comparison_rows(runs)
        body += f"<h2>{escape(setting)}</h2>" if setting else ""
        body += table(head, rows) + figures(comparison_charts(runs))
    note = (
        f"{headline(measure_of(comparison.results))} in per cent: mean ± half of the 95 % interval, or [low, high] "
        "where that leaves the scale; "
        f"differences are paired by seed, p after Holm, from {FEWEST} seeds on.{explain_first(comparison.results)}"
    )
    every = comparison.results
    allocators, variants = (
        {one.allocator for one in every},
        {one.variant for one in every if one.variant},
    )
    told = [f"{len(variants)} variants"] if variants else []
    title = ", ".join([counted(len(allocators), "allocator"), *told, counted(len(every), "run")])
    return page(
        title, f"<p>{escape(note)}</p>{body}{repeat(comparison.command, comparison.config)}"
    )


def comparison_in_short(comparison: Comparison) -> str:
    """What a notebook shows of a comparison."""
    if not comparison.results:
        return f"<p>{escape(repr(comparison))}</p>"
    head, *rows = rows_of(comparison)
    return f"<div>{short_table(head, rows)}<p>{escape(repr(comparison))}</p></div>"


def run_in_short(result: Result) -> str:
    """What a notebook shows of a run."""
    rows = [[name, value] for name, value in _facts(result).items()]
    return f"<div>{short_table([], rows)}<p>{escape(repr(result))}</p></div>"


def short_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without a style of its own, which the notebook has."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = (
        [f"<b>{escape(c)}</b>" if isinstance(c, Best) else escape(c) for c in row] for row in rows
    )
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _facts(result: Result) -> dict[str, str]:
    return {
        f"{result.measure} of the kept model ({result.kept})": f"{100 * result.accuracy_kept:.1f} %",
        f"final {result.measure}": f"{100 * result.accuracy_final:.1f} %",
        "best round": f"{100 * result.accuracy_best:.1f} %",
        "mean of the last ten": f"{100 * result.accuracy_last10:.1f} %",
        "spent": f"{tell_money(result.spent, result.currency)} of {tell_money(result.budget, result.currency)}",
        "left in the purse": tell_money(result.budget - result.spent, result.currency),
        "rounds": f"{result.rounds}",
    }


def _remembered(result: Result) -> dict[str, str]:
    """What the last model was made of, where updates are remembered."""
    last = result.history[-1]
    if "remembered" not in last:
        return {}
    return {
        "updates in the last round": f"{last['n']} fresh, {last['remembered']} of {last['age']:.1f} rounds ago"
    }


def _contributions(result: Result) -> str:
    """What each client was worth to the model, beside what it was paid, and how far that is to be trusted."""
    found = result.contributions
    if not found:
        return ""
    rows = [
        [
            client,
            *(f"{100 * one[key]:+.2f}" for key in ("mean", "low", "high")),
            str(one["rounds"]),
            _paid(result, client),
        ]
        for client, one in found.items()
    ]
    head = ["client", f"{result.measure}, points", "low", "high", "rounds", "paid"]
    return f"<h2>Contributions</h2><p>{escape(caution(found))}</p>{table(head, rows)}"


def _paid(result: Result, client: str) -> str:
    return show_money(money(result.payments.get(client, 0.0)), result.currency)


def _payments(result: Result) -> str:
    """Who was paid what, and beside it, where privacy was traded, how much of it was given for that."""
    privacy = result.privacy or {}
    names = [
        "client",
        "paid",
        *(["rounds won", "sum of ε", f"ε at δ = {_delta(privacy):g}"] if privacy else []),
    ]
    rows = [
        [client, _paid(result, client), *(_spent(privacy[client]) if privacy else [])]
        for client in result.payments
    ]
    return table(names, rows)


def _delta(privacy: dict[str, dict[str, float]]) -> float:
    return next(iter(privacy.values()))["delta"]


def _spent(privacy: dict[str, float]) -> list[str]:
    return [
        f"{privacy['rounds']:.0f}",
        f"{privacy['epsilon_sum']:.2f}",
        f"{privacy['epsilon']:.2f}",
    ]
