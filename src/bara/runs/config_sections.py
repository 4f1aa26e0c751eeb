"""The sections of a configuration: every key with its default, its range and its meaning."""

import copyreg
import math
from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from bara.clients.bidding import Strategy
from bara.clients.costs import MIXED, Distribution, valuations
from bara.datasets import Columns
from bara.datasets import parse as parse_partition
from bara.errors import ConfigError, InvalidMoneyError
from bara.ledger.store import check_url
from bara.plugins import OBJECT, Handed, describe, parse_spec
from bara.records import Entry, Goal, Otherwise, Register, money
from bara.runs.engines import SIMULATOR, SYNTHETIC
from bara.server.memory import MEMORIES
from bara.server.metrics import check_name
from bara.text import nearest


class Table(BaseModel):
    """A table of the configuration, for which the value of its main key may stand alone.

    `budget = 300` means `budget.total = 300`, and `allocator = "even"` means
    `allocator.name = "even"`.
    """

    MAIN: ClassVar[str | None] = None
    """The main key; None for a table that has none."""
    OF_PART: ClassVar[bool] = False
    """True if the main key names a part of the run; Python may hand over a class or an object."""

    _part: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _from_main(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read a table, the value of its main key, or a class or object as the part it names."""
        if cls.MAIN is None or isinstance(value, cls):
            return handler(value)
        is_lone = not isinstance(value, Mapping)
        tree = {cls.MAIN: value} if is_lone else dict(value)
        main = tree.get(cls.MAIN)
        if not cls.OF_PART or main is None or isinstance(main, bool | int | float):
            return handler(tree)
        part = None
        if not isinstance(main, str):
            spec, part = describe(main)
        elif is_lone:
            spec = parse_spec(main)
        else:
            spec = {"name": main}
        tree[cls.MAIN] = spec.pop("name")
        section = handler(spec | tree)
        section._part = part  # noqa: SLF001 - an instance of this class
        return section

    def handed(self, part: Any) -> Self:
        """Return a copy that holds the class or object it names; refuse one of another name."""
        held = None
        given = part
        if not isinstance(part, str):
            held = part
            given = describe(part)[0]["name"]
        named = str(getattr(self, self.MAIN or ""))
        if bare(given).rpartition(":")[2] != bare(named).rpartition(":")[2]:
            raise ConfigError(
                f"the run's is {bare(named)!r}, got {bare(given)!r}; hand over the same"
            )
        section = self.model_copy()
        section._part = held  # noqa: SLF001 - an instance of this class
        return section

    @property
    def part(self) -> Any:
        """The class or object that Python handed over; None if the name alone leads to the part.

        A stored configuration holds only the part's name.
        """
        return self._part


def bare(name: str) -> str:
    """Return a part's name without the mark of an object that Python handed over."""
    return name.removeprefix(OBJECT)


class Section(Table):
    """A table of the configuration whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false for a number: pydantic would read true as 1."""
        wanted = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and wanted is not bool:
            raise ConfigError("true and false are not numbers")
        return value


def _reference(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Name a class or function; pydantic's own check would turn `Handed` into a plain string."""
    named = Handed.name_of(value)
    if isinstance(named, Handed):
        return named
    return handler(named)


def _sent(named: Handed) -> Any:
    """Pickle a part by value: no import path leads other processes to it."""
    from joblib import wrap_non_picklable_objects  # noqa: PLC0415 - only where something is sent

    by_value = wrap_non_picklable_objects([named.part], keep_wrapper=False)
    return _received, (str(named), by_value)


def _received(name: str, parts: list[Any]) -> Handed:
    """Unpickle what `_sent` pickled: a name, and a list of the one part."""
    return Handed(name, parts[0])


copyreg.pickle(Handed, _sent)

Reference = Annotated[str, WrapValidator(_reference)]
"""A name or an import path; Python may also give the class, function or callable object itself."""


class Part(Table):
    """A table that names a part of the run; its unknown keys are the part's own options."""

    model_config = ConfigDict(extra="allow", frozen=True)
    OF_PART: ClassVar = True

    @property
    def options(self) -> dict[str, Any]:
        """The options of the part itself, by name."""
        return dict(self.model_extra or {})


class Named(Part):
    """A part whose main key is `name`: an allocator or a mechanism."""

    MAIN: ClassVar = "name"

    name: str

    _called: str | None = PrivateAttr(default=None)

    def renamed(self, name: str) -> Self:
        """Return a copy whose label in reports and tables is `name`."""
        section = self.model_copy()
        section._called = name  # noqa: SLF001 - an instance of this class
        return section

    @property
    def label(self) -> str:
        """The name in reports and tables: `spec`, unless another was given."""
        return self._called or self.spec

    @property
    def spec(self) -> str:
        """The name and options as the command line writes them: `even:carry_over=true`."""
        options = [f"{key}={_toml_value(value)}" for key, value in self.options.items()]
        return ":".join([bare(self.name), *options])


class BudgetSection(Section):
    """The reward budget, the deadline and the goal."""

    MAIN: ClassVar = "total"

    total: float | str = Field(1500.0, description="the whole reward budget, in its own unit")
    max_rounds: int = Field(
        200, ge=1, description="the deadline: the last round that may be played"
    )
    currency: str | None = Field(
        None,
        description="an ISO 4217 code, like EUR: amounts are whole cents; without one, they go "
        "down to a millionth",
    )
    target: float | None = Field(
        None, description="the accuracy to reach as cheaply as possible, like 0.85"
    )
    confidence: float = Field(
        0.9, description="with target: how sure to be that the kept model has reached it"
    )
    worth: float | str = Field(
        0.0, description="go on only while a point of accuracy costs less than this; 0: always"
    )
    otherwise: Otherwise = Field(
        "spend", description="when the target looks out of reach: spend on, stop, or ask"
    )

    min_clients: int | None = Field(
        None,
        ge=1,
        description="with target: how many clients must have been heard before it counts as "
        "reached; half of those that bid unless set",
    )

    @property
    def goal(self) -> Goal:
        """The goal that the money is for."""
        worth = money(self.worth, what="budget.worth")
        return Goal(self.target, self.confidence, worth, self.otherwise, self.min_clients)

    def check_goal(self) -> Goal:
        """Return the goal; refuse an invalid one before anything is built."""
        return self.goal


class ClientsSection(Section):
    """The clients: how many, what training costs them, how they bid and how they behave."""

    MAIN: ClassVar = "count"

    count: int = Field(20, ge=1, le=10_000_000, description="N, how many clients there are")
    bids: str = Field("uniform(0.5, 1.5)", description="where each round's costs come from")
    stability: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how much of a cost is the client's own: 0 for prices redrawn every round, 1 "
        "for stable ones, drawn once",
    )
    costs: str | dict[str, float] | None = Field(
        None,
        description="what each client costs, by name or in a CSV file (client, cost); what bids "
        "draws is a factor then, 1 unless set",
    )
    epsilon: str | None = Field(
        None,
        description="each client's privacy budget per round; uniform(0.1, 1) if the mechanism "
        "trades privacy",
    )
    valuation: str = Field(
        MIXED,
        description="what privacy costs: mixed, square, root, linear, exponential, or an import "
        "path",
    )
    cost_by: Literal["none", "samples", "compute", "labels"] = Field(
        "none",
        description="scale a client's costs by its data size, by its own speed, drawn once, or by "
        "how rare its labels are",
    )
    drift: float = Field(0.0, gt=-1, description="the share by which costs grow each round")
    strategic: int = Field(
        0, ge=0, description="how many clients bid strategically instead of their cost"
    )
    strategy: str = Field(
        "overbid(0.2)", description="how they bid: overbid(0.2), learner(0.05) or equilibrium(8)"
    )
    absence_rate: float = Field(
        0.0, ge=0, lt=1, description="the share of the time a client is away and does not bid"
    )
    failure_rate: float = Field(
        0.0, ge=0, le=1, description="the probability that a winner does not deliver"
    )
    late_rate: float = Field(
        0.0, ge=0, le=1, description="the probability that a winner delivers too late"
    )
    partition: Reference = Field(
        "shards(2)",
        description="shards(k), iid, dirichlet(alpha), quantity(skew), natural or natural(k) "
        "(whose the data are; the default where that is known), or the import path of a function",
    )
    noisy: int = Field(0, ge=0, description="how many clients hold wrong labels")
    label_noise: float = Field(
        0.5, ge=0, le=1, description="the share of their labels that is wrong"
    )
    free_riders: int = Field(0, ge=0, description="how many clients deliver without training")
    free_riding: Literal["unchanged", "random"] = Field(
        "unchanged", description="what free riders deliver"
    )
    poisoners: int = Field(
        0, ge=0, description="how many clients deliver the opposite of what they learned"
    )

    def check(self) -> None:
        """Refuse more strategic, noisy, free-riding or poisoning clients than there are clients.

        Only for engines whose clients the configuration describes.
        """
        if self.costs is not None and self.cost_by != "none":
            raise ConfigError(
                f"clients.costs says what each client costs; clients.cost_by must be 'none' then, "
                f"got {self.cost_by!r}"
            )
        if self.strategic > self.count:
            raise ConfigError(
                f"clients.strategic must be at most clients.count = {self.count}, got "
                f"{self.strategic}"
            )
        roles = self.noisy + self.free_riders + self.poisoners
        if roles > self.count:
            raise ConfigError(
                "clients.noisy, free_riders and poisoners must add up to at most clients.count = "
                f"{self.count}, got {roles}"
            )

    @field_validator("costs", mode="before")
    @classmethod
    def _costs_are_positive(cls, value: object) -> object:
        """Refuse what is neither a file's name nor a positive number for each client."""
        if value is None or isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            raise ConfigError(f"it must be a table by client or a CSV file, got {value}")
        for client, cost in value.items():
            is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
            if not (is_number and 0 < cost < math.inf):
                raise ConfigError(f"the cost of {client!r} must be a positive number, got {cost!r}")
        return dict(value)

    @field_validator("bids", "epsilon", "valuation", "partition", "strategy")
    @classmethod
    def _can_be_read(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Parse each of these keys once, so that mistakes are found before the run."""
        if value is None:
            return value
        if info.field_name == "valuation":
            if ":" not in value:  # an import path is imported by the run, not by its configuration
                valuations(value)
        elif info.field_name == "partition":
            parse_partition(value)
        elif info.field_name == "strategy":
            Strategy.parse(value)
        else:
            Distribution.parse(value)
        return value


class DataSection(Section):
    """The data that clients learn from, and the held-out data that the server evaluates on."""

    MAIN: ClassVar = "name"
    OF_PART: ClassVar = True

    name: str = Field(
        "digits",
        description="digits, mnist, fashion-mnist, cifar10, cifar100, rand-hie, heart-disease, a "
        "table (patients.csv, .parquet), or your own",
    )
    path: str | None = Field(
        None, description="where the files are; else $BARA_DATA and the user's cache"
    )
    train_samples: int | None = Field(
        None, ge=1, description="how many training samples to use; all unless set"
    )
    evaluation_samples: int | None = Field(
        None, ge=1, description="how many samples to evaluate on, per part; all unless set"
    )
    held_out: Literal["halves", "same"] = Field(
        "halves",
        description="decide on one half of the test set and report the other, or the same for both",
    )
    verify: bool = Field(
        default=True, description="check published datasets against their checksums"
    )
    client: str | None = Field(None, description="of a table, the column that says who owns a row")
    target: str | None = Field(
        None, description="of a table, the column to learn, or a question: visits > 0"
    )
    features: tuple[str, ...] = Field(
        (), description="of a table, the columns to learn from; all others unless set"
    )
    categorical: tuple[str, ...] = Field(
        (), description="of a table, columns of numbers that stand for names"
    )
    task: Literal["auto", "classes", "binary", "regression"] = Field(
        "auto", description="of a table, what is learned; auto decides by the target"
    )
    test_share: float = Field(
        0.25, gt=0, lt=1, description="of a table, the share of the rows that is held out"
    )
    sha256: str | None = Field(
        None, description="of a table, what its file held when the run began; set by bara"
    )

    @property
    def columns(self) -> Columns:
        """The roles of a table's columns: owner, target, features."""
        given = {one.name: getattr(self, one.name) for one in fields(Columns)}
        given["target"] = self.target or ""
        return Columns(**given)


class TrainingSection(Section):
    """The training: how clients train, and how the server aggregates and evaluates."""

    model: Reference = Field(
        "mlp",
        description="linear, mlp, cnn, cifar-cnn, cifar-cnn-private, or the import path of a torch "
        "module",
    )
    algorithm: Literal["fedsgd", "fedavg"] = Field(
        "fedsgd", description="one full-batch gradient, or local epochs"
    )
    learning_rate: float = Field(0.1, gt=0, allow_inf_nan=False, description="the step size of SGD")
    local_epochs: int = Field(1, ge=1, description="fedavg: passes over a client's data")
    batch_size: int = Field(50, ge=1, description="fedavg: samples per step")
    momentum: float = Field(
        0.0, ge=0, lt=1, description="fedavg: momentum of SGD, reset each round"
    )
    weight_decay: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="fedavg: weight decay of SGD"
    )
    proximal: float = Field(0.0, ge=0, allow_inf_nan=False, description="FedProx's mu, with fedavg")
    metric: Reference = Field(
        "accuracy",
        description="what is reported and decided on: accuracy, balanced-accuracy, auc, r2, rmse, "
        "or the import path of a function of (scores, targets) in [0, 1] that rises",
    )
    loss: Reference | None = Field(
        None, description="the import path of a function of (scores, targets); else the task's"
    )
    aggregation: Literal["samples", "equal", "sum"] = Field(
        "samples",
        description="weights, unless the mechanism has its own; sum adds updates up unweighted",
    )
    evidence: bool = Field(
        default=False, description="also measure each client's loss before and after training"
    )
    outliers: float = Field(
        0.0,
        ge=0,
        description="refuse updates this many robust deviations off; 0 for none, unless the "
        "mechanism has its own",
    )
    memory: str | None = Field(
        None,
        description="updates of clients not recruited: off (forgotten), plain (kept), extrapolated "
        "(kept, and the step learned), or the import path of a memory; unless set, extrapolated on "
        'the simulator with data.held_out = "halves", else off',
    )
    contributions_every: int | None = Field(
        None,
        ge=0,
        description="rounds between measurements of what each client contributes, for reports "
        "only; 0 for never; unless set, every round where clients are silos; needs a memory",
    )
    shapley_every: int | None = Field(
        None,
        ge=1,
        description="rounds between estimates of each client's Shapley value, for reports only; "
        "never unless set; needs a memory",
    )
    forget_after: int = Field(
        50, ge=1, description="rounds without a bid after which a client's update is forgotten"
    )
    average_last: int = Field(
        10, ge=1, description="also keep the average of this many last models"
    )
    checkpoint_every: int = Field(1, ge=0, description="rounds between checkpoints; 0 for none")

    def check(self) -> None:
        """Refuse keys that fedsgd would ignore; only for engines that these keys are meant for."""
        if self.algorithm != "fedsgd":
            return
        for key in ("local_epochs", "momentum", "weight_decay", "proximal"):
            value = getattr(self, key)
            neutral = type(self).model_fields[key].default
            if value != neutral:
                raise ConfigError(
                    f"training.{key} must be {neutral:g} with fedsgd, which takes a single plain "
                    f"step, got {value}"
                )

    @field_validator("memory")
    @classmethod
    def _is_a_memory(cls, value: str | None) -> str | None:
        if value is None or value == "off":
            return value
        name = parse_spec(value)["name"]
        if ":" not in name and name not in MEMORIES.names():
            known = ["off", *MEMORIES.names()]
            raise ConfigError(f"no memory is named {name!r}; {nearest(name, known)}")
        return value

    @field_validator("metric")
    @classmethod
    def _is_a_metric(cls, value: str) -> str:
        check_name(value)
        return value

    @model_validator(mode="before")
    @classmethod
    def _without_precision(cls, tree: Any) -> Any:
        """Drop `precision = "float32"`, which configurations of earlier versions all have."""
        if not isinstance(tree, dict) or "precision" not in tree:
            return tree
        if tree["precision"] != "float32":
            raise ConfigError(
                f"precision must be 'float32', got {tree['precision']!r}; bfloat16 was removed "
                "because it was 7 to 13 times slower"
            )
        return {key: value for key, value in tree.items() if key != "precision"}


KEPT = ("memory", "forget_after", "average_last")
"""The keys of `training` that concern the server alone, whichever engine trains."""


class AppSection(Section):
    """The Flower app whose server plays the run; `bara.flower.start` writes these keys."""

    name: str = Field("", description="the app, as publisher/name; empty where Flower does not say")
    fab_hash: str = Field(
        "", description="what Flower calls the app's code; empty where it does not say"
    )
    run_id: str = Field("", description="Flower's own number of the run that began it")
    strategy: str = Field("", description="its class, and those it wraps, outermost first")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="what the strategy was made with"
    )
    model: str = Field(
        "",
        description="how many arrays and numbers the model has, and a digest of names and shapes",
    )
    run_config: dict[str, Any] = Field(
        default_factory=dict, description="the app's own keys, those of bara left out"
    )


