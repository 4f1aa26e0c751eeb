"""One experiment as a validated configuration: TOML in, TOML out, every default visible."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import tomli_w
from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from bara.errors import BaraError, ConfigError, InvalidMoneyError, InvalidRecordError
from bara.experiments.sections import (
    KEPT,
    AllocatorSection,
    AppSection,
    BudgetSection,
    ClientsSection,
    DataSection,
    FederationSection,
    LedgerSection,
    MechanismSection,
    Section,
    TrainingSection,
)
from bara.files import read_whole
from bara.plugins import nearest, parse_spec, toml_value
from bara.records import Purse, decimal_money
from bara.text import UNSTORABLE

FLOWER_APP = "flower-app"
"""What the configuration of a Flower app's run has for an engine: its nodes are reached from its own server alone."""


WITH_DATA = {"simulator", "flower"}
"""The engines whose training and whose data the configuration describes."""

OURS = {*WITH_DATA, "synthetic"}
"""The engines whose clients the configuration describes."""


class Config(Section):
    """One experiment."""

    seed: int = Field(0, ge=0, description="everything random derives from it")
    budget: BudgetSection = BudgetSection()
    clients: ClientsSection = ClientsSection()
    mechanism: MechanismSection = MechanismSection()
    allocator: AllocatorSection = AllocatorSection()
    federation: FederationSection = Field(default_factory=FederationSection)
    data: DataSection = DataSection()
    training: TrainingSection = TrainingSection()
    ledger: LedgerSection = LedgerSection()
    app: AppSection | None = None

    @model_serializer(mode="wrap")
    def _what_counts(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A Flower app decides its data, its clients and its training by itself: our defaults say nothing of them."""
        tree: dict[str, Any] = dump(self)
        if self.app is None:
            del tree["app"]
        if self.federation.engine == FLOWER_APP:
            del tree["data"]
            tree["clients"] = {"count": self.clients.count}
            tree["training"] = {key: tree["training"][key] for key in KEPT}
        return tree

    @classmethod
    def load(cls, path: Path | None = None, changes: Sequence[str] = ()) -> Self:
        """Read a TOML file, a preset by its name, or the defaults, and change single keys (`budget.total=600`).

        What is new has a memory, unless it is turned off: extrapolated, where our engines train and validation data
        are apart from those that are reported.
        """
        tree = read_toml(path if path.exists() else shipped("presets").get(str(path), path)) if path else {}
        for change in changes:
            set_key(tree, change)
        config = cls.parse(tree)
        fits = config.federation.engine in WITH_DATA and config.data.held_out == "halves"
        if not fits or "memory" in config.training.model_fields_set:
            return config
        remembering = config.training.model_copy(update={"memory": "extrapolated"})
        return config.model_copy(update={"training": remembering})

    @classmethod
    def parse(cls, tree: Mapping[str, Any]) -> Self:
        """Validate a tree of keys; an unknown one is an error that suggests the nearest."""
        for key, value in flat(tree).items():
            if isinstance(value, str) and UNSTORABLE.search(value):
                raise ConfigError(f"{key} is {value!r}; required is text without NUL and halves of characters")
        try:
            config = cls.model_validate(tree)
            config.purse()
            if config.federation.engine in OURS:
                config.clients.check()
                config.training.check()
            if config.app is not None and config.federation.engine != FLOWER_APP:
                raise ConfigError("app is set, which only a Flower app's server may say of its run")
            if config.training.memory == "extrapolated" and config.data.held_out == "same":
                raise ConfigError(
                    'training.memory = "extrapolated" learns from validation data, and data.held_out = "same" has no '
                    'others to report: use data.held_out = "halves", or training.memory = "plain"'
                )
        except ValidationError as error:
            raise ConfigError(_explain(cls, error)) from None
        except (InvalidMoneyError, InvalidRecordError) as error:
            raise ConfigError(str(error)) from None
        return config

    @property
    def dataset(self) -> str:
        """What is learned, by name."""
        app = self.app.name.rpartition("/")[2] if self.app else ""
        return self.data.name if self.federation.engine in WITH_DATA else app or self.federation.engine

    def purse(self) -> Purse:
        """The full purse."""
        return Purse.of(self.budget.total, self.budget.max_rounds)

    def with_allocator(self, spec: str, seed: int) -> Self:
        """The same experiment under another allocator, written `even:carry_over=true`, and another seed."""
        return self.model_copy(update={"allocator": AllocatorSection(**parse_spec(spec)), "seed": seed})

    def with_budget(self, share: float) -> Self:
        """The same experiment with a part of its budget, or a multiple of it."""
        total = round(decimal_money(self.purse().total) * share, 6)
        config = self.model_copy(update={"budget": self.budget.model_copy(update={"total": total})})
        config.purse()
        return config

    def to_toml(self) -> str:
        """The whole configuration, every default included."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))


def shipped(kind: str) -> dict[str, Path]:
    """The TOML files that come with bara, `presets` (the paper's experiments) or `suites`, by name.

    >>> shipped("presets")["figures-digits"].name
    'figures-digits.toml'
    """
    return {path.stem: path for path in sorted((Path(__file__).parent / kind).glob("*.toml"))}


def read_toml(path: Path) -> dict[str, Any]:
    """The tree a TOML file holds."""
    try:
        return tomllib.loads(read_whole(path, plain=False))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration {str(path)!r}") from None
    except (ValueError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is no TOML file: {error}") from None


def set_key(tree: dict[str, Any], change: str) -> None:
    """Change one key of a tree, written `budget.total=600`."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {change!r}; required is KEY=VALUE, like budget.total=600")
    *sections, last = key.strip().split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"--set {change!r}: {section!r} is no section")
    tree[last] = toml_value(text)


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Keys as one writes them after --set."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _without_none(tree: Any) -> Any:
    """TOML has no null: a key that is not set is not written."""
    if isinstance(tree, dict):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    return tree


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    """The first of pydantic's findings, as one line that names the key."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}; {nearest(key, _keys(model))}"
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, BaraError):
        return f"{key}: {cause}"
    return f"{key} is {first['input']!r}: {first['msg']}"


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            found += _keys(section, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found
