"""How results show themselves: what the reports make of them, found by name, for they are a room above this one."""

from typing import Any

from bara.plugins import import_path


def view(name: str) -> Any:
    """A function of `bara.reports`, imported when it is asked for (`charts:run_charts`)."""
    return import_path(f"bara.reports.{name}")
