"""What the market asks of its three partners. Small on purpose; implement one and the contract checks apply to it."""

from typing import Any, Protocol, runtime_checkable

from bara.records import Award, Belief, Bids, Delivery, Evaluation, Menu, Offer, Purse, RoundRecord


@runtime_checkable
class Allocator(Protocol):
    """Decides how much a round may cost."""

    def ask(self, purse: Purse) -> Offer:
        """What it would pay for each n, said before the bids are opened. Pure: asked twice, the same answer."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round, its whole menu included; the only thing that changes an allocator."""
        ...


@runtime_checkable
class Believer(Protocol):
    """An allocator that can say what it believes."""

    def belief(self) -> Belief:
        """What it believes now."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """Decides who is recruited and what they are paid."""

    @property
    def claims(self) -> frozenset[str]:
        """The properties (`bara.mechanisms.properties`) it promises."""
        ...

    def menu(self, bids: Bids) -> Menu:
        """What each n would cost, and the payments behind it. Pure."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """Learn quality or reputation from a settled round; one that learns nothing ignores it."""
        ...


@runtime_checkable
class Federation(Protocol):
    """Who bids and trains."""

    def evaluate(self) -> Evaluation:
        """The initial model, for round 0."""
        ...

    def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
        """This round's sealed bids. Asked twice, the same answer."""
        ...

    def train(self, round: int, award: Award) -> Delivery:  # noqa: A002
        """Train with the winners and evaluate the model that results."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """An allocator or mechanism that learns from bids or menus, and can say what, for ledgers that drop them."""

    def memory(self) -> Any:
        """What it has learned from bids and menus, as JSON can say it."""
        ...

    def recall(self, memory: Any) -> None:
        """Know it again, in a fresh one that is then told the rounds it came from, without their bids and menus."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A federation that keeps checkpoints; one that does not is trained again with the stored awards."""

    def checkpoint(self, last: int) -> int:
        """Load the newest whole checkpoint that is not later than round `last`; returns its round, 0 for none."""
        ...

    def recall(self, record: RoundRecord) -> None:
        """Pass a settled round, up to the loaded checkpoint, without training."""
        ...
