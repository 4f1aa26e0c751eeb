"""The server's state between rounds: models that may be kept, remembered updates, checkpoints."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from bara.faults import point
from bara.plugins import parse_spec
from bara.records import Award, Evaluation, Limits, RoundRecord, taken_home
from bara.server.checkpoints import Arrays, Checkpoint, CheckpointStore, by_round, round_name, save
from bara.server.kept_models import KeptModels
from bara.server.memory import MEMORIES, Memory


@final
@dataclass(frozen=True)
class Keeping:
    """The settings for what lasts from round to round.

    Attributes:
        memory: How the updates of clients that are not recruited in a round are used: `off`, or the
            name or import path of a memory (`bara.server.memory`), with its options.
        clients: The number of clients there may be; None if it is not known.
        forget_after: The number of rounds without a bid after which a client's update is dropped.
        average_last: The number of last models whose average may be kept.
        limits: The limits to what clients say of themselves, the weights of their updates included.
        folder: The folder for checkpoints and models; None to save neither.
    """

    memory: str = "off"
    clients: int | None = None
    forget_after: int = 50
    average_last: int = 10
    limits: Limits = field(default_factory=Limits)
    folder: Path | None = None


@final
class ServerState:
    """A server's state, which can be saved in checkpoints and restored from them.

    Args:
        keeping: The settings.
        durable: Wait until a checkpoint is on the disk, because training cannot be repeated.
        prefix: The start of the names of a model's arrays in a checkpoint; the arrays of other
            things in it have other prefixes.

    Attributes:
        memory: The remembered updates; None if no update is remembered.
        selects: Whether evaluations have validation data apart from the reported data, so that the
            best model may be selected.
    """

    def __init__(self, keeping: Keeping, *, durable: bool, prefix: str = "") -> None:
        self._keeping = keeping
        self._prefix = prefix
        self._models = KeptModels(keeping.average_last)
        self._checkpoints = CheckpointStore(keeping.folder, durable=durable)
        self._restored: dict[int, Arrays] = {}
        self._claimed: dict[str, float] = {}  # the weight of each client's last accepted update
        self.selects = False
        self.memory: Memory | None = None
        if keeping.memory != "off":
            options = parse_spec(keeping.memory)
            name = options.pop("name")
            self.memory = MEMORIES.build(
                name, options, folder=keeping.folder, clients=keeping.clients
            )

    def tell(self, round: int, model: Arrays, evaluation: Evaluation) -> None:
        """Take in the model of a round and its evaluation."""
        self.selects = evaluation.test_accuracy is not None
        self._models.tell(round, model, evaluation.accuracy)

    def accepts(self, evaluation: Evaluation) -> bool:
        """Return whether the model is to be kept after a step; False to take the step back."""
        if self.memory is None:
            return True
        loss = evaluation.loss
        if loss is None:
            loss = 1 - evaluation.accuracy
        return self.memory.judge(loss)

    def weights(self, award: Award) -> dict[str, float] | None:
        """Return the mechanism's weights by client, or None to use others.

        With a memory there are none: they compare only the winners of one round.
        """
        if award.weights is None or self.memory is not None:
            return None
        return dict(zip(award.clients, award.weights, strict=True))

    def limited(self, claimed: Mapping[str, float]) -> dict[str, str]:
        """Return the clients whose updates claim more weight than is allowed, with the reasons.

        Without a limit that the operator declares, what counts is the median of these claims and of
        the last accepted ones of all other clients.

        Args:
            claimed: The weight that each update has by its client's own account.
        """
        limits = self._keeping.limits
        said = np.array(list(claimed.values()), np.float64)
        usual = np.array(list({**self._claimed, **claimed}.values()), np.float64)
        clients = list(claimed)
        refused: dict[str, str] = {}
        for place, reason in limits.exceeded("num-examples", said, usual).items():
            refused[clients[place]] = reason
        if limits.times is not None:
            self._claimed |= {one: claimed[one] for one in clients if one not in refused}
        return refused

    def ages(self, round: int) -> dict[int, int]:
        """Return the number of remembered updates in a round's model, by age in rounds."""
        if self.memory is None:
            return {}
        return self.memory.ages(round)

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught before a round."""
        if self.memory is not None:
            self.memory.forget(client, round - 1)

    def forget_outdated(self, round: int, absent: Collection[str] | None) -> tuple[str, ...]:
        """Drop stale updates and those of absent clients; return the clients' names.

        Args:
            round: The round that begins.
            absent: The clients that do not bid in the round; None if that is not known.
        """
        if self.memory is None:
            return ()
        return self.memory.forget_outdated(round, absent, self._keeping.forget_after)

    # --- checkpoints -----------------------------------------------------------------------------

    def save(
        self, round: int, own: Arrays, words: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Save a checkpoint, together with the models and updates that a resumed run needs.

        Args:
            round: The round.
            own: The checkpoint's own arrays, the round's model among them.
            words: The checkpoint's own values, as JSON can hold them.
        """
        pieces: dict[str, Callable[[], Arrays]] = {}
        for number, model in self._models.by_round.items():
            if number != round:
                pieces[round_name(number)] = partial(prefixed, self._prefix, model)
        extra = dict(words)
        if self.memory is not None:
            extra["memory"] = self.memory.state()
            pieces |= self.memory.pieces()
        if self._claimed:
            extra["claimed"] = self._claimed
        self._checkpoints.put(round, own, pieces, extra)
        point("state saved")

    def sealed(self, round: int) -> str | None:
        """Return the digest of a round's checkpoint; None if the round has no checkpoint."""
        return self._checkpoints.digest(round)

    def restore(self, last: int, committed: Callable[[int], str | None]) -> Checkpoint | None:
        """Restore the newest whole checkpoint; return it, or None if there is none.

        Args:
            last: The last round whose checkpoint may be used.
            committed: Returns the digest of a round's checkpoint that the ledger holds.
        """
        found = self._checkpoints.newest(last, committed)
        if found is None:
            return None
        own, pieces = found
        self._restored = {}
        for number, one in by_round(own, pieces).items():
            self._restored[number] = with_prefix(self._prefix, one.arrays)
        if self.memory is not None:
            self.memory.restore(own.extra["memory"], pieces)
        self._claimed = dict(own.extra.get("claimed", {}))
        return own

    def replay(self, record: RoundRecord) -> None:
        """Take in the model of a round up to the checkpoint again, if the checkpoint holds it."""
        if record.round in self._restored:
            self.tell(record.round, self._restored[record.round], record.evaluation)

    # --- the end ---------------------------------------------------------------------------------

    def finish(
        self, evaluate: Callable[[Arrays], Evaluation] | None
    ) -> tuple[dict[str, Evaluation], Arrays]:
        """Choose the model to keep, and save all models that could have been kept.

        Args:
            evaluate: Evaluates a model; the final one is evaluated last. None to keep the final
                model without a choice.

        Returns:
            The evaluations by the names of the models, and the arrays of the kept model.
        """
        models = self._models.by_name
        evaluations: dict[str, Evaluation] = {}
        if evaluate is not None:
            found = {name: evaluate(models[name]) for name in reversed(models)}
            evaluations = {name: found[name] for name in models}
        kept = "final"
        if evaluations:
            kept = taken_home(evaluations)
        if self._keeping.folder is not None and models:
            for name, model in models.items():
                self._save_model(self._keeping.folder / f"model-{name}.npz", name, model)
            self._save_model(self._keeping.folder / "model.npz", kept, models[kept])
        return evaluations, models.get(kept, {})

    def _save_model(self, path: Path, name: str, model: Arrays) -> None:
        """Save the model of that name (`final`, `average` or `best`) with the round it is from."""
        made_in = max(self._models.by_round)
        if name == "best":
            made_in = self._models.best_round
        save(path, model, made_in, {"model": name})


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays under names that begin with a prefix, as a checkpoint holds them."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays of a checkpoint that have a prefix, under their names without it."""
    found = {}
    for name, array in arrays.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = array
    return found
