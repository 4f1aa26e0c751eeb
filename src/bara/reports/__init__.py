"""Results and comparisons, their statistics, and every form they are shown in."""
