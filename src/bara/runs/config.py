"""The validated configuration of one experiment, read from TOML and written back in full."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Union

import tomli_w
from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
)

from bara.datasets import is_table
from bara.errors import BaraError, ConfigError, InvalidMoneyError, InvalidRecordError
from bara.files import read_whole
from bara.plugins import OBJECT, Handed, toml_value
from bara.records import MICRO, Limits, Purse, decimal_money, money
from bara.runs.config_sections import (
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
    Table,
    TrainingSection,
    bare,
)
from bara.runs.data import with_amounts, with_what_data_say
from bara.runs.engines import EngineKind, kind_of, metric_name
from bara.text import UNSTORABLE, flat, nearest

Source = Union["Config", Mapping[str, Any], str, Path, None]
"""The sources that `Config.load` reads: a configuration, a mapping, a file, a preset's name."""


class Config(Section):
    """The configuration of one experiment."""

    seed: int = Field(0, ge=0, description="everything random derives from it")
    budget: BudgetSection = BudgetSection()
    clients: ClientsSection = ClientsSection()
    mechanism: MechanismSection = MechanismSection()
    allocator: AllocatorSection = AllocatorSection()
    federation: FederationSection = Field(default_factory=FederationSection)
    data: DataSection = DataSection()
    training: TrainingSection = TrainingSection()
    ledger: LedgerSection = LedgerSection()
    limits: dict[str, float] = Field(
        default_factory=dict,
        description="the most that a client may say of itself, by column of its bid (samples, "
        "epsilon) and, as num_examples, for the weight of its update",
    )
    app: AppSection | None = None

    @field_validator("limits", mode="before")
    @classmethod
    def _limits_are_numbers(cls, value: Any) -> Any:
        """Refuse limits that no number can have, before pydantic takes true for 1."""
        return dict(Limits(value).declared) if isinstance(value, Mapping) else value

    @model_serializer(mode="wrap")
    def _what_counts(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not set, and what a Flower app or an own program decides."""
        tree: dict[str, Any] = dump(self)
        if self.app is None:
            tree.pop("app", None)
        if not self.limits:
            tree.pop("limits", None)
        if self.engine.player in ("flower-app", "own-program"):
            tree.pop("data", None)
            tree["clients"] = {"count": self.clients.count}
            tree["training"] = {key: getattr(self.training, key) for key in KEPT}
            tree["training"]["memory"] = self.training.memory or "off"  # 0.1 did not say
        if self.engine.player == "own-program":
            tree.pop("training")
            tree["federation"].pop("workers", None)
        return tree

    def __init__(self, /, **keys: Any) -> None:
        """Take each section as a table, or as the lone value of its main key (`budget=300`)."""
        try:
            super().__init__(**keys)
        except ValidationError as error:
            raise ConfigError(_explain(type(self), error)) from None

    @classmethod
    def load(cls, source: Source = None, changes: Sequence[str] = (), **keys: Any) -> Self:
        """Read an experiment, change some of its keys, and complete it.

        Args:
            source: A TOML file, a preset by its name, a mapping, another configuration, or None for
                the defaults.
            changes: Single keys as the command line writes them (`budget.total=600`).
            **keys: Sections: a table changes the keys that it holds, and a lone value changes the
                section's main key (`budget=600`, `allocator=MyAllocator`).

        >>> Config.load(budget=600, clients={"count": 8}).budget.total
        600.0
        """
        tree = _tree(source)
        for change in changes:
            set_key(tree, change)
        for key, value in keys.items():
            change_key(tree, key, value)
        return cls.complete(tree)

    @classmethod
    def complete(cls, tree: Mapping[str, Any]) -> Self:
        """Validate the keys of a new run, and set those that depend on other keys or on the data.

        The clients are counted if the data say who owns each sample. Clients' costs and fees are
        read if they stand in files; costs are asked as is unless `clients.bids` is set. The
        server's memory is extrapolated if the engine trains on the configured data and validation
        data are apart from test data.
        """
        config = with_amounts(with_what_data_say(cls.parse(tree)))
        if config.training.memory is not None:
            return config
        adds_up = config.training.aggregation == "sum"
        extrapolates = config.engine.has_data and config.data.held_out == "halves" and not adds_up
        memory = "extrapolated" if extrapolates else "off"
        training = config.training.model_copy(update={"memory": memory})
        training.model_fields_set.discard("memory")  # nobody set it
        return config.model_copy(update={"training": training})

    @classmethod
    def parse(cls, tree: Mapping[str, Any]) -> Self:
        """Validate a tree of keys without completing it; suggest a name for an unknown key."""
        for key, value in flat(tree).items():
            if isinstance(value, str) and UNSTORABLE.search(value):
                raise ConfigError(
                    f"{key} must be text without NUL or lone surrogates, got {value!r}"
                )
        try:
            config = cls(**tree)
            config.check()
        except (InvalidMoneyError, InvalidRecordError) as error:
            raise ConfigError(str(error)) from None
        return config

    def check(self) -> None:
        """Refuse keys that contradict each other."""
        self.check_budget()
        if self.engine.has_clients:
            self.clients.check()
            self.training.check()
        if self.app is not None and self.engine.player != "flower-app":
            raise ConfigError("app is set; only the server of a Flower app may set it")
        self.budget.check_goal()
        if self.training.memory == "extrapolated" and self.data.held_out == "same":
            raise ConfigError(
                'training.memory = "extrapolated" learns from the validation data, and '
                'data.held_out = "same" leaves no other data to report on; use data.held_out = '
                '"halves", or training.memory = "plain"'
            )
        if self.training.aggregation == "sum" and self.training.memory not in (None, "off"):
            raise ConfigError(
                'training.aggregation = "sum" adds up the updates of one round, so '
                f'training.memory must be "off", got {self.training.memory!r}'
            )

    @property
    def engine(self) -> EngineKind:
        """The kind of engine, which its name alone tells."""
        return kind_of(self.federation.engine)

    @property
    def dataset(self) -> str:
        """The name of what is learned: the data, the Flower app, or the engine."""
        if self.engine.has_data:
            name = self.data.name
            if is_table(name):
                name = Path(name).name.partition(".")[0]
            return bare(name)
        if self.app is not None and self.app.name:
            return bare(self.app.name.rpartition("/")[2])
        return bare(self.federation.engine)

    @property
    def metric(self) -> str:
        """The name of the metric; `bara.server.metrics.metric_title` gives its title."""
        options = self.federation.options
        return metric_name(self.federation.engine, self.training.metric, options)

    def check_budget(self) -> None:
        """Refuse an invalid budget, and a client cap that is not whole in its smallest unit."""
        unit = self.purse().unit
        amounts = {"ledger.client_cap": self.ledger.client_cap}
        for client, one in (self.ledger.clients or {}).items():
            amounts[f"ledger.clients.{client}.limit"] = one.limit
            amounts[f"ledger.clients.{client}.fee"] = one.fee
        for key, amount in amounts.items():
            if amount is not None and money(amount) % unit:
                raise ConfigError(
                    f"{key} must be whole in the smallest unit of budget.currency, got {amount}"
                )

    def identity(self) -> dict[str, Any]:
        """Return the fields of a result that identify the experiment."""
        return {
            "allocator": self.allocator.label,
            "mechanism": self.mechanism.label,
            "dataset": self.dataset,
            "seed": self.seed,
            "clients": self.clients.count,
            "metric": self.metric,
            "target": self.budget.target,
        }

    def purse(self) -> Purse:
        """Return the purse before the first round."""
        return Purse.of(self.budget.total, self.budget.max_rounds, self.budget.currency)

    def with_allocator(self, spec: Any, seed: int) -> Self:
        """Return the same experiment under another allocator and seed.

        Args:
            spec: A name with options (`even:carry_over=true`), a class or an object.
            seed: The new seed.
        """
        allocator = AllocatorSection.model_validate(spec)
        return self.model_copy(update={"allocator": allocator, "seed": seed})

    def with_budget(self, share: float) -> Self:
        """Return the same experiment with a share, or a multiple, of its budget."""
        return self.with_total(decimal_money(self.purse().total) * share)

    def with_total(self, total: float) -> Self:
        """Return the same experiment with another budget, rounded to an amount that can be paid."""
        unit = self.purse().unit / MICRO
        total = round(round(total / unit) * unit, 6)
        budget = self.budget.model_copy(update={"total": total})
        config = self.model_copy(update={"budget": budget})
        config.check_budget()
        return config

    def parts(self) -> dict[str, Any]:
        """Return the classes and objects that Python handed over, by section or by whole key."""
        parts: dict[str, Any] = {}
        by_key: dict[str, Any] = {}
        for section in type(self).model_fields:
            table = getattr(self, section)
            if not isinstance(table, Table):
                continue
            if table.part is not None:
                parts[section] = table.part
            for key, value in table:
                if isinstance(value, Handed):
                    by_key[f"{section}.{key}"] = value.part
        return parts | by_key

    def handed_over(self) -> list[str]:
        """List the sections whose part no file can hold, so that Python must hand it over."""
        sections: dict[str, None] = {}
        for key, value in flat(self.model_dump(mode="json")).items():
            if str(value).startswith(OBJECT):
                sections[key.partition(".")[0]] = None
        return list(sections)

    def with_parts(self, **parts: Any) -> Self:
        """Return a copy that holds the parts it names; refuse parts of other names.

        Args:
            **parts: The parts by section (`allocator=MyAllocator()`), or by key in a section
                (`training={"model": MyModel}`).
        """
        changes: dict[str, Any] = {}
        for key, part in parts.items():
            section = getattr(self, key, None)
            if isinstance(part, Mapping) and isinstance(section, Section):
                checked = {name: _checked(section, name, one) for name, one in part.items()}
                changes[key] = section.model_copy(update=checked)
                continue
            if not isinstance(section, Table) or not section.OF_PART:
                raise ConfigError(
                    f"{key!r} is not a part of a run; the parts are allocator, mechanism, "
                    "federation, data"
                )
            changes[key] = section.handed(part)
        return self.model_copy(update=changes)

    def names_of(self, parts: Mapping[str, Any]) -> list[str]:
        """Return the names that the configuration has for parts; the mapping is as in `with_parts`.

        >>> Config().names_of({"mechanism": "turns", "training": {"model": "mlp"}})
        ['turns', 'mlp']
        """
        found = []
        for key, part in parts.items():
            section = getattr(self, key)
            keys = list(part) if isinstance(part, Mapping) else [section.MAIN]
            found += [str(getattr(section, name)) for name in keys]
        return found

    def to_toml(self) -> str:
        """Return the whole configuration as TOML, every default included."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))


def _checked(section: Section, name: str, part: Any) -> Any:
    """Return what is handed over for a key, with its name; refuse another than the run's."""
    given = Handed.name_of(part)
    known = getattr(section, name, None)
    if str(given) != str(known):
        raise ConfigError(
            f"the run's {name} is {bare(str(known))!r}, got {bare(str(given))!r}; hand over the "
            "same"
        )
    return given


_SHIPPED = {"presets": "paper/presets", "suites": "studies/suites"}
"""The folder of the TOML files of each kind."""


def shipped(kind: str) -> dict[str, Path]:
    """Return the TOML files of one kind that come with bara, by name.

    Args:
        kind: `presets`, the paper's experiments, or `suites`.

    >>> shipped("presets")["figures-digits"].name
    'figures-digits.toml'
    """
    place = Path(__file__).parents[1] / _SHIPPED[kind]
    return {path.stem: path for path in sorted(place.glob("*.toml"))}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file into a tree of keys; refuse a missing or malformed file."""
    try:
        return tomllib.loads(read_whole(path, plain=False))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {str(path)!r}") from None
    except (ValueError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None


def set_key(tree: dict[str, Any], change: str) -> None:
    """Change one key of a tree, as the command line writes it: `budget.total=600`."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {change!r} must be KEY=VALUE, like budget.total=600")
    _put(tree, key.strip(), toml_value(text), f"--set {change!r}")


