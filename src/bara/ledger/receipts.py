"""A ledger's head, written to a second place: what a chain alone cannot show, a removed tail or a rewritten whole."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from bara.errors import LedgerError
from bara.files import replacing


@dataclass(frozen=True)
class Receipt:
    """How far a run's ledger went at a time.

    Attributes:
        run: Whose ledger.
        events: How many events there were.
        head: The hash of the last of them.
    """

    run: str
    events: int
    head: str

    def write(self, path: Path) -> None:
        """Replace the receipt so that at any moment there is the old one or the new one."""
        write_whole(path, [json.dumps(asdict(self)), "\n"])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a receipt back."""
        try:
            receipt = cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise LedgerError(f"{path} is no receipt: {error}") from error
        if not isinstance(receipt.events, int):
            raise LedgerError(f"{path} is no receipt: its events are {receipt.events!r}; required is a number")
        return receipt


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a text, part by part, so that at any moment there is the old file or the new one, never half of one."""
    try:
        with replacing(path) as file:
            file.writelines(part.encode() for part in parts)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}; the run goes on with `bara resume`") from error
