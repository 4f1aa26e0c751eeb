"""Other papers' server steps, recruitment and pacing, to compare with; only studies import them.

A server step is named as the memory of a run, with its options:

    bara compare --set training.memory=off,extrapolated,bara.studies.rivals:fed_adam:rate=0.03

Notation:
    x       the model's parameters; a round makes x + step
    S, N    the round's winners; the number of clients
    D_i     the update of winner i: what its training changed x by
    D       the mean of the winners' updates, weighted by data size
    y_i     the last update of client i, zero until it has delivered one

With one gradient a round (FedSGD), FedVARP is SCAFFOLD too, whose control variate c_i is then i's
last gradient: both step by the mean of D_i - y_i over S plus the mean of y_i over all clients. With
local steps SCAFFOLD corrects every one of them inside the client, which no server step can. FedProx
changes local steps alone: its pull towards x is zero at x, so that with one gradient it is FedAvg.
DivFL is missing: it selects by the clients' gradients, and a mechanism here sees no update.
"""

# ruff: noqa: ARG002 - the protocols' signatures

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from bara.mechanisms import CRITICAL_PAYMENTS, critical_menu
from bara.protocols import LearnsNothing, Requirements
from bara.randomness import stream
from bara.records import Bids, Menu, Offer, Purse, RoundRecord
from bara.server.checkpoints import Arrays, Checkpoint
from bara.server.memory import Fresh, Vector

_PIECE = "rule"


class Rule(Protocol):
    """A server step; its state is vectors and vectors by client, replaced and never changed."""

    def step(self, fresh: Mapping[str, Fresh]) -> Vector:
        """Return the step that a round's updates make."""


@final
class RuleMemory:
    """A rule in the place of a run's memory; every step counts, and nothing is taken back.

    Args:
        rule: The rule.
    """

    size = 1.0

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def __copy__(self) -> "RuleMemory":
        """Return a memory whose rule may be told a round without this one's."""
        return RuleMemory(copy(self._rule))

    @property
    def clients(self) -> Collection[str]:
        """Nobody: no update is shown to others."""
        return ()

    def tell(self, round: int, fresh: Mapping[str, Fresh]) -> Vector:
        """Return the step that the rule makes of a round's updates."""
        return self._rule.step(fresh)

    def judge(self, loss: float) -> bool:
        """Accept every step."""
        return True

    def step_of(self, clients: Collection[str]) -> Vector:
        """Refuse: there are no clients to ask about."""
        raise NotImplementedError

    def remembered(self, round: int) -> Iterator[tuple[str, Fresh]]:
        """Yield nothing."""
        yield from ()

    def ages(self, round: int) -> dict[int, int]:
        """Return nothing."""
        return {}

    def forget(self, client: str, round: int) -> None:
        """Drop a client's vectors."""
        for name, value in vars(self._rule).items():
            if isinstance(value, dict):
                rest = {other: vector for other, vector in value.items() if other != client}
                setattr(self._rule, name, rest)

    def forget_outdated(
        self,
        round: int,
        absent: Collection[str] | None,
        after: int,
    ) -> tuple[str, ...]:
        """Drop nothing: the papers know no clients that leave."""
        return ()

    def pieces(self) -> dict[str, Callable[[], Arrays]]:
        """Return the rule's vectors, those of a client under `name/client`."""
        return {_PIECE: self._arrays}

    def _arrays(self) -> dict[str, Vector]:
        arrays = {}
        for name, value in vars(self._rule).items():
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif isinstance(value, dict):
                for client, vector in value.items():
                    arrays[f"{name}/{client}"] = vector
        return arrays

    def state(self) -> dict[str, Any]:
        """Return nothing: all state is vectors."""
        return {}

    def restore(self, extra: Mapping[str, Any], pieces: Mapping[str, Checkpoint]) -> None:
        """Restore the rule's vectors."""
        if _PIECE not in pieces:
            return
        by_client: dict[str, dict[str, Vector]] = {}
        for key, vector in pieces[_PIECE].arrays.items():
            name, _, client = key.partition("/")
            if client:
                by_client.setdefault(name, {})[client] = vector
            else:
                setattr(self._rule, name, vector)
        for name, vectors in by_client.items():
            setattr(self._rule, name, vectors)


def mean_update(fresh: Mapping[str, Fresh]) -> Vector:
    """Return D, the mean of a round's updates by their weights."""
    total = sum(one.weight for one in fresh.values())
    mean = np.zeros_like(next(iter(fresh.values())).update)
    for client in sorted(fresh):
        mean += fresh[client].update * np.float32(fresh[client].weight / total)
    return mean


@final
class Momentum:
    """FedAvgM (Hsu et al. 2019): v <- beta v + D; x <- x + rate v."""

    def __init__(self, beta: float, rate: float) -> None:
        self._beta = beta
        self._rate = rate
        self.v: Vector | float = 0.0

    def step(self, fresh: Mapping[str, Fresh]) -> Vector:
        """Return rate v."""
        self.v = np.asarray(self._beta * self.v + mean_update(fresh), np.float32)
        return np.asarray(self._rate * self.v, np.float32)


