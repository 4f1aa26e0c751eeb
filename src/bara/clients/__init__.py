"""Simulated clients: their costs of taking part, their bids and their conduct."""
