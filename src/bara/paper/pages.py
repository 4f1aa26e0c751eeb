"""The paper's figures and tables as files and as one page, each with its claim and finding."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from bara.files import write_whole
from bara.paper.analysis import LESS, ExhibitResult, Row
from bara.paper.exhibits import TITLES
from bara.reports.comparison_table import show_estimate, show_p
from bara.reports.fitted import Fitted
from bara.reports.frames import run_rows
from bara.reports.html import page, table
from bara.reports.markup import latex_table, markdown_table
from bara.reports.publication import Origin, write_csv
from bara.reports.result import Result
from bara.reports.statistics import Estimate
from bara.reports.terminal import rich_table

TABLES = {"table1", "table2", "ablation", "border"}
"""Exhibits that are tables; the others are figures."""


def publish_paper(
    shown: Sequence[ExhibitResult], results: Sequence[Result], folder: Path, command: str
) -> Path:
    """Write every exhibit with its data, all runs as `results.csv`, and a page; return the page.

    Args:
        shown: The exhibits.
        results: The runs behind the exhibits.
        folder: The folder to write to.
        command: The command that made the exhibits, for the page.
    """
    from bara.reports.drawings import save_rows  # noqa: PLC0415 - an extra, and slow to import

    origin = Origin(command)
    body = (
        f"<p>Made by <code>{escape(command)}</code>. "
        "Accuracy in per cent; intervals are 95 % over paired seeds. BARA is the paper's "
        "algorithm in three readings, <code>bara</code> this program.</p>"
    )
    claims = [[_heading(one), one.exhibit.claim, one.measured] for one in shown]
    body += f'<div class="prose">{table(["", "claimed", "measured"], claims)}</div>'
    for one in shown:
        stem = folder / one.exhibit.name
        body += f"<h2>{escape(_heading(one))}</h2>"
        if one.rows:
            save_rows(one.rows, stem, origin)
            if one.exhibit.name in TABLES:
                write_whole(stem.with_suffix(".md"), [exhibit_markdown(one)])
                write_whole(stem.with_suffix(".tex"), [exhibit_latex(one, command)])
            else:
                draw_exhibit(one, stem, origin)
                drawn = _inline(stem.with_suffix(".svg"))
                body += f'<div class="print" tabindex="0">{drawn}</div>'
            if tabled(one):
                head, *rows = table_rows(one)
                body += table(head, rows)
        for name, text in told(one).items():
            body += f"<p><b>{name}.</b> {escape(text)}</p>"
    _note_scales(shown, folder / "scale.json")
    write_csv(run_rows(results), folder / "results.csv", origin)
    path = folder / "paper.html"
    write_whole(path, [page("The paper, reproduced", body)])
    return path


def draw_exhibit(shown: ExhibitResult, stem: Path, origin: Origin) -> None:
    """Save the figure of an exhibit, and each of its panels by itself."""
    from bara.paper import figures  # noqa: PLC0415 - an extra, and slow to import

    if tabled(shown):
        dots = figures.exhibit_dots(shown)
        figures.save_charts(dots, stem, shown.exhibit.title, shown.size, origin)
    elif shown.exhibit.name == "regimes":
        figures.save_map(shown, stem, origin)
    else:
        charts = figures.exhibit_charts(shown)
        figures.save_charts(charts, stem, shown.exhibit.title, shown.size, origin)


def _note_scales(shown: Sequence[ExhibitResult], path: Path) -> None:
    """Note the size of each exhibit's runs, beside the notes of earlier calls.

    Presets may change later; the size of what was run does not.
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    for one in shown:
        known[one.exhibit.name] = {**asdict(one.scale), "size": one.size}
    path.write_text(json.dumps(known, indent=1) + "\n")


def told(shown: ExhibitResult) -> dict[str, str]:
    """Return the texts beside an exhibit: the claim, the finding and the size of its runs."""
    return {"Claimed": shown.exhibit.claim, "Measured": shown.measured, "Size": shown.size}


def tabled(shown: ExhibitResult) -> bool:
    """Return True if the exhibit's data fit a table: accuracies on datasets do."""
    return bool(shown.rows) and "final" in shown.rows[0] and "swing" not in shown.rows[0]


def table_rows(shown: ExhibitResult) -> list[list[str]]:
    """Return a table of accuracies as text, a head first.

    P-values and the paper's own numbers have columns only where there are any.
    """
    dropped = set()
    if all(row["p"] is None for row in shown.rows):
        dropped.add("p")
    if all(row["paper"] is None for row in shown.rows):
        dropped.add("paper")
    head: list[str] = []
    rows = []
    for row in shown.rows:
        cells = _cells(row)
        for name in dropped:
            del cells[name]
        head = list(cells)
        rows.append(list(cells.values()))
    return [head, *rows]


def exhibit_markdown(shown: ExhibitResult) -> str:
    """Return an exhibit for documents: its table of accuracies and its texts."""
    paragraphs = [f"## {_heading(shown)}"]
    if tabled(shown):
        head, *rows = table_rows(shown)
        paragraphs.append(markdown_table(head, rows).rstrip())
    paragraphs += [f"**{name}.** {text}" for name, text in told(shown).items()]
    return "\n\n".join(paragraphs) + "\n"


def exhibit_latex(shown: ExhibitResult, command: str) -> str:
    """Return an exhibit's table of accuracies as LaTeX, below its texts and command as comments."""
    head, *rows = table_rows(shown)
    texts = [f"{name}: {text}" for name, text in told(shown).items()]
    return latex_table(head, rows, "\n".join([command, _heading(shown), *texts]))


def _heading(shown: ExhibitResult) -> str:
    name = shown.exhibit.name
    number = name.replace("fig", "Figure ").replace("table", "Table ")
    return f"{number}. {shown.exhibit.title}" if number != name else shown.exhibit.title


def _cells(row: Row) -> dict[str, str]:
    return {
        "dataset": TITLES[row["dataset"]],
        "method": row["method"],
        "final": show_estimate(_estimate(row, "final")),
        "last 10": show_estimate(_estimate(row, "last10")),
        "minus EA": show_estimate(_estimate(row, LESS), signed=True),
        "p": show_p(row["p"]),
        "rounds": f"{row['rounds']:.0f}",
        "paper": "" if row["paper"] is None else f"{row['paper']:.2f}",
    }


def _estimate(row: Row, name: str) -> Estimate | None:
    if row[name] is None:
        return None
    return Estimate(row[name], row[f"{name}_margin"], row["seeds"])


def _inline(path: Path) -> str:
    """Return an SVG file for use within a page, without the lines before its first element."""
    text = path.read_text("utf-8")
    return text[text.index("<svg") :]


def exhibit_table(shown: ExhibitResult) -> RenderableType:
    """Show a figure or table of the paper: its rows where they are few, claims and measurements."""
    lines: list[RenderableType] = [
        Text(f"{shown.exhibit.name}: {shown.exhibit.title}", style="bold")
    ]
    if tabled(shown):
        head, *rows = table_rows(shown)
        lines.append(Fitted(rich_table(head, rows, 2)))
    for name, text in told(shown).items():
        lines.append(Text.assemble((f"{name}: ", "bold"), text))
    return Group(*lines, Text())
