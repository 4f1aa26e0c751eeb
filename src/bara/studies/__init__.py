"""Many runs: grids, comparisons, suites and forecasts."""
