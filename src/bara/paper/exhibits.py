"""The paper's figures and tables (Yang et al. 2023) as grids of runs, each with its claim."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bara.errors import ConfigError, UnknownNameError
from bara.paper.regimes import REGIMES
from bara.runs.config import Config, read_toml, set_key, shipped
from bara.studies.grid import Cell, cells
from bara.text import nearest

PAPERS = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}
"""The paper's datasets, each with its title in figures."""

DATASETS = {**PAPERS, "digits": "digits"}
"""The datasets with presets; digits is the substitute where no data has been fetched."""

BORDER = {
    "late": "digits, a late curve",
    "early": "digits, an early curve that swings, half the money",
}
"""Real training on either side of the map's border, each with its title in tables."""

TITLES = {**DATASETS, **BORDER}
"""The titles in tables and figures of everything with accuracies."""

NETWORKS = {"mnist": "mlp", "fashion-mnist": "cnn", "cifar10": "cifar-cnn", "cifar100": "cifar-cnn"}
"""The paper's model for each dataset.

Under privacy it is `cifar-cnn-private`, with group norm in place of batch norm.
"""

BARA = {
    "BARA (letter)": "bara:preset=paper",
    "BARA (intended)": "bara:preset=intended",
    "BARA (ours)": "bara",
}
"""The paper's algorithm in three readings.

They are the letter of the text, what its figures were probably made with, and our default.
"""

BASELINES = {"EA": "even", "MIA": "increasing", "MDA": "decreasing", "RA": "random"}
OURS = {"EA, carry-over": "even:carry_over=true", "finale": "finale", "planner": "planner"}
"""Allocators beyond the paper."""

UNBOUND = ("budget.max_rounds=1000",)
"""The changes under which money ends before the rounds do, unless n is 1 or 2 throughout."""

HORIZON = 200
"""T_max in every preset."""

READINGS = {
    **BARA,
    "letter, T(n) capped": "bara:preset=paper:cap_horizon=true",
    "letter, per cent": "bara:preset=paper:unit=100",
    "intended, fractions": "bara:preset=intended:unit=1",
    "intended, n as it is": "bara:preset=intended:normalise=false",
    "intended, not clipped": "bara:preset=intended:clip=false",
    "intended, piecewise": "bara:preset=intended:estimator=piecewise",
    "intended, mean increment": "bara:preset=intended:estimator=mean",
    "intended, column vector": "bara:preset=intended:vector=column",
    "intended, increments bounded": "bara:preset=intended:estimator=bounded",
    "intended, last three increments": "bara:preset=intended:estimator=last",
    "intended, prior of half": "bara:preset=intended:prior_mean=0.5",
    "intended, prior ten times as wide": "bara:preset=intended:amplitude=10",
    "intended, standardised": "bara:preset=intended:standardise=true",
    "ours, standardised": "bara:standardise=true",
    "ours, n as it is": "bara:normalise=false",
    "ours, re-estimated": "bara:reestimate=true",
    "ours, T(n) not capped": "bara:cap_horizon=false",
    "ours, learning curve": "bara:estimator=curve",
    "ours, learning curve, what is left": "bara:estimator=curve:horizon=left",
    "EA": "even",
    "EA, carry-over": "even:carry_over=true",
}
"""Readings of the open points in the paper's text, changed one at a time."""

_WITH_SHARES = ("even", "increasing", "decreasing")
"""The allocators whose shares have a T_max of their own."""

UNLIMITED = 1000.0
"""The multiple of the budget for a search of n* without a budget: more than any n can spend."""


