"""The register of a run's known clients, by which bids from anybody else are left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from bara.errors import InvalidRecordError


@dataclass(frozen=True)
class Entry:
    """The entry of a client in a register, in micro-units.

    Attributes:
        limit: The most that the client is paid over the whole run; None for no limit of its own.
        fee: The most that the client is paid for one round; None for no such limit.
    """

    limit: int | None = None
    fee: int | None = None

    def __post_init__(self) -> None:
        """Refuse amounts that are not positive."""
        for name, amount in (("limit", self.limit), ("fee", self.fee)):
            if amount is not None and amount <= 0:
                raise InvalidRecordError(f"a client's {name} must be positive, got {amount}")


Register = Mapping[str, Entry]
"""What is known of each client, by its name."""
