"""How results show themselves: what the reports make of them, found by name, for they are a room above this one."""

from typing import Any

from bara.plugins import import_path


def view(name: str) -> Any:
    """A function of `bara.reports`, imported when it is asked for (`charts:run_charts`)."""
    return import_path(f"bara.reports.{name}")


class Plotted:
    """A run or a comparison, which draws itself."""

    @property
    def figures(self) -> list[str]:
        """The names that `plot` takes."""
        return [chart.name for chart in view("charts:charts_of")(self)]

    def plot(self, name: str | None = None, *, columns: int = 1, ax: Any = None) -> Any:
        """Draw a figure of the report (see `figures`), or all of them side by side.

        Args:
            name: Which; None for all.
            columns: How many columns of a two-column page it is wide.
            ax: Matplotlib's axes to draw the one figure into, instead of a new figure.
        """
        return view("drawings:plot")(self, name, columns=columns, ax=ax)
