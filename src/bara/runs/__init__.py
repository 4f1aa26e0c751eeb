"""One run: its configuration, its parts, the session that plays it, the place that keeps it."""
