"""A Flower app's server under a budget: the same session, folder and ledger as `bara run`."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from bara.errors import ConfigError, PausedError, WaitingError
from bara.flower import _app as app_identity
from bara.flower._app import PREFIX
from bara.flower._bid_collection import Attendance
from bara.flower._evaluation import EvaluateFunction
from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions, engine_options
from bara.flower._preflight import BLIND, check_run, check_strategy
from bara.flower._strategies import capabilities
from bara.flower.identity import Directory, known_by, read_names
from bara.plugins import check_options
from bara.protocols import Requirements, requirements_of
from bara.records import AwardedRound, RoundRecord, decimal_money, tell_money
from bara.runs.config import Config, set_key
from bara.runs.engines import FLOWER_APP
from bara.runs.factory import build_allocator, build_mechanism, keeping
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.runs.sections import KEPT, AppSection, ClientsSection, DataSection, TrainingSection
from bara.runs.session import Session

_OPTIONS = (
    "bid_seconds",
    "train_seconds",
    "evaluate_seconds",
    "fewest",
    "patience",
    "accuracy",
    "better",
    "same_shapes",
)

log = logging.getLogger("flwr")


def start(
    strategy: Strategy,
    context: Context,
    grid: Grid,
    initial_arrays: ArrayRecord,
    num_rounds: int | None = None,
    timeout: float | None = None,
    train_config: ConfigRecord | None = None,
    evaluate_config: ConfigRecord | None = None,
    evaluate_fn: EvaluateFunction | None = None,
    *,
    protects: bool = False,
) -> Result:
    """Run any strategy under a budget; takes what `strategy.start` takes, and the context.

    The budget, the allocator and everything else come from the app's configuration:
    `[tool.flwr.app.config.bara]`. `bara.folder` names the run's folder; where there is a run in it,
    that run goes on.

    Args:
        strategy: Configures and aggregates; the auction decides who trains.
        context: The server's; holds the app's configuration.
        grid: Flower's.
        initial_arrays: The initial model.
        num_rounds: The deadline, unless `bara.budget.max-rounds` says otherwise.
        timeout: Seconds winners may train, unless `bara.federation.train-seconds` says otherwise.
        train_config: Sent with every training message.
        evaluate_config: Sent with every evaluation message.
        evaluate_fn: The server's own evaluation; its metrics must hold `accuracy`, better `loss`,
            too.
        protects: The app's clients train with local differential privacy where the mechanism asks
            for it.

    Returns: What `strategy.start` returns: the final arrays, and metrics by round; of a paused run
        those so far.
    """
    check_strategy(strategy)
    tree = settings(context.run_config, num_rounds, timeout)
    names = read_names(Path(str(given))) if (given := tree.pop("names", None)) else {}
    app = app_identity.describe(strategy, initial_arrays, context, grid)
    with _folder(tree, app, Directory(known_by(grid), names), grid) as folder:
        config = folder.config
        allocator, mechanism = build_allocator(config), build_mechanism(config)
        options = replace(
            _options(config, requirements_of(mechanism), grid, folder.path),
            names=names,
            blind=type(allocator) in BLIND,
        )
        check_run(strategy, config, options, allocator)
        federation = FlowerFederation(
            lambda: grid,
            strategy,
            initial_arrays,
            evaluate_fn,
            options=options,
            capabilities=capabilities(
                strategy, protects=protects, measures=evaluate_fn is not None, repeatable=False
            ),
            train_config=train_config,
            evaluate_config=evaluate_config,
        )
        log.info("bara: run folder %s", folder.path.resolve())
        session = Session(allocator, mechanism, federation)
        if (ended := folder.claim_books().ended()) is not None:
            log.info(
                "bara: the run in %s has already ended (%s): nobody is asked, here is its result",
                folder.path,
                ended,
            )
        try:
            result = play_run(config, _show, folder=folder, session=session)
        except PausedError as paused:
            then = "the books are closed; resume"
            if isinstance(paused, WaitingError):
                then = "then resume"
            log.warning("bara: %s; %s with the same `flwr run`", paused, then)
            return federation.result
    spent, budget = (
        tell_money(amount, result.currency) for amount in (result.spent, result.budget)
    )
    log.info("bara: %s; spent %s of %s", result.ended, spent, budget)
    return federation.result


def settings(
    app: Mapping[str, Any], num_rounds: int | None = None, timeout: float | None = None
) -> dict[str, Any]:
    """The tree of bara's keys in an app's configuration, which Flower holds flat and hyphenated.

    Flower takes only keys on its command line that the app declares: one that is declared as "" is
    not set, and `bara.set` sets any others.

    >>> settings({"lr": 0.1, "bara.budget.total": 30, "bara.budget.max-rounds": 5})
    {'budget': {'total': 30, 'max_rounds': 5}, 'training': {'memory': 'off'}, 'federation': {'engine': 'flower-app'}}
    """
    tree: dict[str, Any] = {}
    for key, value in app.items():
        if key.startswith(PREFIX) and value != "":  # which says that it is not set
            *sections, last = key.removeprefix(PREFIX).replace("-", "_").split(".")
            branch = tree
            for section in sections:
                branch = _section(branch, section)
            branch[last] = value
    for change in filter(None, map(str.strip, str(tree.pop("set", "")).split(";"))):
        set_key(tree, change)
    if num_rounds is not None:
        _section(tree, "budget").setdefault("max_rounds", num_rounds)
    _section(tree, "training").setdefault(
        "memory", "off"
    )  # an app's own aggregation, unless it says otherwise
    federation = _section(tree, "federation")
    if federation.setdefault("engine", FLOWER_APP) != FLOWER_APP:
        raise ConfigError(
            "bara.federation.engine must not be set in a Flower app, which is the engine itself"
        )
    if timeout is not None:
        federation.setdefault("train_seconds", float(timeout))
    return tree


def _section(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """That section of the tree; a value where keys belong is refused."""
    section = tree.setdefault(name, {})
    if not isinstance(section, dict):
        raise ConfigError(
            f"bara.{name} must be a section with keys in the app's configuration, got {section!r}"
        )
    return section


def _folder(tree: dict[str, Any], app: AppSection, directory: Directory, grid: Grid) -> RunFolder:
    """The run that is in `bara.folder`, or a new one; a count of 0 stands for the clients that are connected."""
    given = tree.pop("folder", None)
    path = Path(str(given)) if given else None
    if (
        path is not None
        and (path / "config.toml").is_file()
        and (found := _found(path, tree, app)) is not None
    ):
        return found
    clients = _section(tree, "clients")
    count, patience = clients.get("count", 0), tree["federation"].get("patience", 600)
    check_options("the Flower app", {"count": count}, {"count": int}, prefix="bara.clients.")
    check_options(
        "the Flower app", {"patience": patience}, {"patience": float}, prefix="bara.federation."
    )
    clients["count"] = _gathered(grid, count, patience, directory)
    config = Config.parse(tree)
    _refuse_what_the_app_decides(config)
    return RunFolder.new(path, config.model_copy(update={"app": app}))


def _found(path: Path, tree: dict[str, Any], app: AppSection) -> RunFolder | None:
    """The run that is there, which goes on as it was opened; None where it had promised nothing and was put aside."""
    folder = RunFolder.find(path)
    opened = folder.config.app or AppSection()  # an earlier version recorded none
    app_identity.check_app(path, opened, app)
    count = {"clients": {**tree.get("clients", {}), "count": folder.config.clients.count}}
    others = app_identity.differing(
        Config.parse({**tree, **count}).model_dump(),
        folder.config.model_copy(update={"app": None}).model_dump(),
    )
    changed = app_identity.differing(
        opened.model_dump(exclude={"run_id"}), app.model_dump(exclude={"run_id"})
    )
    if (others or changed) and folder.config.app and (place := folder.put_aside()) is not None:
        log.info(
            "bara: the run in %s had promised nothing: it was moved to %s and starts afresh",
            path,
            place,
        )
        return None
    app_identity.check_training(path, opened, app)
    if others:
        log.warning(
            "bara: the run in %s keeps the configuration it began with; `bara ledger DIR topup` adds money",
            path,
        )
    if changed and folder.config.app:
        log.warning(
            "bara: the run in %s goes on with an app whose %s changed since it began",
            path,
            " and ".join(changed),
        )
    return folder


def _gathered(grid: Grid, count: int, patience: float, directory: Directory) -> int:
    """Wait for so many nodes, or, where the count is 0, until no more join; returns how many clients there are."""
    before, now = -1, 0
    end, attendance = time.monotonic() + patience, Attendance(count or 2, directory)
    while time.monotonic() < end and (now < count if count else now < 2 or now != before):
        time.sleep(0.5)
        nodes = list(grid.get_nodes())
        attendance.show(nodes)
        before, now = now, len(nodes)
    return count or max(now, 1)


def _options(config: Config, requirements: Requirements, grid: Grid, folder: Path) -> ServerOptions:
    return ServerOptions(
        **engine_options("the Flower app", config, *_OPTIONS, prefix="bara.federation."),
        evidence="server" if requirements.evidence else "none",
        columns=requirements.columns,
        outliers=requirements.outliers,
        known_by=known_by(grid),
        measured=True,
        seed=config.seed,
        keeping=keeping(config, folder),
        unit=config.purse().unit,
    )


def _refuse_what_the_app_decides(config: Config) -> None:
    """A key that would be ignored is an error, not a surprise."""
    training = TrainingSection(**{name: getattr(config.training, name) for name in KEPT})
    changed = [
        name
        for name, plain in (("data", DataSection()), ("training", training))
        if getattr(config, name) != plain
    ]
    if config.app is not None:
        changed.append("app")
    plain = ClientsSection(count=config.clients.count)
    changed += [f"clients.{key}" for key, value in config.clients if value != getattr(plain, key)]
    if changed:
        raise ConfigError(f"bara.{changed[0]} must not be set: the Flower app itself decides that")


def _show(step: AwardedRound | RoundRecord) -> None:
    if (
        isinstance(step, RoundRecord) and step.round
    ):  # the initial model's metrics are logged as Flower does
        accuracy, metric = step.evaluation.reported_accuracy, step.evaluation.metric
        purse = step.purse_after
        log.info(
            "bara: round %d of %d: %d of %d winners delivered, paid %s, spent %s of %s, %s",
            step.round,
            purse.max_rounds,
            step.n,
            step.awarded.award.n,
            *(
                tell_money(decimal_money(one), purse.currency)
                for one in (step.paid, purse.spent, purse.total)
            ),
            f"accuracy {accuracy:.4f}" if metric is None else f"metric {metric:g}",
        )
