"""The versions of the database schema, applied when a ledger is opened for writing."""
