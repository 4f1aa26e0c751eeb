"""Version 2: money added during a run, and what was learned from bids that are dropped."""

import sqlalchemy as sa
from alembic import op

from bara.ledger.migrations.rules import SECOND

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create top-ups, which raise the limit for closings, and memories."""
    op.create_table(
        "top_ups",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.CheckConstraint("amount > 0"),
    )
    op.create_table(
        "memories",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("part", sa.Text, primary_key=True),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    # What happens between rounds is looked up before each of them.
    op.create_index(
        "between_rounds",
        "events",
        ["run", "number"],
        sqlite_where=sa.text("round IS NULL"),
        postgresql_where=sa.text("round IS NULL"),
    )
    for rule in SECOND:
        rule.create(op.execute, op.get_bind().dialect.name)
