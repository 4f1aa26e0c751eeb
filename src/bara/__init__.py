"""bara: how much of a federation's money to spend on which participants, round by round."""

__version__ = "0.1.0.dev0"
