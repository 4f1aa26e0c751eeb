"""The identity of a Flower app (name, strategy, model): recorded at first, compared on resume."""

import inspect
import math
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from bara.errors import ConfigError
from bara.flower._strategies import SET_ASIDE, layers
from bara.runs.config_sections import AppSection

PREFIX = "bara."
"""How bara's keys begin in an app's configuration (`[tool.flwr.app.config]`)."""


def describe_app(
    strategy: Strategy, model: ArrayRecord, context: Context, grid: Grid
) -> AppSection:
    """Return the identity of the app that runs this server, as far as Flower tells it.

    Args:
        strategy: The app's strategy, before bara changes any of its settings.
        model: The initial arrays.
        context: The server's context, with the app's configuration.
        grid: The server's grid, which may know the app's name and hash.
    """
    run = _run_of(grid)
    stack = list(layers(strategy))
    parameters = {}
    for layer in stack:
        for name, value in _constructor_arguments(layer).items():
            parameters[f"{type(layer).__name__}.{name}"] = value
    settings = context.run_config
    own = {key: value for key, value in settings.items() if not key.startswith(PREFIX)}
    return AppSection(
        name=run.fab_id if run else "",
        fab_hash=run.fab_hash if run else "",
        run_id=str(context.run_id),
        strategy=" of ".join(type(layer).__name__ for layer in stack),
        parameters=parameters,
        model=_shapes(model),
        run_config=own,
    )


def check_app(folder: Path, opened: AppSection, now: AppSection) -> None:
    """Refuse to resume a run in a folder if another app began it."""
    _refuse_other(folder, {"app": opened.name}, {"app": now.name})


def check_training(folder: Path, opened: AppSection, now: AppSection) -> None:
    """Refuse to resume with a different model or strategy: money was promised for the first ones.

    Args:
        folder: The run's folder, for the error message.
        opened: The app as it was when the run began.
        now: The app that would resume the run.
    """
    for key in ("strategy", "model"):
        _refuse_other(folder, {key: getattr(opened, key)}, {key: getattr(now, key)})
    _refuse_other(folder, opened.parameters, now.parameters)


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """Return the keys whose values differ between two mappings, sorted."""
    return sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))


def _refuse_other(folder: Path, opened: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a difference, but only where both sides have a value.

    An earlier version of bara or another release of Flower may have recorded less.
    """
    for key in differing(opened, now):
        before = opened.get(key, "")
        after = now.get(key, "")
        if before != "" and after != "":
            raise ConfigError(
                f"the run in {str(folder)!r} was begun with {key} = {before}, but this app has "
                f"{after}; set bara.folder to another folder, or start the app that began it"
            )


def _run_of(grid: Grid) -> Any:
    """Return what Flower says of the run: the app's name and hash; None if it says nothing."""
    try:
        return grid.run
    except (AttributeError, TypeError):  # nobody told this grid about its run
        return None


def _constructor_arguments(layer: Strategy) -> dict[str, Any]:
    """Return the constructor's plain arguments that the strategy stores under the same names."""
    names: set[str] = set()
    for kind in type(layer).__mro__:
        if issubclass(kind, Strategy):
            names.update(inspect.signature(kind).parameters)
    found = {}
    for name, value in sorted(vars(layer).items()):
        if name in names - SET_ASIDE and isinstance(value, bool | int | float | str):
            found[name] = _comparable(value)
    return found


def _comparable(value: Any) -> Any:
    """Return not-a-number and infinity as text: not-a-number is unequal even to itself."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _shapes(model: ArrayRecord) -> str:
    shapes = [(name, array.dtype, tuple(array.shape)) for name, array in model.items()]
    size = sum(math.prod(shape) for _, _, shape in shapes)
    digest = sha256(repr(shapes).encode()).hexdigest()[:12]
    return f"{len(shapes)} arrays, {size} numbers, {digest}"