@dataclass(frozen=True)
class Exhibit:
    """A figure or table.

    Attributes:
        name: The name on the command line.
        title: The heading.
        claim: The paper's claim.
        family: The family of presets to run: `figures`, `table1`, `table2`, `regimes` or `border`.
        methods: The allocators, by their names in the figure.
        ours: The names of those methods that are not the paper's.
        dataset: The only dataset that the exhibit shows; None to show all.
        places: The settings to show in place of datasets.
        search: The allocator with which every n is also tried alone, to find the best n; empty for
            no search.
        repeats: A factor on the number of seeds, for exhibits whose runs are cheap.
        reported: The paper's accuracies for each dataset, alone and with BARA, in per cent.
    """

    name: str
    title: str
    claim: str
    family: str = "figures"
    methods: Mapping[str, str] = field(default_factory=lambda: {**BARA, **BASELINES, **OURS})
    ours: frozenset[str] = frozenset(OURS)
    dataset: str | None = None
    places: tuple[str, ...] = ()
    search: str = ""
    repeats: int = 1
    reported: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def unbound(self) -> Self:
        """Return the exhibit with the deadline in the shares of EA, MIA and MDA alone.

        EA with longer horizons is added as a control.
        """
        methods: dict[str, str] = {}
        for method, allocator in self.methods.items():
            has_shares = allocator.split(":")[0] in _WITH_SHARES
            methods[method] = f"{allocator}:horizon={HORIZON}" if has_shares else allocator
        ours = self.ours
        if "EA" in methods:
            for longer in (300, 400):
                name = f"EA, {longer} rounds"
                methods[name] = f"even:horizon={longer}"
                ours |= {name}
        return replace(self, methods=methods, ours=ours)

    def datasets(self, wanted: Sequence[str]) -> list[str]:
        """Return the wanted datasets that the exhibit shows; the first if its own is not wanted."""
        if self.places:
            return list(self.places)
        if self.dataset is None:
            return list(wanted)
        return [self.dataset if self.dataset in wanted else wanted[0]]


def _table(name: str, mechanism: str, how: str, *reported: tuple[float, float]) -> Exhibit:
    """Return the table of a mechanism, alone and with budget allocation.

    Args:
        name: The name of the exhibit and of its presets.
        mechanism: The mechanism's name in the heading.
        how: How the mechanism is run, for the heading.
        *reported: The paper's accuracies for each of its datasets, alone and with BARA.
    """
    return Exhibit(
        name,
        f"{mechanism}{how}, alone and with budget allocation",
        f"BARA lifts the final accuracy of {mechanism} on every dataset.",
        family=name,
        methods={"EA": "even", **BARA, "planner": "planner"},
        reported=dict(zip(PAPERS, reported, strict=True)),
    )


_EXHIBITS = (
    Exhibit(
        "fig1",
        "Final accuracy of budget allocations",
        "BARA significantly outperforms the other baselines in final model accuracy.",
    ),
    Exhibit(
        "fig2",
        "Clients per round chosen by BARA",
        "After T_0 = 40 rounds of exploration the number of clients quickly converges "
        "to a stable value.",
        methods=BARA,
    ),
    Exhibit(
        "fig3",
        "Regret per round of BARA",
        "Reg_t / t converges fast for t > T_0 and approaches 0: BARA finds n*.",
        methods=BARA,
        search="fixed",
    ),
    Exhibit(
        "fig4",
        "Accuracy over rounds",
        "MIA is the worst at the beginning (t < 50), MDA cannot improve later (t > 150); "
        "BARA ends best.",
        dataset="fashion-mnist",
    ),
    _table("table1", "FAIR", "", (84.88, 87.64), (74.90, 77.73), (54.59, 57.57), (29.27, 29.66)),
    _table(
        "table2",
        "FL-Market",
        " (record-level privacy, critical auction)",
        *((57.51, 62.31), (58.22, 64.16), (33.18, 36.01), (20.79, 21.41)),
    ),
    Exhibit(
        "ablation",
        "Readings of Algorithm 1",
        "Not in the paper: what each open point of its text is worth.",
        methods=READINGS,
        ours=frozenset(
            {
                "EA",
                "EA, carry-over",
                "ours, learning curve",
                "ours, learning curve, what is left",
            }
        ),
        dataset="mnist",
    ),
    Exhibit(
        "regimes",
        "Where BARA beats even allocation",
        "Not in the paper: for which federations its claim can hold, and for which it does.",
        family="regimes",
        methods={"EA": "even", **BARA, "planner": "planner"},
        places=tuple(REGIMES),
        search="explored",
        repeats=4,
    ),
    Exhibit(
        "border",
        "The map's border on real data",
        "Not in the paper: whether the map holds where clients really train.",
        family="border",
        methods={"EA": "even", **BARA, "planner": "planner"},
        places=tuple(BORDER),
        search="explored",
    ),
)

EXHIBITS = {one.name: one for one in _EXHIBITS}
"""Every figure and table by name."""


def exhibits(names: Iterable[str]) -> list[Exhibit]:
    """Return the exhibits of the given names, each once; all of them for `all` or no name."""
    wanted = list(dict.fromkeys(names)) or ["all"]
    if "all" in wanted:
        return list(EXHIBITS.values())
    for name in wanted:
        if name not in EXHIBITS:
            raise UnknownNameError(
                f"the paper has no figure or table {name!r}; {nearest(name, ['all', *EXHIBITS])}"
            )
    return [EXHIBITS[name] for name in wanted]


