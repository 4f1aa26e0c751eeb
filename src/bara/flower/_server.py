"""The server of a Flower app under a budget, with the session, folder and ledger of `bara run`."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from bara.errors import ConfigError, PausedError, TrainingError, WaitingError
from bara.flower import _app as app_identity
from bara.flower._app import PREFIX
from bara.flower._bid_collection import Attendance
from bara.flower._evaluation import EvaluateFunction, Measure
from bara.flower._exchange import check_engine
from bara.flower._federation import FlowerFederation, nobody_on_the_menu
from bara.flower._options import ServerOptions, app_options
from bara.flower._preflight import BLIND, check_run, check_strategy
from bara.flower._refusals import in_one_line
from bara.flower._strategies import capabilities
from bara.flower.identity import Directory, known_by, read_names
from bara.market import BACKS_OFF
from bara.options import check_options
from bara.protocols import Requirements, requirements_of
from bara.records import AwardedRound, RoundRecord, decimal_money, tell_money
from bara.runs.config import Config
from bara.runs.config_sections import KEPT, AppSection, ClientsSection, DataSection, TrainingSection
from bara.runs.engines import FLOWER_APP
from bara.runs.factory import build_allocator, build_mechanism, keeping, limits_of
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.runs.session import Session

log = logging.getLogger("flwr")


def start(
    strategy: Strategy,
    context: Context,
    grid: Grid,
    initial_arrays: ArrayRecord,
    num_rounds: int = 3,
    timeout: float | None = None,
    train_config: ConfigRecord | None = None,
    evaluate_config: ConfigRecord | None = None,
    evaluate_fn: EvaluateFunction | None = None,
    *,
    protects: bool = False,
) -> Result:
    """Run any strategy under a budget; takes the arguments of `strategy.start` and the context.

    The budget, the allocator and everything else come from the app's configuration:
    `[tool.flwr.app.config.bara]`. `bara.folder` names the run's folder; a run that is already in
    it is resumed.

    Args:
        strategy: Configures training and aggregates updates; the auction decides who trains.
        context: The context of the server, which holds the app's configuration.
        grid: Flower's grid.
        initial_arrays: The initial model.
        num_rounds: The deadline, unless `bara.budget.max-rounds` is set; 3 unless given, as in
            Flower.
        timeout: How many seconds clients may train, and evaluate, unless
            `bara.federation.train-seconds` and `evaluate-seconds` are set.
        train_config: The configuration sent with every training message.
        evaluate_config: The configuration sent with every evaluation message.
        evaluate_fn: The server's own evaluation; its metrics should include `accuracy` and `loss`.
        protects: Whether the app's clients train with local differential privacy if the mechanism
            asks for it.

    Returns:
        What `strategy.start` returns: the final arrays, and the metrics by round; for a paused
        run, those so far.
    """
    log.addFilter(in_one_line)
    check_strategy(strategy)
    tree = app_settings(context.run_config, num_rounds, timeout)
    names: dict[str, str] = {}
    names_file = tree.pop("names", None)
    if names_file:
        names = read_names(Path(str(names_file)))
    app = app_identity.describe_app(strategy, initial_arrays, context, grid)
    with _folder(tree, app, Directory(known_by(grid), names), grid) as folder:
        config = folder.config
        allocator = build_allocator(config)
        mechanism = build_mechanism(config)
        options = replace(
            _options(config, requirements_of(mechanism), grid, folder.path),
            names=names,
            blind=type(allocator) in BLIND and config.training.memory != "extrapolated",
        )
        check_run(strategy, initial_arrays, config, options, allocator)
        strategy.summary()
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
        session = Session(allocator, mechanism, federation, limits_of(config))
        if not folder.is_made:
            measure = federation.begin()
            if measure is not None and not options.blind:
                better = measure.better or "higher"
                log.info("bara: decisions are based on %s; %s is better", measure.name, better)
            config = _with_measure(config, measure)
            folder.config = config
        ended = folder.claim_books().ended()
        if ended is not None:
            log.info(
                "bara: the run in %s has already ended (%s): nobody is asked, here is its result",
                folder.path,
                ended,
            )
        try:
            result = play_run(config, partial(_show, federation), folder=folder, session=session)
        except TrainingError as error:
            if session.promised is None:
                raise
            raise TrainingError(
                f"{error}; the same `flwr run` trains the round again; its promises are taken back "
                f"by `bara ledger {folder.address} void {session.round} --reason TEXT`"
            ) from error.__cause__
        except PausedError as paused:
            then = "the books are closed; resume"
            if isinstance(paused, WaitingError):
                then = "then resume"
            log.warning("bara: %s; %s with the same `flwr run`", paused, then)
            if session.round <= 1:
                log.warning(
                    "bara: no round is settled: the Result holds the initial model, untrained"
                )
            return federation.result
    spent = tell_money(result.spent, result.currency)
    budget = tell_money(result.budget, result.currency)
    log.info("bara: %s; spent %s of %s", result.ended, spent, budget)
    return federation.result


def app_settings(
    app: Mapping[str, Any], num_rounds: int | None = None, timeout: float | None = None
) -> dict[str, Any]:
    """Return bara's keys in an app's configuration, which is flat and hyphenated, as a tree.

    Flower's command line accepts only keys that the app declares. So a key that is declared as ""
    counts as not set.

    Args:
        app: The app's configuration.
        num_rounds: The deadline, unless the configuration sets one.
        timeout: How many seconds clients may train, and evaluate, unless the configuration says.

    >>> tree = app_settings({"lr": 0.1, "bara.budget.total": 30, "bara.budget.max-rounds": 5})
    >>> tree["budget"]
    {'total': 30, 'max_rounds': 5}
    >>> tree["training"], tree["federation"]
    ({'memory': 'off'}, {'engine': 'flower-app'})
    """
    tree: dict[str, Any] = {}
    for key, value in app.items():
        if not key.startswith(PREFIX) or value == "":
            continue
        *sections, last = key.removeprefix(PREFIX).replace("-", "_").split(".")
        branch = tree
        for section in sections:
            branch = _section(branch, section)
        branch[last] = value
    budget = _section(tree, "budget")
    if "total" not in budget:
        raise ConfigError("bara.budget.total must be set: what all rounds together may cost")
    if num_rounds is not None:
        budget.setdefault("max_rounds", num_rounds)
    # Without a memory, a round's model is what the app's strategy makes of its winners alone.
    _section(tree, "training").setdefault("memory", "off")
    federation = _section(tree, "federation")
    if federation.setdefault("engine", FLOWER_APP) != FLOWER_APP:
        raise ConfigError(
            "bara.federation.engine must not be set in a Flower app, which is the engine itself"
        )
    if timeout is not None:
        for key in ("train_seconds", "evaluate_seconds"):
            federation.setdefault(key, float(timeout))
    return tree


def _with_measure(config: Config, measure: Measure | None) -> Config:
    """Return the configuration with the metric that was found, so that the books name it."""
    if measure is None:
        return config
    found = {"accuracy": measure.name}
    if measure.better is not None:
        found["better"] = measure.better
    return config.model_copy(update={"federation": config.federation.model_copy(update=found)})


def _section(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a section of the tree, new or not; refuse a value in its place."""
    section = tree.setdefault(name, {})
    if not isinstance(section, dict):
        raise ConfigError(
            f"bara.{name} must be a section with keys in the app's configuration, got {section!r}"
        )
    return section


