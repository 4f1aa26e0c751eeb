"""Contestant: the limit, which is only the workload's products and convolutions, in two processes.

Each process has one thread. Everything else is left out: no data movement, activation, pooling,
loss, update or aggregation. Each convolution runs in the memory format that is fastest for it
alone, with results allocated by torch as always; matrix products write to reused memory.
"""

import torch
from gate import Gate
from workload import BATCH, Workload

aten = torch.ops.aten


def convolution(channels, out, side, kernel, padding, *, below, layout=torch.channels_last):
    x = torch.rand(BATCH, side, side, channels).permute(0, 3, 1, 2).contiguous(memory_format=layout)
    w = torch.rand(out, channels, kernel, kernel).contiguous(memory_format=layout)
    b = torch.zeros(out)
    how = ([1, 1], [padding, padding], [1, 1], False, [0, 0], 1)
    g = torch.rand_like(aten.convolution.default(x, w, b, *how))

    def play():
        aten.convolution.default(x, w, b, *how)
        aten.convolution_backward.default(g, x, w, [out], *how, [below, True, True])

    return play


def product(inputs, outputs, *, below):
    x, w, g = torch.rand(BATCH, inputs), torch.rand(outputs, inputs), torch.rand(BATCH, outputs)
    y, to_w, to_x = (
        torch.empty(BATCH, outputs),
        torch.empty(outputs, inputs),
        torch.empty(BATCH, inputs),
    )

    def play():
        torch.mm(x, w.t(), out=y)
        torch.mm(g.t(), x, out=to_w)
        if below:
            torch.mm(g, w, out=to_x)

    return play


def main():
    torch.set_num_threads(1)
    load = Workload.here()
    layers = {
        "mlp": lambda: [
            product(784, 200, below=False),
            product(200, 200, below=True),
            product(200, 10, below=True),
        ],
        "cnn": lambda: [
            convolution(1, 32, 28, 5, 2, below=False),
            convolution(32, 64, 14, 5, 2, below=True, layout=torch.contiguous_format),
            product(3136, 10, below=True),
        ],
        "cifar-cnn": lambda: [
            convolution(3, 32, 32, 3, 0, below=False),
            convolution(32, 64, 15, 3, 0, below=True),
            product(2304, 512, below=True),
            product(512, 10, below=True),
        ],
    }[load.model]()

    def play():
        with torch.inference_mode():
            for _ in range(load.clients * load.samples // BATCH // 2):
                for layer in layers:
                    layer()

    Gate(partner=True).serve(play)


main()
