"""Version 3: corrections of settled payments, which the balances of later rounds count."""

import sqlalchemy as sa
from alembic import op

from bara.ledger.migrations.rules import BALANCES_FOLLOW, THIRD

revision = "0003"
down_revision = "0002"


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
    dialect = op.get_bind().dialect.name
    replaced = f"DROP TRIGGER {BALANCES_FOLLOW.name}"
    op.execute(replaced if dialect == "sqlite" else f"{replaced} ON {BALANCES_FOLLOW.table}")
    for rule in THIRD:
        rule.create(op.execute, dialect)