def _folder(tree: dict[str, Any], app: AppSection, directory: Directory, grid: Grid) -> RunFolder:
    """Return the run in `bara.folder`, or a new one with as many clients as are connected.

    Args:
        tree: The keys of the run; `folder` is taken out.
        app: What identifies the app.
        directory: The names of the clients.
        grid: Flower's grid.
    """
    path = None
    given = tree.pop("folder", None)
    if given:
        path = Path(str(given)).resolve()  # the SuperLink's folder, maybe not where the user is
    if path is not None and (path / "config.toml").is_file():
        found = _found(path, tree, app)
        if found is not None:
            return found
    clients = _section(tree, "clients")
    count = clients.get("count", 0)
    patience = tree["federation"].get("patience", 600)
    check_options("the Flower app", {"count": count}, {"count": int}, prefix="bara.clients.")
    check_options(
        "the Flower app", {"patience": patience}, {"patience": float}, prefix="bara.federation."
    )
    # Before anybody is waited for; how many will come is not known yet.
    _checked({**tree, "clients": {**clients, "count": count or 2}})
    clients["count"] = _gathered(grid, count, patience, directory)
    config = _checked(tree)
    return RunFolder.new(path, config.model_copy(update={"app": app}))


def _found(path: Path, tree: dict[str, Any], app: AppSection) -> RunFolder | None:
    """Return the run in a folder, to go on as it was opened, or None if it was moved away.

    A run that has promised nothing yet is moved away if its configuration or the app has changed.

    Args:
        path: The folder.
        tree: The keys that the run would have if it were new.
        app: What identifies the app now.
    """
    folder = RunFolder.find(path)
    opened = folder.config.app or AppSection()  # an earlier version recorded none
    app_identity.check_app(path, opened, app)
    stored = folder.config.federation.options
    as_found = {key: stored[key] for key in ("accuracy", "better") if key in stored}
    filled = {
        "clients": {**tree.get("clients", {}), "count": folder.config.clients.count},
        "federation": {**as_found, **tree["federation"]},
    }
    others = app_identity.differing(
        Config.parse({**tree, **filled}).model_dump(),
        folder.config.model_copy(update={"app": None}).model_dump(),
    )
    changed = app_identity.differing(
        opened.model_dump(exclude={"run_id"}), app.model_dump(exclude={"run_id"})
    )
    if (others or changed) and folder.config.app:
        moved_to = folder.put_aside()
        if moved_to is not None:
            log.info(
                "bara: the run in %s had promised nothing: it was moved to %s and starts afresh",
                path,
                moved_to,
            )
            return None
    app_identity.check_training(path, opened, app)
    if others:
        log.warning(
            "bara: the run in %s keeps the configuration it began with; "
            "`bara ledger DIR topup AMOUNT --reason TEXT` adds money",
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
    """Wait until the clients are connected; return their number.

    Args:
        grid: Flower's grid.
        count: The number of nodes to wait for; 0 to wait until there are two and no more join.
        patience: How many seconds to wait at most.
        directory: The names of the clients.
    """
    before = -1
    now = 0
    end = time.monotonic() + patience
    attendance = Attendance(count or 2, directory)
    while time.monotonic() < end:
        if count:
            complete = now >= count
        else:
            complete = now >= 2 and now == before
        if complete:
            break
        check_engine()
        time.sleep(0.5)
        nodes = list(grid.get_nodes())
        attendance.show(nodes)
        before = now
        now = len(nodes)
    return count or max(now, 1)


def _options(config: Config, requirements: Requirements, grid: Grid, folder: Path) -> ServerOptions:
    """Return the settings of the server, from the configuration and what the mechanism requires."""
    return ServerOptions(
        **app_options(config),
        evidence="server" if requirements.evidence else "none",
        columns=requirements.columns,
        outliers=requirements.outliers,
        known_by=known_by(grid),
        measured=True,
        seed=config.seed,
        keeping=keeping(config, folder),
    )


def _checked(tree: dict[str, Any]) -> Config:
    """Return the configuration; refuse keys that would be ignored: the app itself decides."""
    config = Config.parse(tree)
    app_options(config)
    # A few keys of `training` are for the server, not for the app's clients.
    allowed = {name: getattr(config.training, name) for name in KEPT}
    changed = []
    if config.data != DataSection():
        changed.append("data")
    if config.training != TrainingSection(**allowed):
        changed.append("training")
    if config.app is not None:
        changed.append("app")
    plain = ClientsSection(count=config.clients.count)
    for key, value in config.clients:
        if value != getattr(plain, key):
            changed.append(f"clients.{key}")
    if changed:
        raise ConfigError(f"bara.{changed[0]} must not be set: the Flower app itself decides that")
    return config


def _show(federation: FlowerFederation, step: AwardedRound | RoundRecord) -> None:
    """Log a round as awarded or as settled."""
    if isinstance(step, AwardedRound):
        federation.note(step)
        _show_absences(step)
    elif step.round:
        _show_settled(step, federation.metric)


def _show_absences(awarded: AwardedRound) -> None:
    """Log whom an awarded round left out, and why nobody has won although clients bid."""
    round = awarded.purse.round
    show = awarded.purse.show
    if awarded.left_out is not None:
        for client, reason in awarded.left_out.reasons.items():
            if reason != BACKS_OFF:
                log.warning("bara: round %d: %s is left out: %s", round, client, reason)
    if awarded.award.n or not len(awarded.bids):
        return
    if len(awarded.costs):
        cost = int(awarded.costs[0])
        why = f"one client costs {show(cost)}, the round may cost {show(awarded.offer.cap(1))}"
    else:
        why = nobody_on_the_menu(awarded)
    log.warning("bara: round %d: nobody wins: %s", round, why)


def _show_settled(step: RoundRecord, metric: str | None) -> None:
    """Log a settled round.

    Args:
        step: The round.
        metric: The metric that the evaluation is of; None while nobody has reported one.
    """
    evaluation = step.evaluation
    measured = ""
    if evaluation.metric is not None:
        measured = f", {metric} {evaluation.metric:g}"
    elif metric is not None:
        measured = f", {metric} {evaluation.reported_accuracy:.4f}"
    purse = step.purse_after
    log.info(
        "bara: round %d of %d: %d of %d winners delivered, paid %s, spent %s of %s%s",
        step.round,
        purse.max_rounds,
        step.n,
        step.awarded.award.n,
        tell_money(decimal_money(step.paid), purse.currency),
        tell_money(decimal_money(purse.spent), purse.currency),
        tell_money(decimal_money(purse.total), purse.currency),
        measured,
    )
