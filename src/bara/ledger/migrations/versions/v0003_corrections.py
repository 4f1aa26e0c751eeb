"""Version 3: corrections of settled payments, which the balances of later rounds count."""

import sqlalchemy as sa
from alembic import op

from bara.ledger.migrations.rules import append_only, refuse_insert

revision = "0003"
down_revision = "0002"

_BEFORE = "run = NEW.run AND round = NEW.round - 1"
_PAYMENT = "run = NEW.run AND round = NEW.round AND client = NEW.client"
_LAST = "(SELECT MAX(round) FROM closings WHERE run = NEW.run)"


def upgrade() -> None:
    """Create corrections, and let balances follow them."""
    op.create_table(
        "corrections",
        sa.Column("run", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("counts_from", sa.Integer, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "round", "client"],
            ["settlements.run", "settlements.round", "settlements.client"],
        ),
        sa.CheckConstraint("amount <> 0"),
        sa.CheckConstraint("counts_from > round"),
    )
    append_only("corrections")
    refuse_insert(
        "corrections_leave_a_payment",
        "corrections",
        f"NEW.amount + (SELECT paid FROM settlements WHERE {_PAYMENT})"
        f" + (SELECT COALESCE(SUM(amount), 0) FROM corrections WHERE {_PAYMENT}) < 0",
        "a payment is corrected to zero or more",
    )
    refuse_insert(
        "corrections_count_later",
        "corrections",
        f"NEW.counts_from <= {_LAST}",
        "a correction counts from a round that is not settled yet",
    )
    refuse_insert(
        "corrections_within_the_budget",
        "corrections",
        "NEW.amount > 0 AND NEW.amount"
        f" + (SELECT spent_after FROM closings WHERE run = NEW.run AND round = {_LAST})"
        " + (SELECT COALESCE(SUM(amount), 0) FROM corrections"
        f" WHERE run = NEW.run AND counts_from > {_LAST})"
        " > (SELECT total FROM runs WHERE id = NEW.run)"
        " + (SELECT COALESCE(SUM(amount), 0) FROM top_ups WHERE run = NEW.run)",
        "a correction spends from the budget and what was added to it",
    )
    _let_balances_follow()


def _let_balances_follow() -> None:
    """Replace the rule that a round begins with what the round before it left."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER closings_follow")
    else:
        op.execute("DROP TRIGGER closings_follow ON closings")
    refuse_insert(
        "closings_follow",
        "closings",
        f"NEW.spent_before <> COALESCE((SELECT spent_after FROM closings WHERE {_BEFORE}), 0)"
        " + (SELECT COALESCE(SUM(amount), 0) FROM corrections"
        " WHERE run = NEW.run AND counts_from = NEW.round)"
        f" OR (NEW.round > 0 AND NOT EXISTS (SELECT 1 FROM closings WHERE {_BEFORE}))",
        "a round begins with what the round before it and corrections left",
    )
