"""Hand-written kernels for plain sequences of layers: no autograd, no stored gradient."""
