"""The state of a strategy as a checkpoint holds it: plain JSON values, and arrays they refer to.

A strategy with `state_dict` and `load_state_dict` is saved through these methods, and so is an
attribute that has them, such as a privacy accountant. Of any other strategy, every attribute is
saved that is an array, a number, one of Flower's records, or a list, tuple or dict of these. What
the strategy was configured with (text, paths, functions) is not state.
"""

import logging
from collections.abc import Callable, Mapping, MutableMapping
from copy import copy, deepcopy
from functools import partial
from pathlib import PurePath
from typing import Any, final

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from bara.flower._strategies import layers

Arrays = Mapping[str, NDArray[Any]]

log = logging.getLogger("flwr")

_RECORDS: dict[str, Any] = {
    "arrays": ArrayRecord,
    "metrics": MetricRecord,
    "config": ConfigRecord,
    "dict": dict,
}
"""The types of mappings by the word that stands for them, the most specific first."""

_ARRAYS: dict[str, tuple[Any, Any, Any]] = {
    "array": (np.ndarray, np.asarray, np.asarray),
    "number": (np.generic, np.asarray, lambda array: array[()]),
    "flower": (Array, Array.numpy, Array),
    "bytes": (bytes, lambda text: np.frombuffer(text, np.uint8), lambda array: array.tobytes()),
}
"""The types saved as arrays, by the word that stands for them.

Each has the type itself, its conversion to an array, and the conversion back.
"""


@final
class Knowledge:
    """A server's knowledge beside its model: strategy state, two configurations and the metrics.

    Args:
        strategy: The strategy whose state is saved.
        train_config: The configuration in training messages; a strategy's changes to it last.
        evaluate_config: The configuration in evaluation messages; a strategy's changes last, too.
        result: Flower's result, which holds the metrics.
    """

    def __init__(
        self,
        strategy: Strategy,
        train_config: ConfigRecord,
        evaluate_config: ConfigRecord,
        result: Result,
    ) -> None:
        self._strategy = strategy
        self._mutable: dict[str, MutableMapping[Any, Any]] = {
            "train_config": train_config,
            "evaluate_config": evaluate_config,
            "train_metrics_clientapp": result.train_metrics_clientapp,
            "evaluate_metrics_clientapp": result.evaluate_metrics_clientapp,
            "evaluate_metrics_serverapp": result.evaluate_metrics_serverapp,
        }
        self._lost: set[str] = set()

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """Return everything as JSON values and arrays; log each thing that cannot be saved once."""
        arrays: dict[str, NDArray[Any]] = {}
        strategy, lost = save(self._strategy, arrays)
        words: dict[str, Any] = {"strategy": strategy}
        for name, known in self._mutable.items():
            words[name] = pack(dict(known), arrays)
        new = sorted(set(lost) - self._lost)
        if new:
            self._lost.update(new)
            log.warning(
                "bara: %s cannot be saved, so a resumed run begins without; a strategy can save "
                "it with state_dict and load_state_dict",
                ", ".join(new),
            )
        return words, arrays

    def restore(self, words: Mapping[str, Any], arrays: Arrays) -> None:
        """Restore what `save` returned, or the state in a checkpoint of an earlier version.

        Args:
            words: The saved JSON values; an earlier version saved none of the strategy's.
            arrays: The arrays they refer to; in an earlier version, the strategy's arrays.
        """
        if "strategy" not in words:
            restore_old(self._strategy, arrays)
            return
        restore(self._strategy, words["strategy"], arrays)
        for name, known in self._mutable.items():
            known.update(unpack(words[name], arrays))


def remember(strategy: Strategy) -> Callable[[], None]:
    """Return a function that puts the state of a strategy back to what it is now."""
    undo: list[Callable[[], Any]] = []
    for layer in layers(strategy):
        if _has_hook(layer):
            undo.append(partial(layer.load_state_dict, deepcopy(layer.state_dict())))
            continue
        held = {}
        for name, value in vars(layer).items():
            is_container = isinstance(value, dict | list | np.ndarray)
            held[name] = copy(value) if is_container else value
        undo.append(partial(_put_back, layer, held))

    def put_back() -> None:
        for one in undo:
            one()

    return put_back


def _put_back(layer: Any, held: Mapping[str, Any]) -> None:
    vars(layer).clear()
    vars(layer).update(held)


def is_finite(strategy: Strategy) -> bool:
    """Return whether all arrays in the state of a strategy are finite."""
    arrays: dict[str, NDArray[Any]] = {}
    save(strategy, arrays)
    floats = [array for array in arrays.values() if array.dtype.kind in "fc"]
    return all(bool(np.isfinite(array).all()) for array in floats)


