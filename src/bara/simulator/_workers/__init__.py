"""The worker processes that train clients side by side, and the memory they share."""
