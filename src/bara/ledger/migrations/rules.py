"""Triggers by which the database itself enforces rules, for SQLite and PostgreSQL."""

from alembic import op


def refuse_insert(name: str, table: str, when: str, message: str) -> None:
    """Make the database refuse to insert certain rows.

    Args:
        name: The name of the trigger.
        table: The table that the rows would go into.
        when: An SQL condition over NEW; a row for which it is true is refused.
        message: The error message.
    """
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
        return
    _function(name, f"IF {when} THEN RAISE EXCEPTION '{message}'; END IF; RETURN NEW;")
    op.execute(
        f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )


def append_only(*tables: str) -> None:
    """Make the database refuse to change or delete any row of these tables."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    if not sqlite:
        _function("append_only", "RAISE EXCEPTION 'the ledger is append-only';")
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            name = f"{table}_no_{verb.lower()}"
            action = "FOR EACH ROW EXECUTE FUNCTION append_only()"
            if sqlite:
                action = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            op.execute(f"CREATE TRIGGER {name} BEFORE {verb} ON {table} {action}")


def _function(name: str, body: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS "
        f"$$ BEGIN {body} END $$ LANGUAGE plpgsql"
    )
