"""A memory for Flower's strategies: replies of remembered clients beside those of the winners.

The reply of a remembered client holds the current model plus the client's last update, with the
weight and the metrics of the round in which the update was accepted. With extrapolated memory,
every reply's update is multiplied by the size of the step (`bara.server.memory`). So any strategy
that makes the next model of replies alone gets a memory without any change to it. Metrics are those
that all of these clients report; who reported others cannot spoil later rounds. Statistics that
are counted instead of learned (batch norm's) and whole numbers come from this round's winners
alone: a remembered reply repeats the winners' mean.
"""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, final

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MessageType, MetricRecord, RecordDict
from numpy.typing import NDArray

from bara.flower._updates import Update, form_of
from bara.server.memory import Fresh, Vector
from bara.server.round import Remembered

Arrays = Mapping[str, NDArray[Any]]

COUNTED = ("running_mean", "running_var", "moving_mean", "moving_variance")
"""The ends of the names of batch norm's statistics in torch and Keras."""


@final
class RememberedReplies:
    """A maker of replies for remembered clients.

    Args:
        model: The arrays of any model of the run; all its models have the same names and shapes.
        weighed_by: The metric that holds an update's weight; None for equal weights.
    """

    def __init__(self, model: Arrays, weighed_by: str | None) -> None:
        self._shapes = {name: (array.shape, array.dtype) for name, array in sorted(model.items())}
        self._weighed_by = weighed_by
        self._learned: list[str] = []  # the names of the arrays that are learned
        for name, (_, dtype) in self._shapes.items():
            if dtype.kind == "f" and not name.endswith(COUNTED):
                self._learned.append(name)

    def changes(self, model: Arrays, updates: Mapping[str, Update]) -> dict[str, Fresh]:
        """Return by how much each update changes the learned arrays, with its weight.

        Args:
            model: The model that the updates began from.
            updates: The updates by client.
        """
        start = self._flat(model)
        found = {}
        for client, update in updates.items():
            metrics = update.metrics
            weight = 1.0
            if self._weighed_by is not None:
                weight = float(metrics[self._weighed_by])  # type: ignore[arg-type] # one number
            change = self._flat(update.arrays) - start
            found[client] = Fresh(change, weight, json.dumps(dict(metrics)))
        return found

    def beside(
        self, remembered: Remembered, round: int, model: Arrays, updates: Mapping[str, Update]
    ) -> list[Message]:
        """Return the replies of a round's winners and of all remembered clients, sorted by client.

        Args:
            remembered: The memory, with this round's updates in it.
            round: The round.
            model: The model that the updates began from.
            updates: This round's updates by client; there is at least one.
        """
        start = self._flat(model)
        memory = remembered.memory
        fresh = remembered.changes
        size = np.float32(memory.size)
        weights = [one.weight for one in fresh.values()]
        counted = self._mean_of_counted(list(updates.values()), weights)
        messages = {client: update.message for client, update in updates.items()}
        # The winners' records all have the same names, which strategies expect of every reply.
        content = next(iter(updates.values())).message.content
        arrays_name = next(iter(content.array_records))
        metrics_name = next(iter(content.metric_records))
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
        _keep_common(
            [message.content.metric_records[metrics_name] for message in messages.values()]
        )
        return [messages[client] for client in sorted(messages)]

    def _flat(self, arrays: Arrays) -> Vector:
        """Join the learned arrays into one vector."""
        vectors = [np.asarray(arrays[name], np.float32).reshape(-1) for name in self._learned]
        if not vectors:
            return np.empty(0, np.float32)
        return np.concatenate(vectors)

    def _arrays(self, flat: Vector) -> dict[str, NDArray[Any]]:
        """Split a vector of `_flat` into the learned arrays again."""
        found = {}
        start = 0
        for name in self._learned:
            shape, dtype = self._shapes[name]
            end = start + prod(shape)
            found[name] = flat[start:end].reshape(shape).astype(dtype)
            start = end
        return found

    def _mean_of_counted(
        self, updates: Sequence[Update], weights: Sequence[float]
    ) -> dict[str, NDArray[Any]]:
        """Return the mean of the arrays that are not learned; whole numbers are the first update's.

        Args:
            updates: This round's updates.
            weights: The weight of each update.
        """
        found = {}
        for name in self._shapes.keys() - set(self._learned):
            arrays = [update.arrays[name] for update in updates]
            dtype = arrays[0].dtype
            if dtype.kind == "f":
                found[name] = np.average(arrays, axis=0, weights=weights).astype(dtype)
            else:
                found[name] = arrays[0]
        return found


def _keep_common(records: Sequence[MetricRecord]) -> None:
    """Drop the metrics that not all clients report: strategies want the same of all replies.

    Those of one round are formed alike, but a client may have reported others in its own round.
    """
    common = frozenset.intersection(*map(form_of, records))
    kept = {name for name, _ in common}
    for record in records:
        for name in set(record) - kept:
            del record[name]


def _record(arrays: Arrays, model: Arrays) -> ArrayRecord:
    """Return arrays as Flower's record, in the order of the model's."""
    return ArrayRecord({name: Array(arrays[name]) for name in model})
