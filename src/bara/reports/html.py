"""The HTML reports of runs and comparisons: one file, no network, no script, charts as SVG."""

from collections.abc import Mapping, Sequence
from html import escape

from bara.records import tell_money
from bara.reports.charts import (
    Chart,
    comparison_charts,
    frontier_chart,
    run_charts,
)
from bara.reports.comparison import Comparison
from bara.reports.comparison_table import (
    Best,
    comparison_rows,
    explain_against,
    explain_failures,
    explain_names,
    frontier_rows,
    rows_of,
    suite_rows,
)
from bara.reports.contributions import caution, explain_shapley
from bara.reports.dots import DotChart, standings_dots
from bara.reports.result import FEW, UNENDED, Result, by_setting, measure_of
from bara.reports.statistics import FEWEST
from bara.reports.svg import draw
from bara.text import counted, headline

# A backslash at the end of a line continues a CSS line that is too long for the code.
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #667; --line: #0072b2; \
--rule: #8884; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #16181c; --soft: #9aa; \
--line: #56b4e9; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); \
max-width: 70rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; }
.facts div span { display: block; color: var(--soft); font-size: .85rem; } \
.facts b { font-size: 1.5rem; }
.figures { display: grid; \
grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: 0 2rem; }
.figures svg, .print svg { width: 100%; height: auto; } .figures svg text { fill: var(--soft); \
font-size: 11px; }
.print { max-width: 46rem; background: #fff; }
polyline { fill: none; stroke: var(--c); stroke-width: 1.8; } .grid { stroke: var(--rule); }
.mark { stroke: var(--soft); stroke-dasharray: 2 3; } .zero { stroke: var(--ink); }
polygon { fill: var(--c); opacity: .18; } .legend { margin: 0; font-size: .85rem; \
color: var(--soft); }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend svg { width: 2.2em; height: .5em; margin-right: .4em; }
.figures .wide { grid-column: 1 / -1; max-width: 46rem; } circle { fill: var(--c); }
.soft { --c: var(--soft); }
.c0 { --c: var(--line); } .c1 { --c: #d55e00; } .c2 { --c: #009e73; } .c3 { --c: #cc79a7; } \
.c4 { --c: #e69f00; }
.c5 { --c: #999; } .c6 { --c: #a3a500; } .c7 { --c: #7f6bd1; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } pre { overflow-x: auto; background: #8881; \
padding: .7rem; }
.scroll { max-height: 24rem; overflow: auto; }
.prose .scroll { max-height: none; } .prose td, .prose th { text-align: left; vertical-align: top; }
.d1 { stroke-dasharray: 6 3; } .d2 { stroke-dasharray: 2 2; } .d3 { stroke-dasharray: 8 2 2 2; }
@media (max-width: 40rem) {
  .wide, .print { overflow-x: auto; } .figures .wide svg, .print svg { width: 32rem; }
  .scroll { max-height: none; } table, tbody { display: block; }
  tr:first-child { display: none; } tr { display: block; padding: .4rem 0; \
border-bottom: 1px solid var(--rule); }
  td, td:first-child { display: flex; justify-content: space-between; gap: 1rem; padding: 0; \
text-align: right;
    overflow-wrap: anywhere; }
  td::before { content: attr(data-column); color: var(--soft); } td:empty { display: none; }
  .prose td { display: block; text-align: left; } \
.prose td:not(:first-child)::before { margin-right: .5rem; }
}
"""


def page(title: str, body: str) -> str:
    """Return a whole document, without network and without script.

    Args:
        title: The title as text, which is also the heading.
        body: The HTML below the heading.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of plain text that scrolls, with every `Best` cell bold."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = ""
    for row in rows:
        cells = map(_cell, head, row)
        body += f"<tr>{''.join(cells)}</tr>"
    return f'<div class="scroll" tabindex="0"><table><tr>{names}</tr>{body}</table></div>'


def _cell(column: str, text: str) -> str:
    """Return a cell that names its column: on a phone each row stands by itself, without a head."""
    return f'<td data-column="{escape(column)}">{_text(text)}</td>'


def _text(text: str) -> str:
    return f"<b>{escape(text)}</b>" if isinstance(text, Best) else escape(text)


def figures(charts: Sequence[Chart | DotChart]) -> str:
    """Return the charts side by side, as many in a line as the width allows."""
    return f'<div class="figures">{"".join(map(draw, charts))}</div>'


def fact_list(facts: Mapping[str, str]) -> str:
    """Return the facts side by side, each value below its name."""
    shown = ""
    for name, value in facts.items():
        shown += f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>"
    return f'<div class="facts">{shown}</div>'


def repeat(command: str, config_toml: str) -> str:
    """Return the section on how to repeat the experiment.

    Args:
        command: The command line.
        config_toml: The configuration that the command needs; empty for none.
    """
    section = f"<h2>Repeat it</h2><pre>{escape(command)}</pre>"
    if config_toml:
        config = f'<pre tabindex="0">{escape(config_toml)}</pre>'
        section += f"<details><summary>Configuration</summary>{config}</details>"
    return section


def run_report(result: Result, config_toml: str, command: str) -> str:
    """Return the whole page of one run.

    Args:
        result: The run.
        config_toml: The run's configuration, as TOML.
        command: The command that repeats the run.
    """
    clients = counted(result.clients, "client")
    ended = f"ended because {escape(result.ended)}"
    if result.ended == UNENDED:
        ended = UNENDED
    body = (
        f"<p>{clients}, seed {result.seed}; {ended}.</p>"
        + fact_list(_facts(result) | _remembered(result))
        + figures(run_charts(result))
        + f"<h2>Payments</h2>{_payments(result)}{_SETTLED}"
        + _contributions(result)
        + _shapley(result)
        + repeat(command, config_toml)
    )
    return page(f"{result.dataset}: {result.allocator} on {result.mechanism}", body)


_SETTLED = """
<p>As settled. Corrections are in the ledger (<code>bara ledger</code>); what is spent, above,
counts only those made before the last round.</p>
"""


def comparison_report(comparison: Comparison) -> str:
    """Return the whole page of a comparison: a table and the charts of each setting."""
    every = comparison.results
    note = (
        f"{headline(measure_of(every))} in per cent: mean ± half of the 95 % interval, "
        "or [low, high] where that leaves the scale; differences are paired by seed, "
        f"p after Holm, from {FEWEST} seeds on.{explain_against(every, comparison.against)}"
        f"{explain_names(result.allocator for result in every)}"
        f"{explain_failures(comparison.failures)}"
    )
    body = f"<p>{escape(note)}</p>"
    results = every
    frontier = comparison.frontier
    if frontier is not None:
        results = [result for result in every if result.share == frontier.full]
        head, *rows = frontier_rows(frontier)
        body += table(head, rows) + figures([frontier_chart(frontier)])
        body += f"<h2>With {100 * frontier.full:g} %</h2>"
    if comparison.standings is not None:
        head, *rows = suite_rows(comparison.standings)
        body += table(head, rows) + figures(standings_dots(comparison.standings))
    for setting, runs in by_setting(results).items():
        if setting:
            body += f"<h2>{escape(setting)}</h2>"
        head, *rows = comparison_rows(runs, comparison.against)
        charts = comparison_charts(runs, comparison.against, comparison.pilots)
        body += table(head, rows) + figures(charts)
    body += repeat(
        "\n".join(filter(None, [comparison.command, comparison.script])), comparison.config
    )
    return page(f"{_experiment(every)}: {_size(every)}", body)


def _experiment(results: Sequence[Result]) -> str:
    """Name data, clients and budget, for a title."""
    if not results:
        return "No run has ended yet"
    data = list(dict.fromkeys(one.dataset for one in results))
    told = [", ".join(data) if len(data) < 4 else f"{len(data)} datasets"]
    clients: dict[float, str] = {}
    budgets: dict[float, str] = {}
    for one in results:
        clients[one.clients] = str(one.clients)
        budgets[one.budget] = tell_money(one.budget, one.currency).removesuffix(".00")
    told.append(_range(clients))
    told[-1] += " client" if told[-1] == "1" else " clients"
    told.append(f"budget {_range(budgets)}")
    return ", ".join(told)


def _range(shown: Mapping[float, str]) -> str:
    """Show the one value, or the least and the most; each is shown as the mapping says."""
    least = shown[min(shown)]
    most = shown[max(shown)]
    return least if least == most else f"{least} to {most}"


def _size(results: Sequence[Result]) -> str:
    """Count the allocators, variants and runs, for a title."""
    allocators = {one.allocator for one in results}
    variants = {one.variant for one in results if one.variant}
    told = [counted(len(allocators), "allocator")]
    if variants:
        told.append(f"{len(variants)} variants")
    told.append(counted(len(results), "run"))
    return ", ".join(told)


def comparison_in_short(comparison: Comparison) -> str:
    """Return what a notebook shows of a comparison."""
    missing = explain_failures(comparison.failures)
    summary = f"<p>{escape(repr(comparison) + missing)}</p>"
    if not comparison.results:
        return summary
    head, *rows = rows_of(comparison)
    return f"<div>{short_table(head, rows)}{summary}</div>"


def run_in_short(result: Result) -> str:
    """Return what a notebook shows of a run."""
    rows = list(_facts(result).items())
    return f"<div>{short_table([], rows)}<p>{escape(repr(result))}</p></div>"


def short_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a notebook, which brings its own style."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = ""
    for row in rows:
        cells = "".join(f"<td>{_text(text)}</td>" for text in row)
        body += f"<tr>{cells}</tr>"
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _facts(result: Result) -> dict[str, str]:
    spent = tell_money(result.spent, result.currency)
    budget = tell_money(result.budget, result.currency)
    kept = f"{result.measure} of the kept model ({result.kept})"
    return {
        kept: f"{100 * result.accuracy_kept:.1f} %",
        f"final {result.measure}": f"{100 * result.accuracy_final:.1f} %",
        "best round": f"{100 * result.accuracy_best:.1f} %",
        "mean of the last ten": f"{100 * result.accuracy_last10:.1f} %",
        "spent": f"{spent} of {budget}",
        "left in the purse": tell_money(result.budget - result.spent, result.currency),
        "rounds": f"{result.rounds}",
        "paid": _paid_to(result),
    }


def _paid_to(result: Result) -> str:
    """Say how many clients were paid, what the few paid most got, and how many were never heard."""
    few = min(FEW, len(result.payments))
    if not few:
        return "nobody"
    told = counted(len(result.payments), "client")
    told += f"; {100 * result.share_of_most_paid(few):.0f} % of the money to {few} of them"
    if result.never_paid:
        told += f"; {len(result.never_paid)} never paid"
    return told


def _remembered(result: Result) -> dict[str, str]:
    """Return how many fresh and old updates made the last model, where updates are remembered."""
    last = result.history[-1]
    if "remembered" not in last:
        return {}
    told = f"{last['n']} fresh, {last['remembered']} remembered"
    if "oldest" in last:  # results of 0.2 do not say it
        told += f", the oldest for {counted(last['oldest'], 'round')}"
    return {"updates in the last round": told}


def _contributions(result: Result) -> str:
    """Return the section on what each client contributed, beside what the client was paid."""
    found = result.contributions
    if not found:
        return ""
    head = ["client", f"{result.measure}, points", "low", "high", "rounds", "paid"]
    rows = []
    for client, one in found.items():
        points = [f"{100 * one[key]:+.2f}" for key in ("mean", "low", "high")]
        rows.append([client, *points, str(one["rounds"]), _paid(result, client)])
    return f"<h2>Contributions</h2><p>{escape(caution(found))}</p>{table(head, rows)}"


def _shapley(result: Result) -> str:
    """Return the section on what share of the gains was each client's."""
    found = result.shapley
    if not found:
        return ""
    head = ["client", f"{result.measure}, points", "rounds", "paid"]
    rows = []
    for client, one in found["clients"].items():
        points = f"{100 * one['mean']:+.2f} ± {100 * one['margin']:.2f}"
        rows.append([client, points, str(one["rounds"]), _paid(result, client)])
    return f"<h2>Shares</h2><p>{escape(explain_shapley(found))}</p>{table(head, rows)}"


def _paid(result: Result, client: str) -> str:
    return tell_money(result.payments.get(client, 0.0), result.currency)


def _payments(result: Result) -> str:
    """Return the table of payments, with the privacy given for them where privacy was traded."""
    privacy = result.privacy or {}
    head = ["client", "paid"]
    if privacy:
        delta = next(iter(privacy.values()))["delta"]
        head += ["rounds won", "sum of ε", f"ε at δ = {delta:g}"]
    rows = []
    for client in result.payments:
        row = [client, _paid(result, client)]
        if privacy:
            spent = privacy[client]
            row.append(f"{spent['rounds']:.0f}")
            row.append(f"{spent['epsilon_sum']:.2f}")
            row.append(f"{spent['epsilon']:.2f}")
        rows.append(row)
    for client, asked in (result.never_paid or {}).items():
        price = tell_money(asked, result.currency)
        rows.append([client, f"never; it asked {price}", *[""] * (len(head) - 2)])
    return table(head, rows)
