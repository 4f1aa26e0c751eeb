"""The tables of a configuration: every key, its default and what it means."""

from importlib.util import find_spec
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from bara.datasets import parse as parse_partition
from bara.errors import ConfigError, InvalidMoneyError
from bara.federations.bidding import Strategy
from bara.federations.costs import MIXED, Distribution, valuations
from bara.federations.memory import Variant
from bara.records import money


class Section(BaseModel):
    """A table of the configuration whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Pydantic would read true as 1."""
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation is not bool:
            raise ConfigError("true and false are no numbers")
        return value


class Named(BaseModel):
    """A plug-in by name, with options of its own."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """What the plug-in itself is configured with."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """As one writes it on the command line: `even:carry_over=true`."""
        return ":".join([self.name, *(f"{key}={_toml_value(value)}" for key, value in self.options.items())])


class BudgetSection(Section):
    """The money and the deadline."""

    total: float | str = Field(1500.0, description="the whole reward budget, in its own unit")
    max_rounds: int = Field(200, ge=1, description="the deadline: the last round that may be played")


class ClientsSection(Section):
    """Who takes part, what it costs them, how they bid and behave."""

    count: int = Field(20, ge=1, le=10_000_000, description="N, how many clients there are")
    bids: str = Field("uniform(0.5, 1.5)", description="where each round's costs come from")
    epsilon: str | None = Field(
        None, description="each client's privacy budget a round; uniform(0.1, 1) if the mechanism trades privacy"
    )
    valuation: str = Field(
        MIXED, description="what privacy costs: mixed, square, root, linear, exponential, or an import path"
    )
    cost_by: Literal["none", "samples", "compute"] = Field(
        "none", description="scale a client's costs by its data size, or by a speed of its own drawn once"
    )
    drift: float = Field(0.0, gt=-1, description="by what part costs grow each round")
    strategic: int = Field(0, ge=0, description="how many clients bid strategically instead of their cost")
    strategy: str = Field("overbid(0.2)", description="what these do: overbid(0.2) or learner(0.05)")
    absence_rate: float = Field(0.0, ge=0, lt=1, description="the part of the time a client is away and does not bid")
    failure_rate: float = Field(0.0, ge=0, le=1, description="the probability that a winner does not deliver")
    late_rate: float = Field(0.0, ge=0, le=1, description="the probability that a winner delivers too late")
    partition: str = Field("shards(2)", description="shards(k), iid, dirichlet(alpha) or quantity(skew)")
    noisy: int = Field(0, ge=0, description="how many clients hold wrong labels")
    label_noise: float = Field(0.5, ge=0, le=1, description="which part of their labels is wrong")
    free_riders: int = Field(0, ge=0, description="how many clients deliver without training")
    free_riding: Literal["unchanged", "random"] = Field("unchanged", description="what these deliver")
    poisoners: int = Field(0, ge=0, description="how many clients deliver the opposite of what they learned")

    def check(self) -> None:
        """Refuse more of a kind than there are clients; for engines of ours, whose clients these are."""
        if self.strategic > self.count:
            raise ConfigError(f"clients.strategic: {self.strategic} are more than the {self.count} clients there are")
        roles = self.noisy + self.free_riders + self.poisoners
        if roles > self.count:
            raise ConfigError(
                f"clients: noisy, free_riders and poisoners are {roles} in all; they must be at most {self.count}"
            )

    @field_validator("bids", "epsilon", "valuation", "partition", "strategy")
    @classmethod
    def _can_be_read(cls, value: str | None, info: ValidationInfo) -> str | None:
        readers = {"valuation": valuations, "partition": parse_partition, "strategy": Strategy.parse}
        own = info.field_name == "valuation" and ":" in (value or "")  # imported when it is run, not when it is read
        if value is not None and not own:
            readers.get(info.field_name or "", Distribution.parse)(value)
        return value


class DataSection(Section):
    """What is learned, and what the server keeps to evaluate on."""

    name: str = Field("digits", description="digits, mnist, fashion-mnist, cifar10, cifar100, or your own")
    path: str | None = Field(None, description="where the files are; else $BARA_DATA and the user's cache")
    train_samples: int | None = Field(None, ge=1, description="use so many training samples; all unless set")
    evaluation_samples: int | None = Field(None, ge=1, description="evaluate on so many a part; all unless set")
    held_out: Literal["halves", "same"] = Field(
        "halves", description="decide on one half of the test set and report the other, or the same for both"
    )
    verify: bool = Field(default=True, description="check published datasets against their checksums")


class TrainingSection(Section):
    """How clients train and how the server joins what they learned."""

    model: str = Field("mlp", description="linear, mlp, cnn, cifar-cnn, or the import path of a torch module")
    algorithm: Literal["fedsgd", "fedavg"] = Field("fedsgd", description="one full-batch gradient, or local epochs")
    learning_rate: float = Field(0.1, gt=0, allow_inf_nan=False, description="of every step")
    local_epochs: int = Field(1, ge=1, description="fedavg's passes over a client's data")
    batch_size: int = Field(50, ge=1, description="fedavg's")
    momentum: float = Field(0.0, ge=0, lt=1, description="fedavg's, within a round")
    weight_decay: float = Field(0.0, ge=0, allow_inf_nan=False, description="fedavg's")
    proximal: float = Field(0.0, ge=0, allow_inf_nan=False, description="FedProx's mu, with fedavg")
    aggregation: Literal["samples", "equal"] = Field("samples", description="weights, unless the mechanism has its own")
    evidence: bool = Field(default=False, description="measure each client's own loss before and after, too")
    outliers: float = Field(
        0.0,
        ge=0,
        description="refuse updates so many robust deviations off; 0 for none, unless the mechanism has its own",
    )
    memory: Variant = Field(
        "off",
        description="updates of clients not recruited: off (forgotten), plain (kept), extrapolated (kept, and the step "
        "learned); `bara run` and `compare` on the simulator: extrapolated",
    )
    forget_after: int = Field(50, ge=1, description="rounds without a bid after which a client's update is forgotten")
    average_last: int = Field(10, ge=1, description="also keep the average of so many last models")
    checkpoint_every: int = Field(1, ge=0, description="save a checkpoint every so many rounds; 0 for none")

    def check(self) -> None:
        """Refuse what an algorithm would ignore; for engines of ours, which train so."""
        for key in ("local_epochs", "momentum", "weight_decay", "proximal"):
            value, neutral = getattr(self, key), type(self).model_fields[key].default
            if self.algorithm == "fedsgd" and value != neutral:
                raise ConfigError(
                    f"training.{key}: {value} must be {neutral:g} with fedsgd, which takes a single plain step"
                )

    @model_validator(mode="before")
    @classmethod
    def _without_precision(cls, tree: Any) -> Any:
        """Configurations of earlier versions all say `precision = "float32"`."""
        if not isinstance(tree, dict) or "precision" not in tree:
            return tree
        if tree["precision"] != "float32":
            raise ConfigError(
                f"precision is {tree['precision']!r}, but all training is in float32; bfloat16 was removed: it was "
                "7 to 13 times slower"
            )
        return {key: value for key, value in tree.items() if key != "precision"}


KEPT = ("memory", "forget_after", "average_last")
"""Keys of `training` that are the server's own, whoever trains."""


