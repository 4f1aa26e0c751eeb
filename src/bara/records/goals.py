"""The goal of a run: the best model for the money, a cheap target, or what is worth its cost."""

from dataclasses import dataclass
from typing import Literal

from bara.errors import ConfigError

Otherwise = Literal["spend", "stop", "ask"]
"""What to do when a target looks out of reach."""


@dataclass(frozen=True)
class Goal:
    """The purpose that the budget serves; by default, the best model that the whole budget can buy.

    Attributes:
        target: The accuracy to reach, as cheaply as possible; None for no target.
        confidence: The probability with which the kept model must have reached the target.
        worth: What a point of accuracy is worth, in micro-units; 0 to spend the whole budget.
        otherwise: What to do when the target looks out of reach: `spend` on, `stop`, or `ask` for
            approval.
        min_clients: How many clients must have delivered before the target counts as reached; None
            for half of those that bid.
    """

    target: float | None = None
    confidence: float = 0.9
    worth: int = 0
    otherwise: Otherwise = "spend"
    min_clients: int | None = None

    def __post_init__(self) -> None:
        """Refuse fractions outside of 0 to 1, a negative worth, and two goals at once."""
        if self.target is not None:
            _check_fraction("target", self.target)
        _check_fraction("confidence", self.confidence)
        if self.worth < 0:
            raise ConfigError(
                "budget.worth must not be negative: "
                "it is what a point of accuracy is worth, in money"
            )
        if self.min_clients is not None and self.target is None:
            raise ConfigError("budget.min_clients is set, but budget.target is not; set both")
        if self.worth and self.target is not None:
            raise ConfigError("budget.target and budget.worth are both set; give one of them")

    @property
    def name(self) -> str | None:
        """The name under which allocators declare this goal: `target`, `worth`, or None."""
        if self.target is not None:
            return "target"
        if self.worth:
            return "worth"
        return None


def _check_fraction(name: str, value: float) -> None:
    """Refuse a value that is not between 0 and 1, with a hint where a percentage was given."""
    if 0 < value < 1:
        return
    hint = f", like {value / 100:g}" if 1 < value < 100 else ""
    raise ConfigError(f"budget.{name} must be a fraction between 0 and 1{hint}; got {value:g}")
