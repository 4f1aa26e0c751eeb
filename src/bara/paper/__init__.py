"""The paper (Yang et al. 2023): its figures and tables as grids of runs, and what came of them."""
