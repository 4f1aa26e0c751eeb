"""Whose run it is: the app, its strategy and its model, as the ledger records them and a resumed run must have them."""

import inspect
import math
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from flwr.supercore.run import Run

from bara.errors import ConfigError
from bara.flower._strategies import SET_ASIDE, layers
from bara.runs.sections import AppSection

PREFIX = "bara."
"""Under which an app's configuration (`[tool.flwr.app.config]`) holds bara's keys."""


def describe(strategy: Strategy, model: ArrayRecord, context: Context, grid: Grid) -> AppSection:
    """The app that this server belongs to, as far as Flower says, before anything in its strategy is changed."""
    run = _run_of(grid)
    stack = list(layers(strategy))
    return AppSection(
        name=run.fab_id if run else "",
        fab_hash=run.fab_hash if run else "",
        run_id=str(context.run_id),
        strategy=" of ".join(type(layer).__name__ for layer in stack),
        parameters={
            f"{type(layer).__name__}.{name}": value
            for layer in stack
            for name, value in _made_with(layer)
        },
        model=_shapes(model),
        run_config={
            key: value for key, value in context.run_config.items() if not key.startswith(PREFIX)
        },
    )


def check_app(folder: Path, opened: AppSection, now: AppSection) -> None:
    """Refuse to go on with another app's run."""
    _refuse_other(folder, {"app": opened.name}, {"app": now.name})


def check_training(folder: Path, opened: AppSection, now: AppSection) -> None:
    """Refuse to go on with another strategy, one made otherwise, or another model: money was promised for this one."""
    for key in ("strategy", "model"):
        _refuse_other(folder, {key: getattr(opened, key)}, {key: getattr(now, key)})
    _refuse_other(folder, opened.parameters, now.parameters)


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """The keys whose values are not the same."""
    return sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))


def _refuse_other(folder: Path, opened: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare what both say: an earlier version, or another release of Flower, may say less."""
    for key in differing(opened, now):
        before, after = opened.get(key, ""), now.get(key, "")
        if before != "" != after:
            raise ConfigError(
                f"the run in {str(folder)!r} was begun with {key} = {before}, but this app has {after}; set "
                "bara.folder to another folder, or start the app that began it"
            )


def _run_of(grid: Grid) -> Run | None:
    try:
        return grid.run
    except (AttributeError, TypeError):  # a grid that was told of none
        return None


def _made_with(layer: Strategy) -> list[tuple[str, Any]]:
    """The constructor's plain arguments, in as much as the strategy keeps them under their names."""
    kinds = [kind for kind in type(layer).__mro__ if issubclass(kind, Strategy)]
    names = {name for kind in kinds for name in inspect.signature(kind).parameters} - SET_ASIDE
    held = {name: value for name, value in sorted(vars(layer).items()) if name in names}
    return [
        (name, _plain(value))
        for name, value in held.items()
        if isinstance(value, bool | int | float | str)
    ]


def _plain(value: Any) -> Any:
    """Equal to itself when it is read back, which not-a-number is not."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _shapes(model: ArrayRecord) -> str:
    shapes = [(name, array.dtype, tuple(array.shape)) for name, array in model.items()]
    size = sum(math.prod(shape) for _, _, shape in shapes)
    return f"{len(shapes)} arrays, {size} numbers, {sha256(repr(shapes).encode()).hexdigest()[:12]}"
