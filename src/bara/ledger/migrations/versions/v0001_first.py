"""Version 1: runs, events, promises, settlements, closings, and the sealed content of rounds."""

import sqlalchemy as sa
from alembic import op

from bara.ledger.migrations.rules import FIRST

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first schema."""
    _events()
    _money()
    op.create_table(
        "sealed",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("part", sa.Text, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    for rule in FIRST:
        rule.create(op.execute, op.get_bind().dialect.name)


def _events() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("max_rounds", sa.Integer, nullable=False),
        sa.CheckConstraint("total > 0"),
    )
    op.create_table(
        "events",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("round", sa.Integer),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    # Whatever happens to a round happens once: it is bid for, awarded, approved and settled once.
    op.create_index(
        "once_a_round",
        "events",
        ["run", "round", "kind"],
        unique=True,
        sqlite_where=sa.text("round IS NOT NULL"),
        postgresql_where=sa.text("round IS NOT NULL"),
    )


def _money() -> None:
    op.create_table(
        "promises",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("client", sa.Text, primary_key=True),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.CheckConstraint("amount > 0"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "settlements",
        sa.Column("run", sa.Integer, primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("client", sa.Text, primary_key=True),
        sa.Column("paid", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text),
        sa.ForeignKeyConstraint(
            ["run", "round", "client"], ["promises.run", "promises.round", "promises.client"]
        ),
        sa.CheckConstraint("(paid > 0) = (reason IS NULL)"),
        sa.CheckConstraint("paid >= 0"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "closings",
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("spent_before", sa.BigInteger, nullable=False),
        sa.Column("paid", sa.BigInteger, nullable=False),
        sa.Column("spent_after", sa.BigInteger, nullable=False),
        sa.CheckConstraint("spent_after = spent_before + paid"),
        sa.CheckConstraint("spent_after <= total"),
        sqlite_with_rowid=False,
    )
