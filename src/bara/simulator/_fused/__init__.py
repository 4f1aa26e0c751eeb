"""Hand-written kernels for plain sequences of layers, without autograd or stored gradients."""
