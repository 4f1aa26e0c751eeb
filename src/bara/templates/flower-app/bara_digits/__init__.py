"""Handwritten digits, learned by silos that are paid."""
