"""What a budget is for: the best model it can buy, a target as cheaply as possible, or what is worth its cost."""

from dataclasses import dataclass
from typing import Literal

from bara.errors import ConfigError

Otherwise = Literal["spend", "stop", "ask"]


@dataclass(frozen=True)
class Goal:
    """What to spend the budget for; unless it says otherwise, for the best model that all of it can buy.

    Attributes:
        target: The accuracy to reach, as cheaply as possible; None for no target.
        confidence: How sure to be that the kept model has reached it.
        worth: What a point of accuracy is worth, in micro-units; 0 where money is there to be
            spent.
        otherwise: What to do when the target looks out of reach: `spend` on, `stop`, or `ask` for
            approval.
    """

    target: float | None = None
    confidence: float = 0.9
    worth: int = 0
    otherwise: Otherwise = "spend"

    def __post_init__(self) -> None:
        """Refuse goals that cannot be meant."""
        for name, value in (("target", self.target), ("confidence", self.confidence)):
            if value is not None and not 0 < value < 1:
                meant = f", like {value / 100:g}" if 1 < value < 100 else ""
                raise ConfigError(
                    f"budget.{name} must be a fraction between 0 and 1{meant}; got {value:g}"
                )
        if self.worth < 0:
            raise ConfigError(
                "budget.worth must not be negative: it is what a point of accuracy is worth, in money"
            )
        if self.worth and self.target is not None:
            raise ConfigError("budget.target and budget.worth are both set; give one of them")

    @property
    def name(self) -> str | None:
        """Which goal it is, as allocators declare it: `target` or `worth`; None for the best model for the money."""
        return "target" if self.target is not None else "worth" if self.worth else None
