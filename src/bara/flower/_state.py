"""What a strategy has learned, as a checkpoint can hold it: plain words, and the arrays that they name.

A strategy, or an attribute of it such as a privacy accountant, that has `state_dict` and
`load_state_dict` is saved through them. Of any other strategy every attribute is saved that is an
array, a number, one of Flower's records, or a list, tuple or dict of such; what it was configured
with (text, paths, functions) is not state.
"""

import logging
from collections.abc import Mapping, MutableMapping
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
"""Mappings by the word that stands for them, the most special first."""

_ARRAYS: dict[str, tuple[Any, Any, Any]] = {
    "array": (np.ndarray, np.asarray, np.asarray),
    "number": (np.generic, np.asarray, lambda array: array[()]),
    "flower": (Array, Array.numpy, Array),
    "bytes": (bytes, lambda text: np.frombuffer(text, np.uint8), lambda array: array.tobytes()),
}
"""What is saved as an array, by the word that stands for it: its type, how it becomes one, and how it was one."""


@final
class Knowledge:
    """What a server knows beside its model: its strategy's state, both configurations, the metrics so far.

    Args:
        strategy: Whose state it is.
        train_config: What training messages carry; what a strategy changes in it stays changed.
        evaluate_config: What evaluation messages carry, likewise.
        result: Holds the metrics.
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
        """All of it in words and arrays; what cannot be saved is logged once."""
        arrays: dict[str, NDArray[Any]] = {}
        strategy, lost = save(self._strategy, arrays)
        words = {name: pack(dict(known), arrays) for name, known in self._mutable.items()}
        if new := sorted(set(lost) - self._lost):
            self._lost |= set(new)
            log.warning(
                "bara: %s cannot be saved, so a resumed run begins without; a strategy can save it with "
                "state_dict and load_state_dict",
                ", ".join(new),
            )
        return {"strategy": strategy, **words}, arrays

    def restore(self, words: Mapping[str, Any], arrays: Arrays) -> None:
        """Know it again; a checkpoint of an earlier version holds the strategy's arrays alone."""
        if "strategy" not in words:
            restore_old(self._strategy, arrays)
            return
        restore(self._strategy, words["strategy"], arrays)
        for name, known in self._mutable.items():
            known.update(unpack(words[name], arrays))


def save(strategy: Strategy, arrays: dict[str, NDArray[Any]]) -> tuple[list[Any], list[str]]:
    """The state of the strategy and of those it wraps, in words; its arrays are added to `arrays`.

    Returns:
        The words, and what cannot be saved, by name.
    """
    words, lost = [], []
    for layer in layers(strategy):
        kept = {}
        for name, value in _held(layer).items():
            try:
                kept[name] = pack(value.state_dict() if _has_hook(value) else value, arrays)
            except TypeError as error:
                lost.append(f"{type(layer).__name__}.{name} ({error})")
        words.append(kept)
    return words, lost


def restore(strategy: Strategy, words: list[Any], arrays: Arrays) -> None:
    """Let a fresh strategy know again what `save` told."""
    for layer, kept in zip(layers(strategy), words, strict=True):
        values = {name: unpack(value, arrays) for name, value in kept.items()}
        if _has_hook(layer):
            layer.load_state_dict(values)  # type: ignore[attr-defined] # that is the hook
            continue
        for name, value in values.items():
            held: Any = getattr(layer, name, None)
            if _has_hook(held):
                held.load_state_dict(value)
            else:
                setattr(layer, name, value)


def pack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value in words that JSON can say; its arrays are added to `arrays`.

    Raises:
        TypeError: when something in it is neither an array, plain, nor made of such.
    """
    for kind, (made, array_of, _) in _ARRAYS.items():
        if isinstance(value, made):
            array = array_of(value)
            if array.dtype == object:
                raise TypeError("an array of objects")
            arrays[name := str(len(arrays))] = array
            return {kind: name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {
            "list" if isinstance(value, list) else "tuple": [pack(one, arrays) for one in value]
        }
    for kind, record in _RECORDS.items():
        if isinstance(value, record):
            return {kind: [[pack(key, arrays), pack(one, arrays)] for key, one in value.items()]}
    raise TypeError(f"a {type(value).__name__}")


def unpack(words: Any, arrays: Arrays) -> Any:
    """The value that was packed."""
    if not isinstance(words, dict):
        return words
    ((kind, content),) = words.items()
    if kind in _RECORDS:
        return _RECORDS[kind]({unpack(key, arrays): unpack(one, arrays) for key, one in content})
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(unpack(one, arrays) for one in content)
    return _ARRAYS[kind][2](arrays[content])


def restore_old(strategy: Strategy, remembered: Arrays) -> None:
    """The same from a checkpoint of an earlier version: arrays and fractions only, each named by its place."""
    for depth, layer in enumerate(layers(strategy)):
        for name, value in vars(layer).items():
            place = f"{depth}/{name}"
            if place in remembered:
                setattr(
                    layer,
                    name,
                    float(remembered[place]) if isinstance(value, float) else remembered[place],
                )
            for kind in ("record", "dict", "list"):
                prefix = f"{place}/{kind}/"
                inner = {
                    key.removeprefix(prefix): one
                    for key, one in remembered.items()
                    if key.startswith(prefix)
                }
                if inner:
                    setattr(layer, name, _old_value(kind, inner))


def _old_value(kind: str, inner: Arrays) -> Any:
    if kind == "record":
        return ArrayRecord({key: Array(np.asarray(array)) for key, array in inner.items()})
    return dict(inner) if kind == "dict" else [inner[str(i)] for i in range(len(inner))]


def _held(layer: Strategy) -> Mapping[str, Any]:
    if _has_hook(layer):
        return layer.state_dict()  # type: ignore[attr-defined,no-any-return] # that is the hook
    return {name: value for name, value in vars(layer).items() if not _is_setting(value)}


def _is_setting(value: Any) -> bool:
    """Whether it is what the strategy was configured with; one that it wraps is a layer of its own."""
    plain = value is None or isinstance(value, str | PurePath | Strategy)
    return plain or (callable(value) and not _has_hook(value))


def _has_hook(value: Any) -> bool:
    return (
        not isinstance(value, type)
        and hasattr(value, "state_dict")
        and hasattr(value, "load_state_dict")
    )
