"""What Flower's strategies are handed where updates are remembered: a reply for everybody who was ever paid.

A remembered client's reply holds the model as it is now plus that client's last update, with the
weight and the metrics of when it was accepted; where memory is extrapolated, every reply's update
is as many times longer as the step is (`bara.server.memory`). So any strategy that makes the next
model of replies alone has a memory, without knowing. Statistics that are counted and not learned
(batch norm's) and whole numbers come from this round's winners alone: a remembered reply repeats
their mean.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MessageType, MetricRecord, RecordDict
from numpy.typing import NDArray

from bara.flower._updates import Update
from bara.server.memory import Fresh, UpdateMemory, Vector

Arrays = Mapping[str, NDArray[Any]]

COUNTED = ("running_mean", "running_var", "moving_mean", "moving_variance")
"""How torch and Keras end the names of batch norm's statistics."""


@final
class RememberedReplies:
    """Replies for those who are not recruited, of what is remembered of them.

    Args:
        model: The model's arrays, whose names and shapes stay.
        weighed_by: The metric that holds an update's weight; None for equal weights.
    """

    def __init__(self, model: Arrays, weighed_by: str | None) -> None:
        self._shapes = {name: (array.shape, array.dtype) for name, array in sorted(model.items())}
        self._weighed_by = weighed_by

    @cached_property
    def _learned(self) -> list[str]:
        return [
            name
            for name, (_, kind) in self._shapes.items()
            if kind.kind == "f" and not name.endswith(COUNTED)
        ]

    def changes(self, model: Arrays, updates: Mapping[str, Update]) -> dict[str, Fresh]:
        """Return by how much each update changes what the model learns, with its weight."""
        start = self._flat(model)
        found = {}
        for client, update in updates.items():
            weight = 1.0
            if self._weighed_by is not None:
                weight = float(update.metrics[self._weighed_by])  # type: ignore[arg-type] # a number
            metrics = json.dumps(dict(update.metrics))
            found[client] = Fresh(self._flat(update.arrays) - start, weight, metrics)
        return found

    def beside(
        self, memory: UpdateMemory, round: int, model: Arrays, updates: Mapping[str, Update]
    ) -> list[Message]:
        """Return the replies of a round's winners and of everybody who is remembered, by name.

        Args:
            memory: The memory, told this round's updates.
            round: The round.
            model: The model that the updates began from.
            updates: The updates of this round.
        """
        start = self._flat(model)
        size = np.float32(memory.size)
        fresh = self.changes(model, updates)
        weights = [one.weight for one in fresh.values()]
        counted = self._mean_of_counted(list(updates.values()), weights)
        messages = {client: update.message for client, update in updates.items()}
        names = next(iter(updates.values())).message.content
        arrays_name = next(iter(names.array_records))
        metrics_name = next(iter(names.metric_records))
        if size != 1:
            for client, one in fresh.items():
                arrays = {**updates[client].arrays, **self._arrays(start + size * one.update)}
                messages[client].content[arrays_name] = _record(arrays, model)
        for client, one in memory.remembered(round):
            arrays = {**self._arrays(start + size * one.update), **counted}
            content = RecordDict()
            content[arrays_name] = _record(arrays, model)
            content[metrics_name] = MetricRecord(json.loads(one.note))
            messages[client] = Message(content, dst_node_id=0, message_type=MessageType.TRAIN)
        return [messages[client] for client in sorted(messages)]

    def _flat(self, arrays: Arrays) -> Vector:
        parts = [np.asarray(arrays[name], np.float32).reshape(-1) for name in self._learned]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def _arrays(self, flat: Vector) -> dict[str, NDArray[Any]]:
        found, at = {}, 0
        for name in self._learned:
            shape, kind = self._shapes[name]
            found[name] = flat[at : at + prod(shape)].reshape(shape).astype(kind)
            at += prod(shape)
        return found

    def _mean_of_counted(
        self, updates: Sequence[Update], weights: Sequence[float]
    ) -> dict[str, NDArray[Any]]:
        """What is not learned: the mean of this round's; of whole numbers the first one's."""
        found = {}
        for name in self._shapes.keys() - set(self._learned):
            arrays = [update.arrays[name] for update in updates]
            whole = arrays[0].dtype.kind != "f"
            found[name] = (
                arrays[0]
                if whole
                else np.average(arrays, axis=0, weights=weights).astype(arrays[0].dtype)
            )
        return found


def _record(arrays: Arrays, model: Arrays) -> ArrayRecord:
    return ArrayRecord({name: Array(arrays[name]) for name in model})