def known_datasets(names: Sequence[str]) -> list[str]:
    """Return the names of datasets unchanged; refuse a dataset without a preset."""
    for name in names:
        if name not in DATASETS:
            raise UnknownNameError(
                f"no preset uses the dataset {name!r}; {nearest(name, list(DATASETS))}"
            )
    return list(names)


@dataclass(frozen=True)
class Scale:
    """The size at which the paper's experiments are run.

    Attributes:
        samples: A factor on the presets' samples; None for the paper's own size: all samples, and
            its networks.
        seeds: The number of repetitions.
        searched: The number of n that the search for the best one tries.
        unlimited: True to search for the n* of Figure 3 without the budget, each n for T_max
            rounds: "the constraint of the reward budget is not considered for searching n*";
            False to give each n one whole budget.
        changes: Single keys to change in every run (`budget.total=600`).
    """

    samples: float | None = 1.0
    seeds: int = 3
    searched: int = 7
    unlimited: bool = False
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a size of nothing."""
        if self.samples is not None and not 0 < self.samples < math.inf:
            raise ConfigError(
                f"--scale must be a finite number above 0, or full, got {self.samples}"
            )
        if self.searched < 2:
            raise ConfigError(
                "the search for the best n must try at least 2 numbers of clients, "
                f"got {self.searched}"
            )

    @staticmethod
    def factor(text: str) -> float | None:
        """Parse `samples` from the command line: a number, or `full`."""
        if text == "full":
            return None
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"--scale must be a number, or full, got {text!r}") from None

    def config(self, family: str, dataset: str) -> Config:
        """Return a preset at this size; a regime takes only changes of tables that it has."""
        if dataset in REGIMES:
            tree = REGIMES[dataset].tree()
            for change in self.changes:
                if change.startswith(("budget.", "clients.", "federation.")):
                    set_key(tree, change)
            return _complete(tree).with_budget(REGIMES[dataset].money)
        name = f"{family}-{dataset}"
        presets = shipped("presets")
        if name not in presets:
            raise UnknownNameError(f"no preset is named {name!r}; {nearest(name, list(presets))}")
        tree = read_toml(presets[name])
        self._resize(tree, family, dataset)
        for change in self.changes:
            set_key(tree, change)
        return _complete(tree)

    def _resize(self, tree: dict[str, Any], family: str, dataset: str) -> None:
        """Set the samples of a preset, and at the paper's own size its network."""
        for key in ("train_samples", "evaluation_samples"):
            if key in tree["data"]:
                size = tree["data"].pop(key)
                if self.samples is not None:
                    tree["data"][key] = max(round(size * self.samples), 1)
        if self.samples is None and dataset == "digits":
            raise ConfigError(
                "--scale full is the paper's own size, and digits is not in the paper"
            )
        if self.samples is None and dataset in NETWORKS:
            model = NETWORKS[dataset]
            if family == "table2" and model == "cifar-cnn":
                model = "cifar-cnn-private"
            tree["training"]["model"] = model

    def numbers(self, clients: int) -> list[int]:
        """Return the n that the search tries, spread evenly from 1 to N - 1."""
        most = max(clients - 1, 1)
        steps = self.searched - 1
        return sorted({round(1 + k * (most - 1) / steps) for k in range(self.searched)})

    def cells(self, exhibit: Exhibit, datasets: Sequence[str]) -> list[Cell]:
        """Return the runs of an exhibit."""
        grid: list[Cell] = []
        for dataset in exhibit.datasets(datasets):
            config = self.config(exhibit.family, dataset)
            setting = f"{exhibit.family}-{dataset}"
            seeds = exhibit.repeats * self.seeds
            numbers = self.numbers(config.clients.count) if exhibit.search else []
            alone = [f"{exhibit.search}:n={n}" for n in numbers]
            grid += cells(config, [*exhibit.methods.values(), *alone], seeds, setting)
            if alone and self.unlimited and not exhibit.places:
                grid += cells(config, alone, seeds, setting, shares=[UNLIMITED])
        return grid


def union(grids: Iterable[Sequence[Cell]]) -> list[Cell]:
    """Return every run once, however many exhibits show it."""
    runs: dict[str, Cell] = {}
    for grid in grids:
        for cell in grid:
            runs[cell.key] = cell
    return list(runs.values())


def _complete(tree: dict[str, Any]) -> Config:
    """Complete a preset as the paper has it: its server remembers nothing, unless that is set."""
    tree.setdefault("training", {}).setdefault("memory", "off")
    return Config.complete(tree)