class MechanismSection(Named):
    """The mechanism: which clients are recruited in a round, and what they are paid."""

    name: str = Field("turns", description="a mechanism's name or import path")


class AllocatorSection(Named):
    """The allocator: how much each round may cost."""

    name: str = Field("planner", description="an allocator's name or import path")


def _default_engine() -> str:
    can_train = find_spec("torch") is not None and find_spec("sklearn") is not None
    return SIMULATOR if can_train else SYNTHETIC


class FederationSection(Part):
    """The federation: the engine that trains, with its own options."""

    MAIN: ClassVar = "engine"

    engine: str = Field(
        default_factory=_default_engine,
        description="simulator, synthetic, or an import path; simulator if torch is installed",
    )
    workers: int = Field(
        0,
        ge=0,
        description="worker processes; 0 for as many as help; the result does not depend on it",
    )


class EntrySection(Section):
    """A client in the register: the most it is paid."""

    limit: float | str | None = Field(None, description="the most it is paid over the whole run")
    fee: float | str | None = Field(None, description="the most it is paid for one round")

    @field_validator("limit", "fee")
    @classmethod
    def _an_amount(cls, value: float | str | None) -> float | str | None:
        return positive(value)

    def entry(self) -> Entry:
        """Return the entry, in micro-units."""
        limit = None if self.limit is None else money(self.limit)
        fee = None if self.fee is None else money(self.fee)
        return Entry(limit, fee)


