"""Hand each settled round to what people already watch their trainings with: TensorBoard, MLflow, or a logger of yours.

A logger is told a round after it is in the books. One that fails is reported once and told nothing
more; the run, in which money moves, goes on.
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
    """Is told every settled round; made from `place`, `run` (its name) and `config` (its tree), what it asks for."""

    def log(self, record: RoundRecord) -> None:
        """Write a round down."""
        ...

    def close(self, *, finished: bool) -> None:
        """Let go, at the end of the run or of this session."""
        ...


LOGGERS: Registry[Logger] = Registry(
    "logger",
    {
        "tensorboard": "bara.loggers.tensorboard:TensorBoardLogger",
        "mlflow": "bara.loggers.mlflow:MlflowLogger",
    },
    Logger,
)
"""Our own loggers, by name."""


@final
class Loggers(contextlib.AbstractContextManager["Loggers"]):
    """All loggers of a run.

    Args:
        specs: Each as one writes it on the command line: `tensorboard`, `tensorboard:DIR`,
            `mlflow:URI`, `my_package.module:MyLogger:PLACE`.
        folder: The run's folder, in which those without a place of their own have one.
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
            except Exception as error:  # another's library may raise anything
                raise ConfigError(f"cannot open the logger {spec!r}: {error}") from error

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Tell each of them a settled round."""
        if isinstance(step, RoundRecord):
            for spec, logger in list(self._loggers.items()):
                with self._reported(spec):
                    logger.log(step)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close them; the run has finished unless something stopped it."""
        for spec, logger in list(self._loggers.items()):
            with self._reported(spec):
                logger.close(finished=error is None)

    @contextlib.contextmanager
    def _reported(self, spec: str) -> Any:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a server that is away, a full disk: anything
            with contextlib.suppress(Exception):
                self._loggers.pop(spec).close(finished=False)
            note(f"bara: the logger {spec!r} failed and logs nothing more: {explain(error)}")


def parse_log(spec: str) -> tuple[str, str | None]:
    """A logger's name and its place.

    >>> parse_log("tensorboard"), parse_log("mlflow:http://localhost:5000"), parse_log("mine.module:Mine:there")
    (('tensorboard', None), ('mlflow', 'http://localhost:5000'), ('mine.module:Mine', 'there'))
    """
    first, _, rest = spec.partition(":")
    if rest and first not in LOGGERS.names():
        attribute, _, rest = rest.partition(":")
        first = f"{first}:{attribute}"
    return first, rest or None


def metrics(record: RoundRecord) -> dict[str, float]:
    """A round in numbers, by the names that every logger uses; amounts in the budget's unit."""
    evaluation, purse, belief = record.evaluation, record.purse_after, record.awarded.belief
    found = {
        "accuracy": evaluation.reported_accuracy,
        "loss": evaluation.reported_loss,
        "clients/delivered": record.n,
        "clients/void": len(record.delivery.void),
        "money/cost": decimal_money(record.paid),
        "money/spent": decimal_money(purse.spent),
        "money/left": decimal_money(purse.left),
        "forecast/accuracy": None
        if belief is None or belief.plan is None
        else belief.plan.accuracy,
    }
    return {name: float(value) for name, value in found.items() if value is not None}
