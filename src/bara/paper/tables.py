"""The paper's figures and tables as files and as one page, each with what is claimed and what was measured."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from bara.files import write_whole
from bara.paper.analysis import ExhibitResult, Row
from bara.paper.exhibits import TITLES
from bara.reports.comparison_table import show_estimate, show_p
from bara.reports.data_files import Origin, write_csv
from bara.reports.frames import run_rows
from bara.reports.html import page, table
from bara.reports.markup import markdown_table
from bara.reports.result import Result
from bara.reports.statistics import Estimate

TABLES = {"table1", "table2", "ablation", "border"}
"""Exhibits that are tables; the others are figures."""


def publish(
    shown: Sequence[ExhibitResult], results: Sequence[Result], folder: Path, command: str
) -> Path:
    """Write every exhibit, the data behind it, their runs as `results.csv` and a page; returns what to open.

    Args:
        shown: The exhibits.
        results: The runs that they are made of.
        folder: Where to.
        command: What made them, for the page.
    """
    from bara.reports.drawings import save_rows  # noqa: PLC0415 - it needs an extra, and a second to import

    origin = Origin(command)
    body = f"<p>Made by <code>{escape(command)}</code>. Accuracy in per cent; intervals are 95 % over paired seeds.</p>"
    for one in shown:
        stem = folder / one.exhibit.name
        body += f"<h2>{escape(_heading(one))}</h2>"
        if one.rows:
            save_rows(one.rows, stem, origin)
            if one.exhibit.name in TABLES:
                write_whole(stem.with_suffix(".md"), [markdown(one)])
            else:
                draw(one, stem, origin)
                body += f'<div class="print">{_inline(stem.with_suffix(".svg"))}</div>'
            if tabled(one):
                head, *rows = table_rows(one)
                body += table(head, rows)
        for name, text in told(one).items():
            body += f"<p><b>{name}.</b> {escape(text)}</p>"
    _keep_scales(shown, folder / "scale.json")
    write_csv(run_rows(results), folder / "results.csv", origin)
    path = folder / "paper.html"
    write_whole(path, [page("The paper, reproduced", body)])
    return path


def draw(shown: ExhibitResult, stem: Path, origin: Origin) -> None:
    """Save the figure that an exhibit is; where it has several panels, each of them, too."""
    from bara.paper import figures  # noqa: PLC0415 - as above

    if tabled(shown):
        figures.save_bars(shown, stem, origin)
    elif shown.exhibit.name == "regimes":
        figures.save_map(shown, stem, origin)
    else:
        figures.save_charts(
            figures.exhibit_charts(shown), stem, shown.exhibit.title, shown.size, origin
        )


def _keep_scales(shown: Sequence[ExhibitResult], path: Path) -> None:
    """Note how large each exhibit was run, beside those of earlier calls: presets may change, what was run does not."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known |= {one.exhibit.name: {**asdict(one.scale), "size": one.size} for one in shown}
    path.write_text(json.dumps(known, indent=1) + "\n")


def told(shown: ExhibitResult) -> dict[str, str]:
    """What stands beside an exhibit."""
    return {"Claimed": shown.exhibit.claim, "Measured": shown.measured, "Size": shown.size}


def tabled(shown: ExhibitResult) -> bool:
    """Whether its data fit a table: accuracies on datasets do."""
    return bool(shown.rows) and "final" in shown.rows[0] and "swing" not in shown.rows[0]


def table_rows(shown: ExhibitResult) -> list[list[str]]:
    """A table of accuracies as text, a head first; p-values and the paper's figures where there are any."""
    dropped = {"p"} if all(row["p"] is None for row in shown.rows) else set()
    dropped |= set() if shown.exhibit.reported else {"paper"}
    rows = [
        {name: text for name, text in _cells(row).items() if name not in dropped}
        for row in shown.rows
    ]
    return [[*rows[0]], *([*row.values()] for row in rows)]


def markdown(shown: ExhibitResult, images: str = "") -> str:
    """An exhibit for documents: its table where it is of accuracies, its figure, and what stands beside it.

    Args:
        shown: The exhibit.
        images: The folder of its figure, as the document has to name it.
    """
    parts = [f"## {_heading(shown)}"]
    if shown.exhibit.name not in TABLES:
        parts.append(f"![{_heading(shown)}]({images}{shown.exhibit.name}.png)")
    if tabled(shown):
        head, *rows = table_rows(shown)
        parts.append(markdown_table(head, rows).rstrip())
    parts += [f"**{name}.** {text}" for name, text in told(shown).items()]
    return "\n\n".join(parts) + "\n"


def _heading(shown: ExhibitResult) -> str:
    name = shown.exhibit.name
    number = name.replace("fig", "Figure ").replace("table", "Table ")
    return f"{number}. {shown.exhibit.title}" if number != name else shown.exhibit.title


def _cells(row: Row) -> dict[str, str]:
    final, last10 = (
        Estimate(row[key], row[f"{key}_margin"], row["seeds"]) for key in ("final", "last10")
    )
    less = (
        None
        if row["less_EA"] is None
        else Estimate(row["less_EA"], row["less_EA_margin"], row["seeds"])
    )
    return {
        "dataset": TITLES[row["dataset"]],
        "method": row["method"],
        "final": show_estimate(final),
        "last 10": show_estimate(last10),
        "less EA": show_estimate(less, signed=True),
        "p": show_p(row["p"]),
        "rounds": f"{row['rounds']:.0f}",
        "paper": "" if row["paper"] is None else f"{row['paper']:.2f}",
    }


def _inline(path: Path) -> str:
    """A figure within the page, without what stands before its first element."""
    text = path.read_text("utf-8")
    return text[text.index("<svg") :]
