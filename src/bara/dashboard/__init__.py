"""Live pages over the ledgers of runs: where the money goes, and whether it works.

It reads and never writes, needs nothing of the process that runs, and shows a finished run the same
way. Every page has a twin in JSON. See docs/dashboard.md.
"""