class AppSection(Section):
    """Whose run it is, where a Flower app's server plays it: written by `bara.flower.start`, not by a person."""

    name: str = Field("", description="the app, as publisher/name; empty where Flower does not say")
    fab_hash: str = Field("", description="what Flower calls the app's code; empty where it does not say")
    run_id: str = Field("", description="Flower's own number of the run that began it")
    strategy: str = Field("", description="its class, and those it wraps, outermost first")
    parameters: dict[str, Any] = Field(default_factory=dict, description="what the strategy was made with")
    model: str = Field("", description="how many arrays and numbers the model has, and a digest of names and shapes")
    run_config: dict[str, Any] = Field(default_factory=dict, description="the app's own keys, those of bara left out")


class MechanismSection(Named):
    """Who is recruited and what they are paid."""

    name: str = Field("bid-price-first", description="a mechanism's name or import path")


class AllocatorSection(Named):
    """How much a round may cost."""

    name: str = Field("planner", description="an allocator's name or import path")


def _default_engine() -> str:
    return "simulator" if all(map(find_spec, ("torch", "sklearn"))) else "synthetic"


class FederationSection(BaseModel):
    """Who trains, with the engine's own options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    engine: str = Field(
        default_factory=_default_engine,
        description="simulator, synthetic, flower, or an import path; simulator where torch is",
    )
    workers: int = Field(0, ge=0, description="processes that train; 0 for as many as help; the result is the same")

    @property
    def options(self) -> dict[str, Any]:
        """What the engine itself is configured with."""
        return dict(self.model_extra or {})


class LedgerSection(Section):
    """How the run's books are kept, where the run has a folder."""

    url: str | None = Field(None, description="a database; ledger.db in the run's folder unless set")
    receipt: str | None = Field(None, description="a file in a second place, to which a receipt is written each round")
    key: str | None = Field(None, description="the environment variable that holds a key; it makes the chain an HMAC")
    retention: Literal["keep", "drop"] = Field("keep", description="what becomes of bids and menus after settlement")
    client_cap: float | str | None = Field(None, description="the most one client is paid over the whole run")
    approve_above: float | str | None = Field(None, description="an award that costs more waits for approval")

    @field_validator("client_cap", "approve_above")
    @classmethod
    def _an_amount(cls, value: float | str | None) -> float | str | None:
        if value is not None and money(value) <= 0:
            raise InvalidMoneyError(f"{value}; required is more than zero")
        return value


def _toml_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
