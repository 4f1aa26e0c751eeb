"""Who trains: the simulator here, Flower beside it; the only rooms that know torch or Flower."""
