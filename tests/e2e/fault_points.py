"""Where tests kill a run (`bara.faults`)."""

POINTS = (
    "folder made",
    "configuration written",
    "opening",
    "opened",
    "bids opened",
    "promising",
    "promised",
    "trained",
    "state saved",
    "settling",
    "settled",
    "receipt written",
    "closing",
    "closed",
    "result written",
)
"""Every point, in the order in which a run passes them.

Those in -ing lie inside a transaction, before its commit.
"""
