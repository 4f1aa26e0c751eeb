"""The folder a run leaves behind: configuration, rounds as they were settled, result."""

import json
from datetime import UTC, datetime
from pathlib import Path

from bara.errors import ConfigError
from bara.experiments.config import Config
from bara.experiments.results import Result, round_json
from bara.records import AwardedRound, RoundRecord, decimal_money


class RunFolder:
    """Writes a run down while it goes on.

    Args:
        path: A folder that is not there yet or is empty; None for a new one below `runs/`.
        config: What is run.
    """

    def __init__(self, path: Path | None, config: Config) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
        self.path = path or Path("runs") / f"{stamp}-{config.dataset}-{config.allocator.name.rpartition(':')[2]}"
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ConfigError(f"{str(self.path)!r} is there already; required is a new or empty folder for --out")
        self._config = config

    def observe(self, step: AwardedRound | RoundRecord) -> None:
        """Append a settled round, with each winner's payment and each failure's reason; the first makes the folder."""
        if isinstance(step, RoundRecord):
            if step.round == 0:
                self._open()
            paid = {client: decimal_money(amount) for client, amount in step.payments.items()}
            entry = {**round_json(step), "payments": paid, "void": dict(step.delivery.void)}
            with (self.path / "rounds.jsonl").open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def _open(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "config.toml").write_text(self._config.to_toml())
        except OSError as error:
            raise ConfigError(f"cannot write to the folder {str(self.path)!r}: {error.strerror}") from None

    def finish(self, result: Result, report: str) -> dict[str, str]:
        """Write the result and the report; returns what is where."""
        (self.path / "result.json").write_text(json.dumps(result.to_json(), indent=1) + "\n")
        (self.path / "report.html").write_text(report)
        return {"report": str(self.path / "report.html"), "folder": str(self.path)}
