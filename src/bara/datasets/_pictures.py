"""A picture of who holds what, as text for the terminal and the report."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.text import counted

SHADES = " ░▒▓█"
NARROW = 20
"""With more labels than this, each gets one character's width."""


def counts(
    labels: Labels, parts: Sequence[NDArray[np.int64]], classes: int | None = None
) -> NDArray[np.int64]:
    """How many samples of each label each client holds: one row per client, one column per label.

    >>> counts(np.array([0, 1, 1]), [np.array([0, 1]), np.array([2])]).tolist()
    [[1, 1], [0, 1]]
    """
    columns = classes or int(np.max(labels, initial=0)) + 1
    return np.array(
        [np.bincount(labels[part], minlength=columns) for part in parts], np.int64
    ).reshape(-1, columns)


def picture(
    labels: Labels,
    parts: Sequence[NDArray[np.int64]],
    classes: int | None = None,
    *,
    style: str = "shades",
    rows: int = 40,
    names: Sequence[str] = (),
) -> str:
    """Clients by labels: the darker, the more samples; each client's total at the end of its row.

    Args:
        labels: The label of each sample.
        parts: The sample indices of each client.
        classes: How many labels to show; those that occur if not given.
        style: ``"shades"``, or ``"counts"`` for numbers, which any terminal can show.
        rows: With more clients than this, the first so many are shown and the rest are added up in
            a line.
        names: What the clients are called; their numbers unless given.

    >>> print(picture(np.array([0, 0, 0, 1, 1]), [np.array([0, 1, 2]), np.array([3, 4])], style="counts"))
    client    0   1  samples
         0    3   .        3
         1    .   2        2
    """
    table = counts(labels, parts, classes)
    draw = _numbers if style == "counts" else _shades
    header, cells = draw(table)
    called = list(names) or [str(k) for k in range(len(table))]
    width = max(6, *(len(name) for name in called[:rows]))
    lines = [f"{'client':>{width}} {header}  samples"]
    sizes = table.sum(axis=1)
    lines += [
        f"{called[k]:>{width}} {cells[k]} {sizes[k]:>8}" for k in range(min(rows, len(table)))
    ]
    if len(table) > rows:
        lines.append(
            f"{'...':>{width}} and {counted(len(table) - rows, 'more client')} with "
            f"{counted(sizes[rows:].sum(), 'sample')}"
        )
    return "\n".join(lines)


def _numbers(table: NDArray[np.int64]) -> tuple[str, list[str]]:
    width = len(str(table.max(initial=table.shape[1]))) + 2
    header = "".join(f"{label:>{width + 1}}" for label in range(table.shape[1]))
    return header, ["".join(f"{count or '.':>{width + 1}}" for count in row) for row in table]


def _shades(table: NDArray[np.int64]) -> tuple[str, list[str]]:
    top = max(int(table.max(initial=0)), 1)
    level = np.ceil(table / top * (len(SHADES) - 1)).astype(int)  # a single sample shows
    if table.shape[1] > NARROW:
        return _ruler(table.shape[1]), ["".join(SHADES[k] for k in row) for row in level]
    header = "".join(f"{label:>3}" for label in range(table.shape[1]))
    return header, ["".join(f" {SHADES[k] * 2}" for k in row) for row in level]


def _ruler(columns: int) -> str:
    """Every tenth label's number above its column."""
    return "".join(f"{label:<10}" for label in range(0, columns, 10))[:columns].ljust(columns)
