"""Local differential privacy: the clipping, the noise, the seeds."""

import numpy as np
import pytest
import torch
from refusals import refused
from scipy import stats
from torch import nn
from torch.nn.functional import cross_entropy

from bara.errors import ConfigError
from bara.protocols import Protection
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.simulator._batches import Samples, Turn
from bara.simulator._layout import Layout
from bara.simulator.losses import CrossEntropy, Own
from bara.simulator.models import build
from bara.simulator.privacy import Privacy, PrivateGradient, bounded_sum

from .conftest import training

SHAPE, CLASSES = (1, 4, 4), 3


def samples(count=40, seed=0, scale=1.0, replaced=None):
    """Random samples, of which the eighth may be replaced by one of this brightness."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy((scale * rng.standard_normal((count, 4, 4, 1))).astype(np.float32))
    if replaced is not None:
        x[7] = replaced
    return Samples(x, torch.from_numpy(rng.integers(0, CLASSES, count)))


def private(level="record", clip=1.0, epsilons=(0.5, 0.5, 2.0), model="mlp"):
    module = build(model, SHAPE, CLASSES, 0)
    return (
        PrivateGradient(module, Privacy(Protection(level, clip), epsilons), CrossEntropy()),
        Layout.of(module).read(module),
        module,
    )


def one_by_one(module, held, part, clip):
    """The plain loop: every sample's own gradient by autograd, clipped, averaged."""
    total = 0
    for i in part.tolist():
        x, y = held.batch(torch.tensor([i]))
        gradients = torch.autograd.grad(cross_entropy(module(x), y), list(module.parameters()))
        flat = torch.cat([g.reshape(-1) for g in gradients])
        total = total + flat * min(1.0, clip / float(flat.abs().sum()))
    return total / len(part)


@pytest.mark.parametrize("model", ["linear", "mlp", "cnn"])
@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_per_sample_clipping_equals_the_plain_loop(model, clip):
    gradient, state, module = private(clip=clip, model=model)
    held, part = samples(), torch.arange(0, 40, 2)
    fast, plain = gradient.clipped(state, held, part), one_by_one(module, held, part, clip)
    torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "relus", [[nn.ReLU(inplace=True)] * 2, [nn.ReLU(inplace=True), nn.ReLU(inplace=True)]]
)
def test_a_chain_of_ones_own_may_use_a_layer_twice_and_write_in_place(relus):
    module = nn.Sequential(
        nn.Flatten(), nn.Linear(16, 6), relus[0], nn.Linear(6, 6), relus[1], nn.Linear(6, CLASSES)
    )
    gradient = PrivateGradient(module, Privacy(Protection("record", 0.5), (1.0,)), CrossEntropy())
    held, part = samples(), torch.arange(40)
    fast = gradient.clipped(Layout.of(module).read(module), held, part)
    torch.testing.assert_close(fast, one_by_one(module, held, part, 0.5), rtol=1e-3, atol=1e-6)


def test_a_loss_of_ones_own_that_mixes_the_samples_does_not_pass_the_bound():
    def mixed(scores, _):
        return (scores.sum(1) * scores.abs().mean()) ** 2

    module = build("linear", SHAPE, CLASSES, 0)
    gradient = PrivateGradient(
        module, Privacy(Protection("record", 1.0), (1.0,)), Own(mixed, CrossEntropy())
    )
    state, before, after = Layout.of(module).read(module), samples(), samples(replaced=1e3)
    moved = gradient.clipped(state, before, torch.arange(40)) - gradient.clipped(
        state, after, torch.arange(40)
    )
    assert 0 < float(moved.abs().sum()) <= 2 / 40 * (1 + 1e-4)


def test_the_papers_cifar_network_has_per_sample_gradients_with_group_norm():
    """And with batch norm it is refused, naming the one to use."""
    rng = np.random.default_rng(0)
    held = Samples(
        torch.from_numpy(rng.random((6, 12, 12, 3), np.float32)), torch.arange(6) % CLASSES
    )
    module = build("cifar-cnn-private", (3, 12, 12), CLASSES, 0)
    privacy = Privacy(Protection("record", 0.5), (1.0,))
    gradient = PrivateGradient(module, privacy, CrossEntropy())
    fast = gradient.clipped(Layout.of(module).read(module), held, torch.arange(6))
    torch.testing.assert_close(
        fast, one_by_one(module, held, torch.arange(6), 0.5), rtol=1e-3, atol=1e-6
    )
    with refused(ConfigError, "training.model", "batch norm", "cifar-cnn-private"):
        PrivateGradient(build("cifar-cnn", (3, 12, 12), CLASSES, 0), privacy, CrossEntropy())


