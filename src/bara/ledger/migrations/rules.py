"""The rules that the database itself enforces, as triggers for SQLite and PostgreSQL.

They are data, so that `verify` can compare a database with them.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A trigger.

    Attributes:
        name: The name of the trigger.
        table: The table that it guards.
        sqlite: The statement that makes it on SQLite.
        function: On PostgreSQL, the name of the function that it calls.
        body: The body of that function.
        event: On PostgreSQL, what calls it.
    """

    name: str
    table: str
    sqlite: str
    function: str
    body: str
    event: str

    @property
    def source(self) -> str:
        """The source of the function, as PostgreSQL stores it."""
        return f" BEGIN {self.body} END "

    def create(self, execute: Callable[[str], object], dialect: str) -> None:
        """Make the trigger.

        Args:
            execute: Runs a statement.
            dialect: The name of the database's dialect.
        """
        if dialect == "sqlite":
            execute(self.sqlite)
            return
        execute(
            f"CREATE OR REPLACE FUNCTION {self.function}() RETURNS trigger AS "
            f"$${self.source}$$ LANGUAGE plpgsql"
        )
        execute(
            f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {self.table} "
            f"FOR EACH ROW EXECUTE FUNCTION {self.function}()"
        )


def refuse_insert(name: str, table: str, when: str, message: str) -> Rule:
    """Return the rule that certain rows are not inserted.

    Args:
        name: The name of the trigger.
        table: The table that the rows would go into.
        when: An SQL condition over NEW; a row for which it is true is refused.
        message: The error message.
    """
    sqlite = (
        f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {when} "
        f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
    )
    body = f"IF {when} THEN RAISE EXCEPTION '{message}'; END IF; RETURN NEW;"
    return Rule(name, table, sqlite, name, body, "INSERT")


def append_only(*tables: str) -> tuple[Rule, ...]:
    """Return the rules that no row of these tables is changed or deleted."""
    rules = []
    message = "the ledger is append-only"
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            name = f"{table}_no_{verb.lower()}"
            sqlite = (
                f"CREATE TRIGGER {name} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            )
            body = f"RAISE EXCEPTION '{message}';"
            rules.append(Rule(name, table, sqlite, "append_only", body, verb))
    return tuple(rules)


_ROUND = "run = NEW.run AND round = NEW.round"
_BEFORE = "run = NEW.run AND round = NEW.round - 1"

FIRST = (
    *append_only("runs", "events", "promises", "settlements", "closings"),
    refuse_insert(
        "settlements_keep_promises",
        "settlements",
        "NEW.paid <> 0 AND NEW.paid <> "
        f"(SELECT amount FROM promises WHERE {_ROUND} AND client = NEW.client)",
        "a settlement pays what was promised or nothing",
    ),
    refuse_insert(
        "closings_count_everyone",
        "closings",
        f"(SELECT COUNT(*) FROM settlements WHERE {_ROUND}) <> "
        f"(SELECT COUNT(*) FROM promises WHERE {_ROUND})",
        "a round closes when every winner is settled",
    ),
    refuse_insert(
        "closings_add_up",
        "closings",
        f"NEW.paid <> (SELECT COALESCE(SUM(paid), 0) FROM settlements WHERE {_ROUND})",
        "a round costs what its settlements paid",
    ),
    refuse_insert(
        "closings_follow",
        "closings",
        f"NEW.spent_before <> COALESCE((SELECT spent_after FROM closings WHERE {_BEFORE}), 0)"
        f" OR (NEW.round > 0 AND NOT EXISTS (SELECT 1 FROM closings WHERE {_BEFORE}))",
        "a round begins with what the round before it left",
    ),
)
"""The rules of version 1."""

SECOND = (
    *append_only("top_ups"),
    refuse_insert(
        "closings_within_the_budget",
        "closings",
        "NEW.total > (SELECT total FROM runs WHERE id = NEW.run)"
        " + (SELECT COALESCE(SUM(amount), 0) FROM top_ups WHERE run = NEW.run)",
        "a round spends from the budget and what was added to it",
    ),
)
"""The rules that version 2 added."""

_PAYMENT = "run = NEW.run AND round = NEW.round AND client = NEW.client"
_LAST = "(SELECT MAX(round) FROM closings WHERE run = NEW.run)"

BALANCES_FOLLOW = refuse_insert(
    "closings_follow",
    "closings",
    f"NEW.spent_before <> COALESCE((SELECT spent_after FROM closings WHERE {_BEFORE}), 0)"
    " + (SELECT COALESCE(SUM(amount), 0) FROM corrections"
    " WHERE run = NEW.run AND counts_from = NEW.round)"
    f" OR (NEW.round > 0 AND NOT EXISTS (SELECT 1 FROM closings WHERE {_BEFORE}))",
    "a round begins with what the round before it and corrections left",
)
"""The rule of version 3 that takes the place of the rule of version 1 with the same name."""

THIRD = (
    *append_only("corrections"),
    refuse_insert(
        "corrections_leave_a_payment",
        "corrections",
        f"NEW.amount + (SELECT paid FROM settlements WHERE {_PAYMENT})"
        f" + (SELECT COALESCE(SUM(amount), 0) FROM corrections WHERE {_PAYMENT}) < 0",
        "a payment is corrected to zero or more",
    ),
    refuse_insert(
        "corrections_count_later",
        "corrections",
        f"NEW.counts_from <= {_LAST}",
        "a correction counts from a round that is not settled yet",
    ),
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
    ),
    BALANCES_FOLLOW,
)
"""The rules that version 3 added."""

_STAYED = tuple(rule for rule in FIRST if rule.name != BALANCES_FOLLOW.name)

RULES = {"0001": FIRST, "0002": FIRST + SECOND, "0003": _STAYED + SECOND + THIRD}
"""All rules of each version of the schema."""