class LedgerSection(Section):
    """The ledger: the books of a run that has a folder."""

    url: str | None = Field(
        None, description="a database; ledger.db in the run's folder unless set"
    )
    receipt: str | None = Field(
        None, description="a file in a second place, to which a receipt is written each round"
    )
    receipt_above: float | str = Field(
        10_000.0, description="a batch of payouts above this needs a receipt"
    )
    key: str | None = Field(
        None, description="the environment variable that holds a key; it makes the chain an HMAC"
    )
    retention: Literal["keep", "drop"] = Field(
        "keep", description="what becomes of bids and menus after settlement"
    )
    clients: dict[str, EntrySection] | None = Field(
        None,
        description="the known clients: names, or a table for each with its limit and fee; a bid "
        "from anybody else is left out",
    )
    client_cap: float | str | None = Field(
        None, description="the most one client is paid over the whole run"
    )
    approve_above: float | str | None = Field(
        None, description="an award that costs more waits for approval"
    )
    approvals: Literal[1, 2] = Field(
        1, description="how many different people must approve an award that waits"
    )
    notify: str | None = Field(
        None,
        description="a command or URL that is told what needs a person; $NAME for one in the "
        "environment",
    )

    @model_validator(mode="after")
    def _two_of_what(self) -> Self:
        if self.approvals == 2 and self.approve_above is None:
            raise ConfigError(
                "ledger.approvals is 2, but no award waits for approval; set ledger.approve_above"
            )
        return self

    @field_validator("url")
    @classmethod
    def _a_database(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value

    @field_validator("client_cap", "approve_above", "receipt_above")
    @classmethod
    def _an_amount(cls, value: float | str | None) -> float | str | None:
        return positive(value)

    @field_validator("clients", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {name: {} for name in value}
        return value

    def known(self) -> Register | None:
        """Return the known clients; None if everybody may bid."""
        if self.clients is None:
            return None
        return {client: one.entry() for client, one in self.clients.items()}


def positive(value: float | str | None) -> float | str | None:
    """Refuse an amount that is not positive; None is let through."""
    if value is not None and money(value, what="it") <= 0:
        raise InvalidMoneyError(f"it must be positive, got {value}")
    return value


def _toml_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