@final
class Adaptive:
    """FedAdam and FedYogi (Reddi et al. 2021, Algorithm 2).

    m <- beta_1 m + (1 - beta_1) D, and for FedAdam v <- beta_2 v + (1 - beta_2) D^2, for FedYogi
    v <- v - (1 - beta_2) D^2 sign(v - D^2), from v = tau^2; x <- x + rate m / (sqrt(v) + tau).
    """

    def __init__(self, rate: float, tau: float, *, yogi: bool) -> None:
        self._rate = rate
        self._tau = tau
        self._yogi = yogi
        self.m: Vector | float = 0.0
        self.v: Vector | float = tau**2

    def step(self, fresh: Mapping[str, Fresh]) -> Vector:
        """Return rate m / (sqrt(v) + tau)."""
        D = mean_update(fresh)
        square = np.square(D)
        self.m = np.asarray(0.9 * self.m + 0.1 * D, np.float32)
        if self._yogi:
            v = self.v - 0.01 * square * np.sign(self.v - square)
        else:
            v = 0.99 * self.v + 0.01 * square
        self.v = np.asarray(v, np.float32)
        return np.asarray(self._rate * self.m / (np.sqrt(self.v) + self._tau), np.float32)


@final
class Extrapolation:
    """FedExP (Jhunjhunwala et al. 2023): x <- x + s D over the winners.

    s = max(1, (mean |D_i|^2) / (2 (|D|^2 + epsilon))), the means not weighted.
    """

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon

    def step(self, fresh: Mapping[str, Fresh]) -> Vector:
        """Return s D."""
        updates = [fresh[client].update for client in sorted(fresh)]
        D = np.mean(updates, axis=0)
        squares = [float(np.sum(np.square(update, dtype=np.float64))) for update in updates]
        square = float(np.sum(np.square(D, dtype=np.float64)))
        s = max(1.0, float(np.mean(squares)) / (2 * (square + self._epsilon)))
        return np.asarray(s * D, np.float32)


@final
class Stale:
    """MIFA, FedVARP and FedStale: a mix of the winners' updates and everybody's last ones.

    x <- x + rate (1 - beta) (mean of D_i over S)
           + rate beta (mean of D_i - y_i over S + mean of y_i over all N clients)

    beta = 1 is FedVARP (Jhunjhunwala et al. 2022), beta between is FedStale (Rodio and Neglia
    2024). MIFA (Gu et al. 2021) steps by the mean of y_i over all N clients, this round's included.
    """

    def __init__(self, clients: int, beta: float, *, mifa: bool = False) -> None:
        self._clients = clients
        self._beta = beta
        self._mifa = mifa
        self.y: dict[str, Vector] = {}

    def step(self, fresh: Mapping[str, Fresh]) -> Vector:
        """Return the step, and remember the winners' updates."""
        before = self.y
        self.y = {**before, **{client: one.update.copy() for client, one in fresh.items()}}
        if self._mifa:
            return np.asarray(_sum(self.y) / self._clients, np.float32)
        D = _sum({client: one.update for client, one in fresh.items()}) / len(fresh)
        known = {client: before[client] for client in fresh if client in before}
        corrected = D
        if before:
            corrected = corrected + _sum(before) / self._clients
        if known:
            corrected = corrected - _sum(known) / len(fresh)
        return np.asarray((1 - self._beta) * D + self._beta * corrected, np.float32)


def _sum(vectors: Mapping[str, Vector]) -> NDArray[np.float64]:
    """Return the sum of vectors, at least one, in the order of their clients."""
    total = np.zeros(next(iter(vectors.values())).shape)
    for client in sorted(vectors):
        total += vectors[client]
    return total


def momentum(beta: float = 0.9, rate: float = 1.0) -> RuleMemory:
    """Return server momentum."""
    return RuleMemory(Momentum(beta, rate))


def fed_adam(rate: float = 0.01, tau: float = 1e-3) -> RuleMemory:
    """Return FedAdam."""
    return RuleMemory(Adaptive(rate, tau, yogi=False))


def fed_yogi(rate: float = 0.01, tau: float = 1e-3) -> RuleMemory:
    """Return FedYogi."""
    return RuleMemory(Adaptive(rate, tau, yogi=True))


def fed_exp(epsilon: float = 1e-3) -> RuleMemory:
    """Return FedExP."""
    return RuleMemory(Extrapolation(epsilon))


def mifa(clients: int) -> RuleMemory:
    """Return MIFA."""
    return RuleMemory(Stale(clients, beta=1.0, mifa=True))


def fed_varp(clients: int) -> RuleMemory:
    """Return FedVARP, which is SCAFFOLD with one gradient a round."""
    return RuleMemory(Stale(clients, beta=1.0))


def fed_stale(clients: int, beta: float = 0.5) -> RuleMemory:
    """Return FedStale."""
    return RuleMemory(Stale(clients, beta))


