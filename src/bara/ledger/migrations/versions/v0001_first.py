"""Version 1: runs, events, promises, settlements, closings, and the sealed content of rounds."""

import sqlalchemy as sa
from alembic import op

from bara.ledger.migrations.rules import append_only, refuse_insert

revision = "0001"
down_revision = None

_ROUND = "run = NEW.run AND round = NEW.round"
_BEFORE = "run = NEW.run AND round = NEW.round - 1"


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
    _rules()


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


def _rules() -> None:
    append_only("runs", "events", "promises", "settlements", "closings")
    refuse_insert(
        "settlements_keep_promises",
        "settlements",
        "NEW.paid <> 0 AND NEW.paid <> "
        f"(SELECT amount FROM promises WHERE {_ROUND} AND client = NEW.client)",
        "a settlement pays what was promised or nothing",
    )
    refuse_insert(
        "closings_count_everyone",
        "closings",
        f"(SELECT COUNT(*) FROM settlements WHERE {_ROUND}) <> "
        f"(SELECT COUNT(*) FROM promises WHERE {_ROUND})",
        "a round closes when every winner is settled",
    )
    refuse_insert(
        "closings_add_up",
        "closings",
        f"NEW.paid <> (SELECT COALESCE(SUM(paid), 0) FROM settlements WHERE {_ROUND})",
        "a round costs what its settlements paid",
    )
    refuse_insert(
        "closings_follow",
        "closings",
        f"NEW.spent_before <> COALESCE((SELECT spent_after FROM closings WHERE {_BEFORE}), 0)"
        f" OR (NEW.round > 0 AND NOT EXISTS (SELECT 1 FROM closings WHERE {_BEFORE}))",
        "a round begins with what the round before it left",
    )
