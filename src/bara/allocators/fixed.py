"""The same number of clients every round."""

from dataclasses import dataclass

from bara.errors import ConfigError
from bara.records import Offer, Purse, RoundRecord, Shortfall


@dataclass(frozen=True)
class Fixed:
    """Recruits n clients every round while the money lasts.

    Args:
        n: How many.
        shortfall: When n can no longer be paid: end the run (`stop`, as the paper enumerates n) or `shrink`.
    """

    n: int
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a number that recruits nobody."""
        if self.n < 1:
            raise ConfigError(f"allocator 'fixed' has n = {self.n}; required is at least 1")

    def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - the protocol's signature
        """The same n, whatever is left."""
        return Offer.recruit(self.n, shortfall=self.shortfall)

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""
