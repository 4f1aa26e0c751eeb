"""The tables of a comparison for documents: Markdown, and LaTeX for the package booktabs."""

import re
from collections.abc import Sequence

from bara.reports.comparison import Comparison
from bara.reports.comparison_table import Best, note_of, rows_of, words


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table of plain text, with every `Best` cell bold."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = map(_markdown, row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _markdown(cell: str) -> str:
    if isinstance(cell, Best):
        return f"**{cell}**"
    return cell.replace("|", "\\|")


def markdown(comparison: Comparison) -> str:
    """Return the main table of a comparison, its note, and the command in a comment."""
    head, *rows = rows_of(comparison)
    command = f"\n<!-- {comparison.command} -->\n" if comparison.command else ""
    return f"{markdown_table(head, rows)}\n{note_of(comparison)}\n{command}"


def latex(comparison: Comparison) -> str:
    """Return the main table as a tabular, below comments: command, configuration and note."""
    head, *rows = rows_of(comparison)
    # the configuration names one allocator, but the table compares several
    config = re.sub(r"(?m)^\[allocator\]\n(?:[^\[\n].*\n?)*", "", comparison.config)
    above = f"{comparison.command}\n{config}\n{note_of(comparison)}"
    return latex_table(head, rows, above)


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]], above: str) -> str:
    """Return a tabular of plain text below a comment, with every `Best` cell bold."""
    lines = [f"% {line}" for line in above.splitlines() if line]
    texts = words(head)
    columns = "l" * texts + "r" * (len(head) - texts)
    lines += [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(head),
        r"\midrule",
        *map(_latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_latex, cells))
    if row.startswith(("[", "*")):  # which would belong to the command that ends the row before
        row = f"{{{row[0]}}}{row[1:]}"
    return rf"{row} \\"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "ε": r"$\epsilon$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
}


def _latex(cell: str) -> str:
    words = " ".join(cell.split())  # a line's end would end the row
    text = re.sub(
        r"[\\~^±ε−≤≥<>|]|[&%$#_{}]", lambda found: _SPECIAL.get(found[0], f"\\{found[0]}"), words
    )
    text = re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text)
    return rf"\textbf{{{text}}}" if isinstance(cell, Best) else text
