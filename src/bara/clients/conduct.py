"""What simulated clients deliver when they have won: some fail, some are late, some cheat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from bara.randomness import stream

State = NDArray[np.float32]
"""A model in one flat vector."""

Role = Literal["noisy", "free rider", "poisoner"]

_CHEATS = ("free rider", "poisoner")
"""The roles whose updates differ from what honest training would send."""


@final
@dataclass(frozen=True, eq=False)
class Updates:
    """The updates that the clients of one round sent back, in the order in which they were asked.

    Attributes:
        round: The round.
        clients: The clients that trained, by number.
        states: Each client's whole flat state after training, a row each; valid until the next
            `train`, copy to keep.
        samples: How many samples each client trained on.
        loss_before: Each client's mean loss on its own samples before training: with FedSGD always
            (the loss whose gradient was taken, so batch norm uses the batch's statistics), with
            FedAvg when evidence was asked for.
        loss_after: The same after training, when evidence was asked for.
    """

    round: int
    clients: tuple[int, ...]
    states: State
    samples: tuple[int, ...]
    loss_before: tuple[float | None, ...]
    loss_after: tuple[float | None, ...]


@final
@dataclass(frozen=True)
class Conduct:
    """The failures, delays and cheating of winners; seed, round and winners determine them all.

    Attributes:
        seed: The seed of all random numbers drawn here.
        roles: The role of each client that is not honest.
        failure_rate: The probability that a winner does not answer.
        late_rate: The probability that a winner's update comes too late.
        free_riding: What a free rider delivers: the model as received, or random numbers around it.
    """

    seed: int
    roles: dict[str, Role]
    failure_rate: float
    late_rate: float
    free_riding: Literal["unchanged", "random"]

    def absent(self, round: int, clients: Sequence[str]) -> dict[str, str]:
        """Return the clients among these that do not deliver this round, each with its reason."""
        drawn = stream(self.seed, "failures", round).random((2, len(clients)))
        reasons = {}
        for i in np.flatnonzero(drawn[1] < self.late_rate).tolist():
            reasons[clients[i]] = "its update came too late"
        for i in np.flatnonzero(drawn[0] < self.failure_rate).tolist():
            reasons[clients[i]] = "it did not answer"
        return reasons

    def tamper(self, round: int, clients: Sequence[str], state: State, updates: Updates) -> Updates:
        """Return the updates as sent: a free rider's is no work, a poisoner's points backwards."""
        if not any(self.roles.get(client) in _CHEATS for client in clients):
            return updates
        states = updates.states.copy()
        losses = list(updates.loss_after)
        for row, client in enumerate(clients):
            role = self.roles.get(client)
            if role not in _CHEATS:
                continue
            before, after = updates.loss_before[row], losses[row]
            if role == "free rider":
                states[row] = state + self._idle_noise(round, client, state)
                if after is not None:
                    losses[row] = before
            else:
                states[row] = 2 * state - states[row]
                losses[row] = _mirrored(before, after)
        return replace(updates, states=states, loss_after=tuple(losses))

    def _idle_noise(self, round: int, client: str, state: State) -> State:
        """Return what a free rider adds to the model it received."""
        if self.free_riding == "unchanged":
            return np.zeros_like(state)
        rng = stream(self.seed, f"free riding of {client}", round)
        spread = 0.01 * float(np.sqrt(np.mean(state**2)))
        return (spread * rng.standard_normal(len(state))).astype(np.float32)


def cast_roles(
    clients: Sequence[str], seed: int, *, noisy: int, free_riders: int, poisoners: int
) -> dict[str, Role]:
    """Give out the roles at random, at most one per client."""
    counts: dict[Role, int] = {"noisy": noisy, "free rider": free_riders, "poisoner": poisoners}
    wanted: list[Role] = []
    for role, count in counts.items():
        wanted += [role] * count
    drawn = stream(seed, "roles").permutation(len(clients))
    return {clients[i]: role for i, role in zip(drawn, wanted, strict=False)}


def _mirrored(before: float | None, after: float | None) -> float | None:
    """Return the loss of a mirrored update: to first order, it rises by what the update gained."""
    if before is None or after is None:
        return None
    return 2 * before - after
