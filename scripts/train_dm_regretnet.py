"""Trains FL-Market's learned auction (`fl-market:auction=dm-regretnet`) and writes its weights.

python scripts/train_dm_regretnet.py [FILE.npz] [ROUNDS]

After DM-RegretNet (Zheng et al. 2022): maximise the privacy that a budget buys, with an augmented
Lagrangian on regret, which is what a client gains by its best lie. The hard choices of the auction
(who is in, which n is affordable) are sigmoids while it learns. Needs torch (`pip install
'.[sim]'`) and takes a few minutes of one core.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bara.mechanisms.dm_regretnet import FEATURES, WEIGHTS

CLIENTS, BATCH, LIES = 20, 12, 10
SOFT = 0.05
"""How soft the choices are: log unit prices, and shares of the budget."""


def networks() -> dict[str, nn.Sequential]:
    """One for the order of the clients, one for the price.

    Both start at the critical-payment auction.
    """
    made = {}
    for name, inputs in FEATURES.items():
        made[name] = nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, 1))
        nn.init.zeros_(made[name][2].weight)
        nn.init.zeros_(made[name][2].bias)
    nn.init.constant_(made["price"][2].bias, -3.0)
    return made


def market(rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Costs, privacy budgets and a round's budget, as FL-Market's experiments draw them."""
    eps = 0.1 + 0.9 * torch.rand(BATCH, CLIENTS, generator=rng)
    kinds = torch.stack([eps**2, 2 * eps.sqrt(), 2 * eps, eps.expm1()])
    kind = torch.randint(4, (1, BATCH, CLIENTS), generator=rng)
    costs = (0.5 + torch.rand(BATCH, CLIENTS, generator=rng)) * kinds.gather(0, kind)[0]
    return costs, eps, costs.sum(1) * (0.05 + 0.95 * torch.rand(BATCH, generator=rng))


def auction(
    nets: dict[str, nn.Sequential], asks: Tensor, quality: Tensor, budget: Tensor
) -> tuple[Tensor, Tensor]:
    """The probability that each client wins, and what it is paid if so, softened.

    Any number of leading dimensions.
    """
    logs = quality.log()
    shift = nets["order"]((logs - logs.mean(-1, keepdim=True))[..., None])[..., 0]
    score = (asks / quality).log() + shift
    ranked = score.sort(-1).values
    n = torch.arange(1, ranked.shape[-1])
    loser, middle = ranked[..., 1:], (ranked[..., 1:] + ranked[..., :-1]) / 2
    mean = ranked.cumsum(-1)[..., :-1] / n
    seen = torch.stack([(n / len(n)).expand_as(loser), loser - mean, loser - ranked[..., :-1]], -1)
    unit = (loser - nn.functional.softplus(nets["price"](seen)[..., 0])).cummax(-1).values
    inside = torch.sigmoid((middle[..., None] - score[..., None, :]) / SOFT)
    paid = torch.maximum(
        asks[..., None, :], (unit[..., None] - shift[..., None, :]).exp() * quality[..., None, :]
    )
    spent = (inside * paid).sum(-1)
    affordable = torch.sigmoid((budget[..., None] - spent) / (SOFT * budget[..., None]))
    chosen = affordable - nn.functional.pad(affordable[..., 1:], (0, 1))
    wins = chosen[..., None] * inside
    return wins.sum(-2), (wins * paid).sum(-2)


def regret(
    nets: dict[str, nn.Sequential],
    costs: Tensor,
    quality: Tensor,
    budget: Tensor,
    rng: torch.Generator,
) -> Tensor:
    """What each client gains by the best of some lies, as a share of the mean cost."""
    wins, paid = auction(nets, costs, quality, budget)
    honest = paid - wins * costs
    factors = (torch.rand(BATCH, CLIENTS, LIES, generator=rng) * 1.2 - 0.3).exp()
    with torch.no_grad():
        tried = torch.stack(
            [_gain(nets, costs, quality, budget, factors[..., k]) for k in range(LIES)], -1
        )
        best = factors.gather(-1, tried.argmax(-1, keepdim=True))[..., 0]
    gain = _gain(nets, costs, quality, budget, best)
    return (gain - honest).clamp(min=0) / costs.mean()


def _gain(
    nets: dict[str, nn.Sequential], costs: Tensor, quality: Tensor, budget: Tensor, factor: Tensor
) -> Tensor:
    """Each client's profit if it alone multiplies its price by its factor."""
    lies = costs[:, None, :].repeat(1, CLIENTS, 1)
    own = torch.arange(CLIENTS)
    lies[:, own, own] = costs * factor
    wins, paid = auction(
        nets, lies, quality[:, None, :].expand_as(lies), budget[:, None].expand(-1, CLIENTS)
    )
    return (paid - wins * costs[:, None, :])[:, own, own]


def train(rounds: int) -> dict[str, np.ndarray]:
    """The weights after so many steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng, nets = torch.Generator().manual_seed(0), networks()
    optimizer = torch.optim.Adam([p for net in nets.values() for p in net.parameters()], lr=3e-3)
    multiplier, rho = 5.0, 20.0
    for step in range(rounds):
        costs, quality, budget = market(rng)
        wins, _ = auction(nets, costs, quality, budget)
        bought = ((wins * quality).sum(1) / quality.sum(1)).mean()
        lost = regret(nets, costs, quality, budget, rng).mean()
        optimizer.zero_grad()
        (-bought + multiplier * lost + rho / 2 * lost**2).backward()
        optimizer.step()
        if step % 50 == 49:
            multiplier += rho * lost.item()
            sys.stdout.write(
                f"{step + 1}: buys {bought.item():.3f} of all privacy, regret {lost.item():.4f} "
                f"of a cost\n"
            )
    return {
        f"{name}_{part}": value.detach().numpy().astype(np.float32)
        for name, net in nets.items()
        for part, value in zip(("w1", "b1", "w2", "b2"), net.parameters(), strict=True)
    }


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else WEIGHTS
    np.savez(target, **train(int(sys.argv[2]) if len(sys.argv) > 2 else 1500))
