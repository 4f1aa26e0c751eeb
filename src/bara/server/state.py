"""What a server keeps from round to round: the models it may take home, remembered updates, checkpoints of both."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from bara.errors import TrainingError
from bara.faults import point
from bara.records import Award, Evaluation, RoundRecord, taken_home
from bara.server.checkpoints import Arrays, Checkpoint, CheckpointStore, by_round, round_name, save
from bara.server.kept_models import KeptModels
from bara.server.memory import UpdateMemory, Variant


@final
@dataclass(frozen=True)
class Keeping:
    """What a server is told to keep.

    Attributes:
        memory: What becomes of the updates of clients who are not recruited this round
            (`bara.server.memory`).
        forget_after: Rounds without a bid after which a client's update is forgotten.
        average_last: How many of the last models are averaged into one that may be taken home.
        folder: Where checkpoints and models go; None to keep none.
    """

    memory: Variant = "off"
    forget_after: int = 50
    average_last: int = 10
    folder: Path | None = None


@final
class ServerState:
    """Keeps it, saves it, and is brought back to where a checkpoint left it.

    Args:
        keeping: What to keep.
        durable: Wait until the disk has a checkpoint: what it holds cannot be made again.
        prefix: How a checkpoint names a model's arrays; other parts of it have other prefixes.

    Attributes:
        memory: What is remembered; None where nothing is.
        selects: Whether evaluations tell what decides apart from what is reported, so that a model
            may be selected.
    """

    def __init__(self, keeping: Keeping, *, durable: bool, prefix: str = "") -> None:
        self._keeping = keeping
        self._prefix = prefix
        self._models = KeptModels(keeping.average_last)
        self._checkpoints = CheckpointStore(keeping.folder, durable=durable)
        self._restored: Mapping[int, Arrays] = {}
        self.selects = False
        self.memory: UpdateMemory | None = None
        if keeping.memory != "off":
            self.memory = UpdateMemory(
                extrapolated=keeping.memory == "extrapolated", folder=keeping.folder
            )

    def tell(self, round: int, model: Arrays, evaluation: Evaluation) -> None:
        """A round's model, and how good it is."""
        self.selects = evaluation.test_accuracy is not None
        self._models.tell(round, model, evaluation.accuracy)

    def judged(self, evaluate: Callable[[], Evaluation]) -> Evaluation | None:
        """How good the model is that a step led to; None where it is so bad that the one before it stays."""
        try:
            evaluation = evaluate()
        except TrainingError:  # its numbers are not finite
            if self.memory is None or self.memory.judge(math.inf):
                raise
            return None
        loss = 1 - evaluation.accuracy if evaluation.loss is None else evaluation.loss
        return evaluation if self.memory is None or self.memory.judge(loss) else None

    def weights(self, award: Award) -> dict[str, float] | None:
        """The mechanism's own; None without any, and with a memory, because they compare the winners of one round."""
        if award.weights is None or self.memory is not None:
            return None
        return dict(zip(award.clients, award.weights, strict=True))

    def ages(self, round: int) -> dict[int, int]:
        """How many remembered updates of which age that round's model was made of."""
        return {} if self.memory is None else self.memory.ages(round)

    def forget(self, client: str, round: int) -> None:
        """Let go of what that client taught before that round."""
        if self.memory is not None:
            self.memory.forget(client, round - 1)

    def forget_outdated(self, round: int, absent: Collection[str] | None) -> tuple[str, ...]:
        """Let go of those who have not bid for long, and of updates that are too old; whose they were."""
        return (
            ()
            if self.memory is None
            else self.memory.forget_outdated(round, absent, self._keeping.forget_after)
        )

    # --- checkpoints -----------------------------------------------------------------------------

    def save(
        self, round: int, own: Arrays, words: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Save a checkpoint: these arrays and words, and the models and updates that going on needs."""
        pieces: dict[str, Callable[[], Arrays]] = {
            round_name(number): partial(prefixed, self._prefix, model)
            for number, model in self._models.by_round.items()
            if number != round
        }
        extra = dict(words)
        if self.memory is not None:
            extra["memory"] = self.memory.state()
            pieces |= self.memory.pieces()
        self._checkpoints.put(round, own, pieces, extra)
        point("state saved")

    def sealed(self, round: int) -> str | None:
        """The digest of that round's checkpoint, where it has one."""
        return self._checkpoints.digest(round)

    def restore(self, last: int, committed: Callable[[int], str | None]) -> Checkpoint | None:
        """Go back to the newest whole checkpoint that is not later than that round; returns it, or None for none."""
        found = self._checkpoints.newest(last, committed)
        if found is None:
            return None
        own, pieces = found
        self._restored = {
            number: with_prefix(self._prefix, one.arrays)
            for number, one in by_round(own, pieces).items()
        }
        if self.memory is not None:
            self.memory.restore(own.extra["memory"], pieces)
        return own

    def replay(self, record: RoundRecord) -> None:
        """Pass a round up to the checkpoint: the models that were kept are kept again."""
        if record.round in self._restored:
            self.tell(record.round, self._restored[record.round], record.evaluation)

    # --- the end ---------------------------------------------------------------------------------

    def finish(
        self, evaluate: Callable[[Arrays], Evaluation] | None
    ) -> tuple[dict[str, Evaluation], Arrays]:
        """Evaluate the models that may be taken home, save them, and say how good each is and which it is.

        Args:
            evaluate: How good a model is, asked of the final one last; None to take that home.
        """
        models = self._models.by_name
        told = {name: evaluate(models[name]) for name in reversed(models)} if evaluate else {}
        found = {name: told[name] for name in models if name in told}
        kept = taken_home(found) if found else "final"
        if self._keeping.folder is not None:
            files = {f"model-{name}": name for name in models} | ({"model": kept} if models else {})
            for file, name in files.items():
                made_in = self._models.best_round if name == "best" else max(self._models.by_round)
                save(self._keeping.folder / f"{file}.npz", models[name], made_in, {"model": name})
        return found, models.get(kept, {})


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    """Name arrays as a checkpoint does that holds arrays of several kinds."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays of one kind from a checkpoint, by the names they had."""
    found = {}
    for name, array in arrays.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = array
    return found
