"""An allocator of your own against two of bara's.

It lets half of the rounds pass and spends in the others.
"""

import bara


class LateBloomer:
    """Skips the first half of the rounds, then spends what is left evenly."""

    def ask(self, purse):
        """What this round may cost, said before the bids are opened."""
        if purse.round <= purse.max_rounds // 2:
            return bara.Offer.skip()
        return bara.Offer.spend(purse.left // purse.rounds_left)

    def tell(self, record):
        """Learns nothing."""


found = bara.compare(
    federation="synthetic",
    budget={"total": 200, "max_rounds": 60},
    allocators=["even", "planner", LateBloomer],
    seeds=5,
)
print(found.to_markdown())
