"""Rules that the database itself keeps, in the dialects there are."""

from alembic import op


def refuse_insert(name: str, table: str, when: str, message: str) -> None:
    """Refuse a new row of which the condition (over NEW) is true."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
        return
    _function(name, f"IF {when} THEN RAISE EXCEPTION '{message}'; END IF; RETURN NEW;")
    op.execute(
        f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )


def append_only(*tables: str) -> None:
    """Refuse every change and removal of a row."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    if not sqlite:
        _function("append_only", "RAISE EXCEPTION 'the ledger is append-only';")
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            name = f"{table}_no_{verb.lower()}"
            body = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            action = body if sqlite else "FOR EACH ROW EXECUTE FUNCTION append_only()"
            op.execute(f"CREATE TRIGGER {name} BEFORE {verb} ON {table} {action}")


def _function(name: str, body: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN {body} END $$ LANGUAGE plpgsql"
    )
