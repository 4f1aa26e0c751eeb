"""The schema's history, from the first version on; shipped with the package and applied when a ledger is opened."""
