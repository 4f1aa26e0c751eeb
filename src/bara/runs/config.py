"""One experiment as a validated configuration: TOML in, TOML out, every default visible."""

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
    model_serializer,
)

from bara.datasets import is_table
from bara.errors import BaraError, ConfigError, InvalidMoneyError, InvalidRecordError
from bara.files import read_whole
from bara.plugins import OBJECT, Handed, nearest, toml_value
from bara.records import MICRO, Purse, decimal_money, money
from bara.runs.data import settled
from bara.runs.sections import (
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
from bara.server.metrics import metric_of_app
from bara.text import UNSTORABLE

Source = Union["Config", Mapping[str, Any], str, Path, None]
"""What an experiment can be read from."""

FLOWER_APP = "flower-app"
"""What the configuration of a Flower app's run has for an engine: its nodes are reached from its own server alone."""


OWN_LOOP = "own-loop"
"""What the configuration of a run has for an engine that a program of the user's own plays (`bara.open_session`)."""

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
        """Who trains elsewhere decides data, clients and training there: our defaults say nothing of them."""
        tree: dict[str, Any] = dump(self)
        if self.app is None:
            tree.pop("app", None)
        if self.federation.engine in (FLOWER_APP, OWN_LOOP):
            tree.pop("data", None)
            tree["clients"] = {"count": self.clients.count}
            tree["training"] = {key: getattr(self.training, key) for key in KEPT}
        if self.federation.engine == OWN_LOOP:
            tree.pop("training")
            tree["federation"].pop("workers", None)
        return tree

    def __init__(self, /, **keys: Any) -> None:
        """Every section as a table, or its main key as a lone value (`budget=300`, `allocator=MyAllocator()`)."""
        try:
            super().__init__(**keys)
        except ValidationError as error:
            raise ConfigError(_explain(type(self), error)) from None

    @classmethod
    def load(cls, source: Source = None, changes: Sequence[str] = (), **keys: Any) -> Self:
        """Read an experiment and change some of its keys.

        What is new has a memory, unless it is turned off: extrapolated, where our engines train and
        validation data are apart from those that are reported.

        Args:
            source: A TOML file, a preset by its name, a mapping, another configuration, or None for
                the defaults.
            changes: Single keys as the command line writes them (`budget.total=600`).
            **keys: Tables, of which the keys given are changed; or lone values for a table's main
                key (`budget=600`, `allocator=MyAllocator`).

        >>> Config.load(budget=600, clients={"count": 8}).budget.total
        600.0
        """
        tree = _tree(source)
        for change in changes:
            set_key(tree, change)
        for key, value in keys.items():
            change_key(tree, key, value)
        config = settled(cls.parse(tree))
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
                raise ConfigError(
                    f"{key} must be text without NUL or lone surrogates, got {value!r}"
                )
        try:
            config = cls(**tree)
            config.check_cap()
            if config.federation.engine in OURS:
                config.clients.check()
                config.training.check()
            if config.app is not None and config.federation.engine != FLOWER_APP:
                raise ConfigError("app is set; only the server of a Flower app may set it")
            config.budget.goal  # noqa: B018 - refused here, before anything is built
            if config.training.memory == "extrapolated" and config.data.held_out == "same":
                raise ConfigError(
                    'training.memory = "extrapolated" learns from the validation data, and data.held_out = "same" '
                    'leaves no other data to report on; use data.held_out = "halves", or training.memory = "plain"'
                )
        except (InvalidMoneyError, InvalidRecordError) as error:
            raise ConfigError(str(error)) from None
        return config

    @property
    def dataset(self) -> str:
        """What is learned, by name."""
        app = self.app.name.rpartition("/")[2] if self.app else ""
        name = (
            Path(self.data.name).name.partition(".")[0]
            if is_table(self.data.name)
            else self.data.name
        )
        return bare(name if self.federation.engine in WITH_DATA else app or self.federation.engine)

    @property
    def metric(self) -> str:
        """What evaluations tell; `bara.server.metrics.metric_title` is what people read."""
        ours = self.federation.engine in WITH_DATA
        return str(self.training.metric) if ours else metric_of_app(self.federation.options)

    def check_cap(self) -> None:
        """Refuse a budget that cannot be, and a cap that nobody can be paid."""
        unit, cap = self.purse().unit, self.ledger.client_cap
        if cap is not None and money(cap) % unit:
            raise ConfigError(
                f"ledger.client_cap must be whole in the smallest unit of budget.currency, got {cap}"
            )

    def identity(self) -> dict[str, Any]:
        """What a result says of what was run."""
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
        """The full purse."""
        return Purse.of(self.budget.total, self.budget.max_rounds, self.budget.currency)

    def with_allocator(self, spec: Any, seed: int) -> Self:
        """The same experiment under another allocator (`even:carry_over=true`, a class, an object) and seed."""
        return self.model_copy(
            update={"allocator": AllocatorSection.model_validate(spec), "seed": seed}
        )

    def with_budget(self, share: float) -> Self:
        """The same experiment with a part of its budget, or a multiple of it."""
        return self.with_total(decimal_money(self.purse().total) * share)

    def with_total(self, total: float) -> Self:
        """The same experiment with another budget, rounded to what can be paid."""
        unit = self.purse().unit / MICRO
        total = round(round(total / unit) * unit, 6)
        config = self.model_copy(update={"budget": self.budget.model_copy(update={"total": total})})
        config.purse()
        return config

    def parts(self) -> dict[str, Any]:
        """The classes and objects that were handed over where a name would stand, by section, or by key."""
        sections = [
            (key, one)
            for key in type(self).model_fields
            if isinstance(one := getattr(self, key), Table)
        ]
        inner = (
            (f"{key}.{name}", value)
            for key, one in sections
            for name, value in one
            if isinstance(value, Handed)
        )
        parts = {key: one.part for key, one in sections if one.part is not None}
        return parts | {key: value.part for key, value in inner}

    def handed_over(self) -> list[str]:
        """The sections that name a part which only Python can hand over, not a file."""
        named = flat(self.model_dump(mode="json"))
        found = [
            key.partition(".")[0] for key, value in named.items() if str(value).startswith(OBJECT)
        ]
        return list(dict.fromkeys(found))

    def with_parts(self, **parts: Any) -> Self:
        """The same experiment with what it only names; refused where it names another.

        Args: **parts: By section (`allocator=MyAllocator()`), or by key there (`training={"model":
            MyModel}`).
        """
        changes: dict[str, Any] = {}
        for key, part in parts.items():
            section = getattr(self, key, None)
            if isinstance(part, Mapping) and isinstance(section, Section):
                changes[key] = section.model_copy(
                    update={name: _same(section, name, one) for name, one in part.items()}
                )
                continue
            if not isinstance(section, Table) or not section.OF_PART:
                raise ConfigError(
                    f"{key!r} is not a part of a run; the parts are allocator, mechanism, federation, data"
                )
            changes[key] = section.handed(part)
        return self.model_copy(update=changes)

    def to_toml(self) -> str:
        """The whole configuration, every default included."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))


def _same(section: Section, name: str, part: Any) -> Any:
    """A part of a section by what it is called there; refused where that is another."""
    given, known = Handed.name_of(part), getattr(section, name, None)
    if str(given) != str(known):
        raise ConfigError(
            f"the run's {name} is {bare(str(known))!r}, got {bare(str(given))!r}; hand over the same"
        )
    return given


_SHIPPED = {"presets": "paper/presets", "suites": "studies/suites"}
"""Where the TOML files of each kind lie."""


def shipped(kind: str) -> dict[str, Path]:
    """The TOML files that come with bara, `presets` (the paper's experiments) or `suites`, by name.

    >>> shipped("presets")["figures-digits"].name
    'figures-digits.toml'
    """
    place = Path(__file__).parents[1] / _SHIPPED[kind]
    return {path.stem: path for path in sorted(place.glob("*.toml"))}


def read_toml(path: Path) -> dict[str, Any]:
    """The tree a TOML file holds."""
    try:
        return tomllib.loads(read_whole(path, plain=False))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {str(path)!r}") from None
    except (ValueError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None


def set_key(tree: dict[str, Any], change: str) -> None:
    """Change one key of a tree, written `budget.total=600`."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {change!r} must be KEY=VALUE, like budget.total=600")
    _put(tree, key.strip(), toml_value(text), f"--set {change!r}")


def _put(tree: dict[str, Any], key: str, value: Any, what: str) -> None:
    """Set a key by its whole name, `budget.total`."""
    *sections, last = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{what}: {section!r} is not a section")
    tree[last] = value


_WHOLE = {"allocator", "mechanism"}
"""Sections whose other keys are the part's own options: another part has none of them."""


def change_key(tree: dict[str, Any], key: str, value: Any) -> None:
    """Change a key, some keys of a table, or the main key of one."""
    section = Config.model_fields[key].annotation if key in Config.model_fields else None
    main = getattr(section, "MAIN", None)
    if isinstance(value, Mapping) and (key not in _WHOLE or value.keys().isdisjoint({"name"})):
        for name, inner in value.items():
            _put(tree, f"{key}.{name}", inner, f"{key}={dict(value)!r}")
    elif main is None or key in _WHOLE:
        _put(tree, key, value, f"{key}={value!r}")
    else:
        _put(tree, f"{key}.{main}", value, f"{key}={value!r}")


def _tree(source: Source) -> dict[str, Any]:
    """The keys of a source, free to be changed."""
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
    return read_toml(path if path.exists() else shipped("presets").get(str(path), path))


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Keys as one writes them after --set."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= (
            flat(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {f"{prefix}{key}": value}
        )
    return found


def _without_none(tree: Any) -> Any:
    """TOML has no null: a key that is not set is not written."""
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
"""Pydantic's words, and ours."""


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    """The first of pydantic's findings, as one line that names the key."""
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
    found = []
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            found += _keys(section, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found
