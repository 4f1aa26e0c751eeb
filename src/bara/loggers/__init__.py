"""Loggers that follow a run in TensorBoard, MLflow or a tool of the user's own.

A logger is told each settled round after it is in the books. If a logger fails, this is reported
once and the logger is told nothing more; the run goes on, because money is at stake.
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

from bara.errors import BaraError, ConfigError
from bara.plugins import Registry, explain
from bara.records import AwardedRound, RoundRecord, decimal_money
from bara.text import note


@runtime_checkable
class Logger(Protocol):
    """A logger: is told every settled round of a run.

    The constructor of a logger gets those of the arguments `place` (where to log), `run` (the run's
    name) and `config` (the run's configuration, as nested mappings) that it has parameters for.
    """

    def log(self, record: RoundRecord) -> None:
        """Log a settled round."""
        ...

    def close(self, *, finished: bool) -> None:
        """Release all resources at the end of the run or of this session.

        Args:
            finished: Whether the run has ended; otherwise it was stopped and may be resumed.
        """
        ...


LOGGERS: Registry[Logger] = Registry(
    "logger",
    {
        "tensorboard": "bara.loggers.tensorboard:TensorBoardLogger",
        "mlflow": "bara.loggers.mlflow:MlflowLogger",
    },
    Logger,
)
"""The built-in loggers, by name."""


@final
class Loggers(contextlib.AbstractContextManager["Loggers"]):
    """The loggers of a run.

    Args:
        specs: The loggers as written on the command line: `tensorboard`, `tensorboard:DIR`,
            `mlflow:URI`, `my_package.module:MyLogger:PLACE`.
        folder: The run's folder, in which loggers without a place log to a subfolder.
        config: The run's configuration.
    """

    def __init__(self, specs: Sequence[str], folder: Path, config: Mapping[str, Any]) -> None:
        run = folder.resolve().name
        self._loggers: dict[str, Logger] = {}
        for spec in specs:
            name, place = parse_log(spec)
            own = place or str(folder / name.rpartition(":")[2])
            try:
                self._loggers[spec] = LOGGERS.build(name, place=own, run=run, config=config)
            except BaraError:
                raise
            except Exception as error:  # a third-party library may raise anything
                raise ConfigError(f"cannot open the logger {spec!r}: {error}") from error

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Tell every logger a settled round; awarded rounds are not logged."""
        if isinstance(step, RoundRecord):
            for spec, logger in list(self._loggers.items()):
                with self._reported(spec):
                    logger.log(step)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close all loggers; the run has finished unless an exception stopped it."""
        for spec, logger in list(self._loggers.items()):
            with self._reported(spec):
                logger.close(finished=error is None)

    @contextlib.contextmanager
    def _reported(self, spec: str) -> Any:
        """Report a logger's failure, if there is one, and drop the logger."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - an unreachable server, a full disk: anything
            with contextlib.suppress(Exception):
                self._loggers.pop(spec).close(finished=False)
            note(f"bara: the logger {spec!r} failed and logs nothing more: {explain(error)}")


def parse_log(spec: str) -> tuple[str, str | None]:
    """Return the name and the place of a logger, as written on the command line.

    >>> parse_log("tensorboard"), parse_log("mlflow:http://localhost:5000")
    (('tensorboard', None), ('mlflow', 'http://localhost:5000'))
    >>> parse_log("mine.module:Mine:there")
    ('mine.module:Mine', 'there')
    """
    first, _, rest = spec.partition(":")
    if rest and first not in LOGGERS.names():
        attribute, _, rest = rest.partition(":")
        first = f"{first}:{attribute}"
    return first, rest or None


def metrics(record: RoundRecord) -> dict[str, float]:
    """Return the numbers of a round under the names that every logger uses.

    Unknown numbers are left out; amounts are in units of the budget.
    """
    evaluation = record.evaluation
    purse = record.purse_after
    belief = record.awarded.belief
    forecast = None
    if belief is not None and belief.plan is not None:
        forecast = belief.plan.accuracy
    found = {
        "accuracy": evaluation.reported_accuracy,
        "loss": evaluation.reported_loss,
        "clients/delivered": record.n,
        "clients/void": len(record.delivery.void),
        "money/cost": decimal_money(record.paid),
        "money/spent": decimal_money(purse.spent),
        "money/left": decimal_money(purse.left),
        "forecast/accuracy": forecast,
    }
    return {name: float(value) for name, value in found.items() if value is not None}