def test_at_client_level_the_mean_gradient_is_clipped_once():
    gradient, state, module = private("client", clip=0.5)
    held, part = samples(), torch.arange(40)
    x, y = held.batch(part)
    flat = torch.cat(
        [
            g.reshape(-1)
            for g in torch.autograd.grad(cross_entropy(module(x), y), list(module.parameters()))
        ]
    )
    torch.testing.assert_close(
        gradient.clipped(state, held, part), flat * 0.5 / flat.abs().sum(), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("level", ["record", "client"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e30])
def test_an_adversarial_batch_does_not_pass_the_bound(level, scale):
    gradient, state, _ = private(level, clip=2.0)
    clipped = gradient.clipped(state, samples(scale=scale), torch.arange(40))
    assert torch.isfinite(clipped).all()
    assert float(clipped.abs().sum()) <= 2.0 * (1 + 1e-4)


def test_replacing_one_sample_moves_the_mean_by_no_more_than_the_noise_is_made_for():
    """Record level: at most 2 L / d in L1 norm, whatever the new sample is."""
    gradient, state, _ = private(clip=1.0)
    before, held = samples(), samples(replaced=1e6)
    part = torch.arange(40)
    moved = gradient.clipped(state, before, part) - gradient.clipped(state, held, part)
    assert 0 < float(moved.abs().sum()) <= 2 / 40 * (1 + 1e-4)


def test_a_gradient_that_is_not_finite_counts_as_nothing():
    rows = torch.tensor([[1.0, 3.0], [float("nan"), 1.0], [float("inf"), 1.0], [0.0, 0.0]])
    assert bounded_sum([rows], 2.0).tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("level", "scale"), [("record", 2 * 0.7 / (40 * 0.5)), ("client", 2 * 0.7 / 0.5)]
)
def test_the_noise_is_laplace_of_the_stated_scale(level, scale):
    gradient, state, _ = private(level, clip=0.7)
    held, part = samples(), torch.arange(40)
    noise = (
        gradient(state, held, part, Turn(0, 1, 0)) - gradient.clipped(state, held, part)
    ).numpy()
    assert len(noise) > 40_000
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.laplace(scale=1.1 * scale).cdf).pvalue < 0.01


def test_noise_depends_on_seed_round_and_client_and_on_nothing_else():
    gradient, state, _ = private()
    held, part = samples(), torch.arange(40)
    turns = [Turn(0, 1, 0), Turn(0, 1, 1), Turn(0, 2, 0), Turn(1, 1, 0)]
    drawn = [gradient(state, held, part, turn) for turn in turns]
    assert all(not torch.equal(drawn[0], other) for other in drawn[1:])
    assert all(
        torch.equal(one, gradient(state, held, part, turn))
        for one, turn in zip(drawn, turns, strict=True)
    )


def test_more_epsilon_means_less_noise():
    gradient, state, _ = private(epsilons=(0.5, 5.0))
    held, part = samples(), torch.arange(40)
    clipped = gradient.clipped(state, held, part)
    noise = [
        float((gradient(state, held, part, Turn(0, 1, client)) - clipped).abs().mean())
        for client in (0, 1)
    ]
    assert noise[0] == pytest.approx(10 * noise[1], rel=0.05)


def test_what_cannot_be_private_is_refused():
    privacy = Privacy(Protection(), (1.0,))
    with refused(ConfigError, "training.model", "batch norm"):
        PrivateGradient(
            nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), privacy, CrossEntropy()
        )
    with refused(ConfigError, "training.algorithm", "'fedsgd'", "privacy", "'fedavg'"):
        training(algorithm="fedavg", privacy=privacy)


PRIVATE = [
    "federation.engine=simulator",
    "mechanism.name=fl-market",
    "training.model=linear",
    "clients.count=6",
    "data.train_samples=300",
    "budget.total=40",
    "budget.max_rounds=5",
    "allocator.name=fixed",
    "allocator.n=3",
]


@pytest.mark.path
@pytest.mark.parametrize("level", ["record", "client"])
def test_a_private_run_is_the_same_again_on_any_number_of_workers(level):
    alone = play_run(
        Config.load(None, [*PRIVATE, f"mechanism.level={level}", "federation.workers=1"])
    )
    again = play_run(
        Config.load(None, [*PRIVATE, f"mechanism.level={level}", "federation.workers=2"])
    )
    other = play_run(
        Config.load(None, [*PRIVATE, f"mechanism.level={level}", "federation.workers=1", "seed=1"])
    )
    assert alone == again
    assert alone.history != other.history


def test_losses_on_private_data_are_not_told():
    with refused(ConfigError, "training.evidence", "false", "private data"):
        play_run(Config.load(None, [*PRIVATE, "training.evidence=true"]))


def test_a_run_tells_the_privacy_each_client_has_spent_beside_what_it_was_paid():
    result = play_run(Config.load(None, [*PRIVATE, "federation.workers=1"]))
    assert set(result.privacy) == set(result.payments)
    for spent in result.privacy.values():
        assert 0 < spent["epsilon"] <= spent["epsilon_sum"]
        assert 1 <= spent["rounds"] <= 5
    assert sum(spent["rounds"] for spent in result.privacy.values()) == sum(
        e["n"] for e in result.history
    )
