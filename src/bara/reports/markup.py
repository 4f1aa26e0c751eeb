"""Tables of a comparison for a document: Markdown, and LaTeX for the package booktabs."""

import re
from collections.abc import Sequence

from bara.reports.comparison import Comparison
from bara.reports.comparison_table import Best, note_of, rows_of, words


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are text; the best is bold."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = (
            f"**{cell}**" if isinstance(cell, Best) else cell.replace("|", "\\|") for cell in row
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def markdown(comparison: Comparison) -> str:
    """The table that says the most, what its numbers are, and in a comment what made it."""
    head, *rows = rows_of(comparison)
    made = f"\n<!-- {comparison.command} -->\n" if comparison.command else ""
    return f"{markdown_table(head, rows)}\n{note_of(comparison)}\n{made}"


def latex(comparison: Comparison) -> str:
    """The same as a tabular; command, configuration and what the numbers are in comments above it."""
    head, *rows = rows_of(comparison)
    config = re.sub(
        r"(?m)^\[allocator\]\n(?:[^\[\n].*\n?)*", "", comparison.config
    )  # several are compared
    above = [
        f"% {line}"
        for line in f"{comparison.command}\n{config}\n{note_of(comparison)}".split("\n")
        if line
    ]
    columns = "l" * words(head) + "r" * (len(head) - words(head))
    body = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(_latex, head)) + r" \\",
        r"\midrule",
    ]
    return "\n".join([*above, *lines, *body, r"\bottomrule", r"\end{tabular}", ""])


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "ε": r"$\epsilon$",
}


def _latex(cell: str) -> str:
    text = re.sub(
        r"[\\~^±ε]|[&%$#_{}]", lambda found: _SPECIAL.get(found[0], f"\\{found[0]}"), cell
    )
    text = re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text)
    return rf"\textbf{{{text}}}" if isinstance(cell, Best) else text
