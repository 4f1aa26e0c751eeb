"""The updates that winners send back, and the checks that decide which of them are used."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, final

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from numpy.typing import NDArray

from bara.server.screening import refusals

FEWEST = 3
"""The fewest updates of which one that is out of all proportion can be told."""

TIMES = 1e6
"""How many times the usual change an update may make: honest ones stay far below."""


@final
@dataclass(frozen=True, eq=False)
class Update:
    """One winner's reply, with its arrays read.

    Attributes:
        message: The reply.
        arrays: The arrays in the reply, by name.
    """

    message: Message
    arrays: Mapping[str, NDArray[Any]]

    @property
    def metrics(self) -> MetricRecord:
        """The metrics that the client reports about its training."""
        return next(iter(self.message.content.metric_records.values()))

    @property
    def record(self) -> ArrayRecord:
        """The model that the client returned, as Flower's record."""
        return next(iter(self.message.content.array_records.values()))

    @property
    def form(self) -> tuple[Any, ...]:
        """The names and lists' lengths, which strategies want to be the same in all replies."""
        content = self.message.content
        return (*content.array_records, *content.metric_records, form_of(self.metrics))

    def number(self, key: str) -> float | None:
        """Return the metric of that name if it is a finite number, else None."""
        value = self.metrics.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return None
        return float(value)


def form_of(metrics: Mapping[str, Any]) -> frozenset[tuple[str, int | None]]:
    """Return the names of metrics, each with its list's length; None for a single number."""
    form = set()
    for name, value in metrics.items():
        form.add((name, len(value) if isinstance(value, list) else None))
    return frozenset(form)


@final
class UpdateValidator:
    """A validator that admits usable updates and gives a reason for refusing each of the others.

    Args:
        model: The arrays that were sent to the winners.
        weighed_by: The metric that must be a positive number; None if there is none.
        same_shapes: Refuse updates whose arrays are not shaped as the model's.
        outliers: Refuse updates that lie this many robust deviations farther from the others than
            is usual; None to refuse none.
        kinds: The kind of number in each array of the initial model, which is admitted, too:
            Flower averages batch norm's integer counter to a fraction, while clients go on
            counting in integers.
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
        """Return the usable updates by client, and the reasons for refusing the others."""
        refused: dict[str, str] = {}
        sound: dict[str, Update] = {}
        for client, reply in replies.items():
            update = self._read(reply)
            if isinstance(update, str):
                refused[client] = update
            else:
                sound[client] = update
        # Outliers are sought among the updates that remain when those of odd forms are out.
        for find in (_misformed, self._excessive, self._outlying):
            for client, reason in find(sound).items():
                refused[client] = reason
                del sound[client]
        return sound, refused

    def _read(self, reply: Message) -> Update | str:
        """Return the update in a reply, or the reason for refusing it."""
        content = reply.content
        if len(content.array_records) != 1 or len(content.metric_records) != 1:
            return "its update must hold exactly one ArrayRecord and one MetricRecord"
        [record] = content.array_records.values()
        try:
            arrays = {name: array.numpy() for name, array in record.items()}
        except (ValueError, TypeError, EOFError, OSError) as error:
            return f"its update cannot be read: {error}"
        update = Update(reply, arrays)
        return self._fault(update) or update

    def _fault(self, update: Update) -> str:
        """Return the reason for refusing an update by itself; empty if there is none."""
        if self._same_shapes:
            misfit = _misfit(self._model, update.arrays, self._kinds)
            if misfit:
                return misfit
        for array in update.arrays.values():
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                return "its update is not finite"
        key = self._weighed_by
        if key is not None:
            weight = update.number(key)
            if weight is None or weight <= 0:
                return f"its {key} must be positive, got {update.metrics.get(key)!r}"
        return ""

    def _excessive(self, updates: Mapping[str, Update]) -> dict[str, str]:
        """Return the reasons for refusing updates so large that they would spoil any model."""
        if not self._same_shapes or len(updates) < FEWEST:
            return {}
        sizes = {one: _change(self._model, update.arrays) for one, update in updates.items()}
        usual = float(np.median(list(sizes.values())))
        refused = {}
        for client, size in sizes.items():
            if size > TIMES * usual > 0:
                refused[client] = (
                    f"its update changes a number by {size:g}, more than {TIMES:,.0f} times as "
                    f"much as is usual, {usual:g}"
                )
        return refused

    def _outlying(self, updates: Mapping[str, Update]) -> dict[str, str]:
        """Return the reasons for refusing outliers; all updates are shaped as the model here."""
        if self._outliers is None or not updates:
            return {}
        clients = list(updates)
        states = [_flat(update.arrays) for update in updates.values()]
        found = refusals(_flat(self._model), states, self._outliers)
        return {clients[i]: reason for i, reason in found.items()}


def _misfit(
    model: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, str]
) -> str:
    """Return how an update's arrays differ from the model's in form; empty if they do not."""
    if arrays.keys() != model.keys():
        return f"its update holds {sorted(arrays)}; the model holds {sorted(model)}"[:300]
    for name, array in arrays.items():
        wanted = model[name]
        same_kind = array.dtype.kind in (wanted.dtype.kind, kinds.get(name))
        if array.shape != wanted.shape or not same_kind:
            return (
                f"its {name} must have shape {wanted.shape} and type {wanted.dtype}, as the "
                f"model's, got {array.shape} and {array.dtype} (bara.federation.same-shapes)"
            )
    return ""


def _misformed(updates: Mapping[str, Update]) -> dict[str, str]:
    """Return the reasons for refusing updates that are not formed as most updates are.

    With them, Flower would give up the whole round.
    """
    forms = Counter(update.form for update in updates.values())
    if len(forms) < 2:
        return {}
    usual, _ = forms.most_common(1)[0]
    unusual = [client for client, update in updates.items() if update.form != usual]
    return dict.fromkeys(
        unusual,
        "its update has other names than the others' (records, metrics), or lists of other lengths",
    )


def _change(model: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]) -> float:
    """Return the largest change of one of the model's numbers."""
    largest = 0.0
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            with np.errstate(over="ignore"):  # what overflows is infinitely large
                largest = max(largest, float(np.abs(array - model[name]).max()))
    return largest


def _flat(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Join the floating-point arrays, in the order of their names, into one vector."""
    names = [name for name in sorted(arrays) if arrays[name].dtype.kind == "f"]
    vectors = [arrays[name].reshape(-1) for name in names]
    return np.concatenate(vectors).astype(np.float32)
