"""The plain loop: what the fast engine computes, as the pseudocode says it.

Slow; the reference for the tests.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bara.simulator._batches import Samples, Turn, orders
from bara.simulator._layout import Layout
from bara.simulator.losses import Loss, loss_of
from bara.simulator.training import Training


def client_update(
    module: nn.Module,
    start: Tensor,
    samples: Samples,
    part: Tensor,
    training: Training,
    turn: tuple[int, int, int],
    task: str = "classes",
) -> Tensor:
    """What one client sends back; `turn` is (seed, round, client)."""
    loss = loss_of(task, training.loss)
    layout = Layout.of(module)
    layout.write(start, module)
    module.train()
    if training.algorithm == "fedsgd":
        _one_step(module, loss, samples, part, training)
    else:
        _epochs(module, loss, samples, part, training, turn)
    return layout.read(module)


def average(states: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The server's weighted mean."""
    total = sum(weights)
    return torch.stack(
        [state * (weight / total) for state, weight in zip(states, weights, strict=True)]
    ).sum(0)


def accuracy_and_loss(
    module: nn.Module, state: Tensor, samples: Samples, part: Tensor, task: str = "classes"
) -> tuple[float, float]:
    """The share of right answers and the mean loss, in one pass."""
    loss = loss_of(task)
    Layout.of(module).write(state, module)
    module.eval()
    x, y = samples.batch(part)
    with torch.no_grad():
        scores = module(x)
    return loss.right(scores, y) / len(y), float(loss.total(scores, y)) / len(y)


def _one_step(
    module: nn.Module, loss: Loss, samples: Samples, part: Tensor, training: Training
) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=training.learning_rate)
    x, y = samples.batch(part)
    (loss.total(module(x), y) / len(y)).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad()


def _epochs(
    module: nn.Module,
    loss: Loss,
    samples: Samples,
    part: Tensor,
    training: Training,
    turn: tuple[int, int, int],
) -> None:
    optimizer = torch.optim.SGD(
        module.parameters(),
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
    )
    received = [parameter.detach().clone() for parameter in module.parameters()]
    for order in orders(part, Turn(*turn), training.local_epochs):
        for batch in torch.split(order, training.batch_size):
            x, y = samples.batch(batch)
            aim = loss.total(module(x), y) / len(y) + training.proximal / 2 * _distance(
                module, received
            )
            optimizer.zero_grad()
            aim.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def _distance(module: nn.Module, received: list[Tensor]) -> Tensor:
    pairs = zip(module.parameters(), received, strict=True)
    return torch.stack([((parameter - old) ** 2).sum() for parameter, old in pairs]).sum()
