"""Simulated clients: what taking part costs them, how they bid, how they behave."""
