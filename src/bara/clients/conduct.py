"""How simulated clients behave once they have won: some fail, some are late, some cheat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from bara.clients.updates import State, Updates
from bara.randomness import stream

Role = Literal["noisy", "free rider", "poisoner"]


@final
@dataclass(frozen=True)
class Conduct:
    """Everything clients do besides training as told; all of it follows from seed, round and winners.

    Attributes:
        seed: Where it comes from.
        roles: Who is not honest, and how.
        failure_rate: The probability that a winner does not answer.
        late_rate: The probability that its update comes too late.
        free_riding: What a free rider delivers: the model as it got it, or random numbers around
            it.
    """

    seed: int
    roles: dict[str, Role]
    failure_rate: float
    late_rate: float
    free_riding: Literal["unchanged", "random"]

    def absent(self, round: int, clients: Sequence[str]) -> dict[str, str]:
        """Which of these do not deliver this round, and why."""
        drawn = stream(self.seed, "failures", round).random((2, len(clients)))
        void = {
            c: "its update came too late"
            for c, late in zip(clients, drawn[1] < self.late_rate, strict=True)
            if late
        }
        return void | {
            c: "it did not answer"
            for c, out in zip(clients, drawn[0] < self.failure_rate, strict=True)
            if out
        }

    def tamper(self, round: int, clients: Sequence[str], state: State, updates: Updates) -> Updates:
        """The updates as they arrive: a free rider's is no work, a poisoner's points backwards."""
        cheats = [
            (row, client)
            for row, client in enumerate(clients)
            if self.roles.get(client, "noisy") != "noisy"
        ]
        if not cheats:
            return updates
        states, after = updates.states.copy(), list(updates.loss_after)
        for row, client in cheats:
            if self.roles[client] == "free rider":
                states[row] = state + self._idle_noise(round, client, state)
                after[row] = None if after[row] is None else updates.loss_before[row]
            else:
                states[row] = 2 * state - states[row]
                after[row] = (
                    None if after[row] is None else _mirrored(updates.loss_before[row], after[row])
                )
        return replace(updates, states=states, loss_after=tuple(after))

    def _idle_noise(self, round: int, client: str, state: State) -> State:
        if self.free_riding == "unchanged":
            return np.zeros_like(state)
        rng = stream(self.seed, f"free riding of {client}", round)
        spread = 0.01 * float(np.sqrt(np.mean(state**2)))
        return (spread * rng.standard_normal(len(state))).astype(np.float32)


def cast_roles(
    clients: Sequence[str], seed: int, *, noisy: int, free_riders: int, poisoners: int
) -> dict[str, Role]:
    """Give out the roles at random, at most one per client."""
    wanted: list[Role] = ["noisy"] * noisy + ["free rider"] * free_riders + ["poisoner"] * poisoners  # type: ignore[assignment]
    drawn = stream(seed, "roles").permutation(len(clients))
    return {clients[i]: role for i, role in zip(drawn, wanted, strict=False)}


def _mirrored(before: float | None, after: float | None) -> float | None:
    """To first order, going backwards loses what going forwards gains."""
    return None if before is None or after is None else 2 * before - after
