"""Live pages over the ledgers of runs: where the money goes, and whether it works.

The dashboard only reads. It needs nothing from the process that runs, shows finished runs the same
way, and serves every page as JSON as well. See docs/dashboard.md.
"""