def save(strategy: Strategy, arrays: dict[str, NDArray[Any]]) -> tuple[list[Any], list[str]]:
    """Return the state of a strategy and of those it wraps as JSON values.

    Args:
        strategy: The outermost strategy.
        arrays: Where the arrays in the state are added.

    Returns:
        The state of each strategy, outermost first, and the names of what cannot be saved.
    """
    words = []
    lost = []
    for layer in layers(strategy):
        saved = {}
        for name, value in _held(layer).items():
            try:
                state = value.state_dict() if _has_hook(value) else value
                saved[name] = pack(state, arrays)
            except TypeError as error:
                lost.append(f"{type(layer).__name__}.{name} ({error})")
        words.append(saved)
    return words, lost


def restore(strategy: Strategy, words: list[Any], arrays: Arrays) -> None:
    """Restore the state that `save` returned into a new strategy.

    Args:
        strategy: The outermost strategy, made as the saved one was.
        words: The state of each strategy as JSON values, outermost first.
        arrays: The arrays that the state refers to.
    """
    for layer, saved in zip(layers(strategy), words, strict=True):
        values = {name: unpack(value, arrays) for name, value in saved.items()}
        if _has_hook(layer):
            layer.load_state_dict(values)
            continue
        for name, value in values.items():
            held: Any = getattr(layer, name, None)
            if _has_hook(held):
                held.load_state_dict(value)
            else:
                setattr(layer, name, value)


def pack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a value as JSON can hold it.

    Args:
        value: An array, a plain value, one of Flower's records, or a container of these.
        arrays: Where the arrays in the value are added; the result names them.

    Raises:
        TypeError: when the value contains anything else.
    """
    for kind, (saved_type, to_array, _) in _ARRAYS.items():
        if isinstance(value, saved_type):
            array = to_array(value)
            if array.dtype == object:
                raise TypeError("an array of objects")
            name = str(len(arrays))
            arrays[name] = array
            return {kind: name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [pack(one, arrays) for one in value]}
    for kind, record in _RECORDS.items():
        if isinstance(value, record):
            return {kind: [[pack(key, arrays), pack(one, arrays)] for key, one in value.items()]}
    raise TypeError(f"a {type(value).__name__}")


def unpack(words: Any, arrays: Arrays) -> Any:
    """Return the value that `pack` turned into these JSON values and arrays."""
    if not isinstance(words, dict):
        return words
    ((kind, content),) = words.items()
    if kind in _RECORDS:
        record = _RECORDS[kind]
        return record({unpack(key, arrays): unpack(one, arrays) for key, one in content})
    if kind in ("list", "tuple"):
        values = [unpack(one, arrays) for one in content]
        return values if kind == "list" else tuple(values)
    _, _, from_array = _ARRAYS[kind]
    return from_array(arrays[content])


def restore_old(strategy: Strategy, remembered: Arrays) -> None:
    """Restore the state from a checkpoint of an earlier version.

    Args:
        strategy: The outermost strategy, made as the saved one was.
        remembered: The saved arrays and fractions, each named by its depth, its attribute and,
            inside a container, the container's kind and its key there: `0/momentum/list/1`.
    """
    for depth, layer in enumerate(layers(strategy)):
        for name, value in vars(layer).items():
            place = f"{depth}/{name}"
            if place in remembered:
                old = remembered[place]
                setattr(layer, name, float(old) if isinstance(value, float) else old)
            for kind in ("record", "dict", "list"):
                prefix = f"{place}/{kind}/"
                inner = {}
                for key, array in remembered.items():
                    if key.startswith(prefix):
                        inner[key.removeprefix(prefix)] = array
                if inner:
                    setattr(layer, name, _old_value(kind, inner))


def _old_value(kind: str, inner: Arrays) -> Any:
    if kind == "record":
        return ArrayRecord({key: Array(np.asarray(array)) for key, array in inner.items()})
    if kind == "dict":
        return dict(inner)
    return [inner[str(i)] for i in range(len(inner))]


def _held(layer: Any) -> Mapping[str, Any]:
    """Return the state of one strategy by name: its `state_dict`, or its attributes."""
    if _has_hook(layer):
        state: Mapping[str, Any] = layer.state_dict()
        return state
    return {name: value for name, value in vars(layer).items() if not _is_setting(value)}


def _is_setting(value: Any) -> bool:
    """Return True for an attribute that configures the strategy rather than holding state.

    A wrapped strategy counts as one: its state is saved separately.
    """
    if value is None or isinstance(value, str | PurePath | Strategy):
        return True
    return callable(value) and not _has_hook(value)


def _has_hook(value: Any) -> bool:
    """Return True for an object that saves and loads its own state."""
    return (
        not isinstance(value, type)
        and hasattr(value, "state_dict")
        and hasattr(value, "load_state_dict")
    )
