"""Pictures of which client holds which labels, as text for the terminal and the report."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.text import counted

SHADES = " ░▒▓█"
NARROW = 20
"""With more labels than this, each of them is one character wide."""


def counts(
    labels: Labels, parts: Sequence[NDArray[np.int64]], classes: int | None = None
) -> NDArray[np.int64]:
    """Count the samples of each label per client: one row per client, one column per label.

    Args:
        labels: The label of each sample.
        parts: The sample indices of each client.
        classes: How many labels to count; those that occur if not given.

    >>> counts(np.array([0, 1, 1]), [np.array([0, 1]), np.array([2])]).tolist()
    [[1, 1], [0, 1]]
    """
    columns = classes or int(np.max(labels, initial=0)) + 1
    rows = [np.bincount(labels[indices], minlength=columns) for indices in parts]
    return np.array(rows, np.int64).reshape(-1, columns)


def picture(
    labels: Labels,
    parts: Sequence[NDArray[np.int64]],
    classes: int | None = None,
    *,
    style: str = "shades",
    rows: int = 40,
    names: Sequence[str] = (),
) -> str:
    """Draw clients by labels: the darker, the more samples; each row ends with its total.

    Args:
        labels: The label of each sample.
        parts: The sample indices of each client.
        classes: How many labels to show; those that occur if not given.
        style: ``"shades"``, or ``"counts"`` for numbers, which any terminal can show.
        rows: How many clients to show; the others are added up in one line.
        names: The clients' names; their numbers if not given.

    >>> parts = [np.array([0, 1, 2]), np.array([3, 4])]
    >>> print(picture(np.array([0, 0, 0, 1, 1]), parts, style="counts"))
    client    0   1  samples
         0    3   .        3
         1    .   2        2
    """
    table = counts(labels, parts, classes)
    draw = _numbers if style == "counts" else _shades
    header, cells = draw(table)
    called = list(names) or list(map(str, range(len(table))))
    width = max(len("client"), *map(len, called[:rows]))
    sizes = table.sum(axis=1)
    lines = [f"{'client':>{width}} {header}  samples"]
    for client in range(min(rows, len(table))):
        label = f"{called[client]:>{width}}"
        lines.append(f"{label} {cells[client]} {sizes[client]:>8}")
    if len(table) > rows:
        lines.append(
            f"{'...':>{width}} and {counted(len(table) - rows, 'more client')} with "
            f"{counted(sizes[rows:].sum(), 'sample')}"
        )
    return "\n".join(lines)


def _numbers(table: NDArray[np.int64]) -> tuple[str, list[str]]:
    """Return a header of labels, and each client's counts beneath it; a dot stands for 0."""
    columns = table.shape[1]
    width = len(str(table.max(initial=columns))) + 3
    header = "".join(f"{label:>{width}}" for label in range(columns))
    lines = []
    for row in table:
        cells = [f"{count or '.':>{width}}" for count in row]
        lines.append("".join(cells))
    return header, lines


def _shades(table: NDArray[np.int64]) -> tuple[str, list[str]]:
    """Return a header of labels, and each client's counts beneath it as shades of grey."""
    columns = table.shape[1]
    top = max(int(table.max(initial=0)), 1)
    level = np.ceil(table / top * (len(SHADES) - 1)).astype(int)  # a single sample shows
    if columns > NARROW:
        header = _ruler(columns)
        shades = list(SHADES)
    else:
        header = "".join(f"{label:>3}" for label in range(columns))
        shades = [f" {shade}{shade}" for shade in SHADES]
    lines = []
    for row in level:
        cells = [shades[k] for k in row]
        lines.append("".join(cells))
    return header, lines


def _ruler(columns: int) -> str:
    """Return every tenth label's number above its column."""
    return "".join(f"{label:<10}" for label in range(0, columns, 10))[:columns].ljust(columns)
