"""One round in full, as far as the run's retention lets it be seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bara.ledger._reading import stored_page
from bara.ledger.books import Books
from bara.ledger.statements import Line, round_lines


@dataclass(frozen=True)
class Sheet:
    """One round in full, as far as it may be seen.

    Attributes:
        round: Which.
        settled: Whether it is.
        purse: [total, max_rounds, spent] before it.
        offer: What the allocator said before the bids were opened.
        belief: What it believed, if it tells.
        winners: What each was promised and paid.
        menu: What each n would have cost; None where bids are dropped.
        bids: What each client asked; None where bids are dropped.
    """

    round: int
    settled: bool
    purse: tuple[int, int, int]
    offer: Mapping[str, Any]
    belief: Mapping[str, Any] | None
    winners: list[Line] = field(default_factory=list)
    menu: list[int] | None = None
    bids: dict[str, int] | None = None


def kept(books: Books) -> bool:
    """Whether bids and menus may be seen once they are opened."""
    return books.opening.get("retention") == "keep"


def sheet(books: Books, number: int) -> Sheet | None:
    """One round that was promised. Under `drop` neither menu nor bids are shown, not even while they are there."""
    with books.store.read() as connection:
        page = stored_page(connection, books.chain.run, number, number)
    if not page or (promised := page[0][1].promised) is None:
        return None
    stored = page[0][1] if kept(books) else replace(page[0][1], sealed={})
    bids = stored.sealed.get("bids")
    return Sheet(
        number,
        stored.settled is not None,
        tuple(promised["purse"]),
        promised["offer"],
        promised["belief"],
        list(round_lines(number, stored)),
        stored.sealed.get("menu"),
        None if bids is None else dict(zip(bids["clients"], bids["prices"], strict=True)),
    )