# --- recruitment ---------------------------------------------------------------------------------


@final
class RandomCandidates(LearnsNothing):
    """The cheapest clients among a part of them that is drawn anew in each round.

    Args:
        share: The part of the clients that are drawn.
        seed: The seed of the draws.
    """

    claims = CRITICAL_PAYMENTS

    def __init__(self, share: float = 0.5, seed: int = 0) -> None:
        self._share = share
        self._seed = seed
        self._round = 0

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the candidates of this round."""
        drawn = _candidates(bids, self._share, self._seed, self._round + 1)
        return critical_menu(bids, None, admitted=drawn)

    def tell(self, record: RoundRecord) -> None:
        """Note which round was settled."""
        self._round = record.round


@final
class LastLosses:
    """Oort and power-of-choice per price: quality from the loss a client last trained from.

    Oort (Lai et al. 2021) prefers a large loss on much data, and who was long away:
    q_i = d_i (L_i + sqrt(0.1 log t / t_i)), where t_i is the round i was last heard in.
    Power-of-choice (Cho et al. 2022, with last known losses) draws candidates and takes those of
    the largest loss: q_i = L_i. Whoever was never heard counts as the largest loss and the most
    data known.

    Args:
        oort: Oort; otherwise power-of-choice.
        share: The part of the clients that are candidates in a round, for power-of-choice.
        seed: The seed of the candidates.
    """

    claims = CRITICAL_PAYMENTS
    requirements = Requirements(evidence=True)

    def __init__(self, *, oort: bool, share: float = 0.5, seed: int = 0) -> None:
        self._oort = oort
        self._share = share
        self._seed = seed
        self._round = 0
        self._losses: dict[str, float] = {}
        self._samples: dict[str, float] = {}
        self._heard: dict[str, int] = {}

    def menu(self, bids: Bids) -> Menu:
        """Return the critical-payment menu over losses."""
        largest = max(self._losses.values(), default=1.0)
        most = max(self._samples.values(), default=1.0)
        now = self._round + 1
        quality = []
        for client in bids.clients:
            loss = self._losses.get(client, largest)
            if self._oort:
                since = self._heard.get(client, 1)
                loss += float(np.sqrt(0.1 * np.log(now) / since))
                loss *= self._samples.get(client, most)
            quality.append(max(loss, 1e-9))
        admitted = None
        if not self._oort:
            admitted = _candidates(bids, self._share, self._seed, now)
        return critical_menu(bids, np.array(quality), admitted=admitted)

    def tell(self, record: RoundRecord) -> None:
        """Learn the losses that the winners trained from."""
        self._round = record.round
        for client, evidence in record.delivery.delivered.items():
            self._heard[client] = record.round
            if evidence.loss_before is not None:
                self._losses[client] = evidence.loss_before
            if evidence.samples:
                self._samples[client] = float(evidence.samples)


def oort() -> LastLosses:
    """Return Oort's utility per price."""
    return LastLosses(oort=True)


def power_of_choice(share: float = 0.5, seed: int = 0) -> LastLosses:
    """Return power-of-choice per price."""
    return LastLosses(oort=False, share=share, seed=seed)


def _candidates(bids: Bids, share: float, seed: int, round: int) -> NDArray[np.bool_]:
    """Return True for each client that is drawn in a round, at least two."""
    count = max(math.ceil(share * len(bids)), min(2, len(bids)))
    drawn = stream(seed, "candidates", round).permutation(len(bids))[:count]
    admitted = np.zeros(len(bids), bool)
    admitted[drawn] = True
    return admitted


# --- pacing --------------------------------------------------------------------------------------


@final
class VirtualQueue:
    """Pacing by a virtual queue (drift plus penalty, Neely 2010): what is overspent waits in it.

    With r the even share of a round, in which Q is measured: recruits the most clients with
    V log(1 + n) / log(1 + N) - Q B(n) / r >= 0; then Q <- max(Q + spent / r - 1, 0). An empty queue
    stops nobody.

    Args:
        clients: N, the number of clients.
        weight: V, how much recruiting weighs against the queue.
    """

    def __init__(self, clients: int, weight: float = 10.0) -> None:
        self._clients = clients
        self._weight = weight
        self._queue = 0.0

    def ask(self, purse: Purse) -> Offer:
        """Offer up to r V n / (N Q) for n clients."""
        if not purse.rounds_left:
            return Offer.stop()
        if not self._queue:
            return Offer.spend(purse.left)
        share = purse.total / purse.max_rounds
        most = share * self._weight / self._queue
        many = np.arange(1, self._clients + 1)
        caps = most * np.log1p(many) / math.log1p(self._clients)
        return Offer.caps(np.minimum(caps, purse.left).astype(np.int64))

    def tell(self, record: RoundRecord) -> None:
        """Add what the round cost to the queue; take a round's share from it."""
        if record.round == 0:
            return
        purse = record.awarded.purse
        share = purse.total / purse.max_rounds
        self._queue = max(self._queue + record.awarded.award.cost / share - 1, 0.0)
