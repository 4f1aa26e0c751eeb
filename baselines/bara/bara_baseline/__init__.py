"""Budget allocation for federated learning, as a Flower baseline."""