def _put(tree: dict[str, Any], key: str, value: Any, what: str) -> None:
    """Set a key by its whole name, like `budget.total`; an error begins with `what`."""
    *sections, last = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{what}: {section!r} is not a section")
    tree[last] = value


_WHOLE = {"allocator", "mechanism"}
"""Sections that a new part replaces as a whole: the other keys are options of the old part."""


def change_key(tree: dict[str, Any], key: str, value: Any) -> None:
    """Change a key, some keys of a section, or the main key of a section.

    Args:
        tree: The tree to change.
        key: A key at the top, or a section.
        value: The new value of the key or of the section's main key, or a mapping of the section's
            keys to their new values.
    """
    main = None
    if key in Config.model_fields:
        main = getattr(Config.model_fields[key].annotation, "MAIN", None)
    names_another = key in _WHOLE and isinstance(value, Mapping) and "name" in value
    if isinstance(value, Mapping) and not names_another:
        for name, inner in value.items():
            _put(tree, f"{key}.{name}", inner, f"{key}={dict(value)!r}")
    elif main is None or key in _WHOLE:
        _put(tree, key, value, f"{key}={value!r}")
    else:
        _put(tree, f"{key}.{main}", value, f"{key}={value!r}")


def _tree(source: Source) -> dict[str, Any]:
    """Read the keys of a source into a tree that may be changed."""
    if source is None:
        return {}
    if isinstance(source, Config):
        tree = source.model_dump(exclude_unset=True)
        for key, part in source.parts().items():
            section, _, name = key.partition(".")
            tree[section][name or getattr(source, section).MAIN] = part
        return tree
    if isinstance(source, Mapping):
        tree = {}
        for key, value in source.items():
            change_key(tree, key, value)
        return tree
    path = Path(source)
    if path.exists():
        return read_toml(path)
    return read_toml(shipped("presets").get(str(path), path))


def _without_none(tree: Any) -> Any:
    """Drop unset keys: TOML has no null."""
    if isinstance(tree, dict):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    return tree


_PYDANTIC = {
    ", (unable|got) .*": "",
    "Input should be": "must be",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
    "a valid integer": "a whole number",
    "a valid dictionary or instance of .*": "a section with keys",
    "Field required": "is missing",
}
"""Patterns in pydantic's messages, and the words that replace them."""


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    """Explain the first of pydantic's errors in one line that names the key."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = _keys(model) if "." in key else list(model.model_fields)
        return f"unknown key {key!r}; {nearest(key, known)}"
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, BaraError):
        return f"{key}: {cause}" if key else str(cause)
    rule = first["msg"]
    for theirs, ours in _PYDANTIC.items():
        rule = re.sub(theirs, ours, rule)
    return f"{key} {rule}, got {first['input']!r}"


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """List the whole names of all keys of a table, nested tables included."""
    found = []
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            found += _keys(section, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found
