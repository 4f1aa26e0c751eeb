"""Who bids and trains: a synthetic learning curve, the simulator, Flower."""
