"""What winners send back: whether it can be used, and what the server saw of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, final

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from numpy.typing import NDArray

from bara.server.screening import refusals


@final
@dataclass(frozen=True, eq=False)
class Update:
    """One winner's reply, found to be whole.

    Attributes:
        message: The reply.
        arrays: The arrays it holds, by name.
    """

    message: Message
    arrays: Mapping[str, NDArray[Any]]

    @property
    def metrics(self) -> MetricRecord:
        """What it says of its training."""
        return next(iter(self.message.content.metric_records.values()))

    @property
    def record(self) -> ArrayRecord:
        """The model it returned, as Flower holds it."""
        return next(iter(self.message.content.array_records.values()))

    @property
    def form(self) -> tuple[Any, ...]:
        """The names in it; strategies want them the same in all replies."""
        content = self.message.content
        return (*content.array_records, *content.metric_records, frozenset(self.metrics))

    def number(self, key: str) -> float | None:
        """The metric of that name, if it is a finite number."""
        value = self.metrics.get(key)
        ok = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        return float(value) if ok else None  # type: ignore[arg-type]


@final
class UpdateValidator:
    """Lets usable updates in and says why the others are not.

    Args:
        model: The arrays that were sent out.
        weighed_by: The metric that must be a positive number, or None.
        same_shapes: Refuse arrays that are not shaped as the model's.
        outliers: Refuse updates so many robust deviations farther from the others than is usual;
            None for none.
        kinds: The kinds of numbers that the arrays began as: Flower's mean of batch norm's whole
            counter is a fraction, and clients go on counting in whole numbers.
    """

    def __init__(
        self,
        model: Mapping[str, NDArray[Any]],
        weighed_by: str | None,
        *,
        same_shapes: bool = True,
        outliers: float | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self._model = model
        self._kinds = kinds or {}
        self._weighed_by = weighed_by
        self._same_shapes = same_shapes
        self._outliers = outliers

    def admit(self, replies: Mapping[str, Message]) -> tuple[dict[str, Update], dict[str, str]]:
        """The updates that can be used, by client, and the reasons of the others."""
        refused: dict[str, str] = {}
        sound: dict[str, Update] = {}
        for client, reply in replies.items():
            read = self._read(reply)
            if isinstance(read, str):
                refused[client] = read
            else:
                sound[client] = read
        refused |= _strange(sound)
        sound = {client: update for client, update in sound.items() if client not in refused}
        refused |= self._far(sound)
        return {
            client: update for client, update in sound.items() if client not in refused
        }, refused

    def _read(self, reply: Message) -> Update | str:
        content = reply.content
        if len(content.array_records) != 1 or len(content.metric_records) != 1:
            return "its update must hold exactly one ArrayRecord and one MetricRecord"
        try:
            arrays = {
                name: array.numpy()
                for name, array in next(iter(content.array_records.values())).items()
            }
        except (ValueError, TypeError, EOFError, OSError) as error:
            return f"its update cannot be read: {error}"
        update = Update(reply, arrays)
        return self._fault(update) or update

    def _fault(self, update: Update) -> str:
        if self._same_shapes and (why := _misfit(self._model, update.arrays, self._kinds)):
            return why
        if not all(
            np.isfinite(array).all() for array in update.arrays.values() if array.dtype.kind in "fc"
        ):
            return "its update is not finite"
        key = self._weighed_by
        if key is not None and not (update.number(key) or 0.0) > 0:
            return f"its {key} must be positive, got {update.metrics.get(key)!r}"
        return ""

    def _far(self, updates: Mapping[str, Update]) -> dict[str, str]:
        """Who is an outlier; all shapes are the model's here."""
        if self._outliers is None or not updates:
            return {}
        states = [_flat(update.arrays) for update in updates.values()]
        found = refusals(_flat(self._model), states, self._outliers)
        clients = list(updates)
        return {clients[i]: reason for i, reason in found.items()}


def _misfit(
    model: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, str]
) -> str:
    if arrays.keys() != model.keys():
        return f"its update holds {sorted(arrays)}; the model holds {sorted(model)}"[:300]
    for name, array in arrays.items():
        if array.shape != model[name].shape or array.dtype.kind not in (
            model[name].dtype.kind,
            kinds.get(name),
        ):
            return (
                f"its {name} must have shape {model[name].shape} and type {model[name].dtype}, as the model's, got "
                f"{array.shape} and {array.dtype}"
            )
    return ""


def _strange(updates: Mapping[str, Update]) -> dict[str, str]:
    """Whose names differ from the most common ones: Flower would give the whole round up for one."""
    forms = Counter(update.form for update in updates.values())
    usual = forms.most_common(1)[0][0] if forms else ()
    return {
        client: "its update has other names than the others' (records, metrics)"
        for client, update in updates.items()
        if update.form != usual
    }


def _flat(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    parts = [arrays[name].reshape(-1) for name in sorted(arrays) if arrays[name].dtype.kind == "f"]
    return np.concatenate(parts).astype(np.float32)
