"""Local training on this machine's cores, in torch: the engine, and the plain loop it is tested against."""
