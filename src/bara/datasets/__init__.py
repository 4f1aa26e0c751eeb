"""Data to train on: load it, verify it, divide it among clients.

from bara.datasets import load, partition, picture

data = load("digits")
parts = partition("shards(2)", data.y_train, clients=20, seed=0)
print(picture(data.y_train, parts))
"""

from bara.datasets._catalogue import names
from bara.datasets._fetching import Fetched, fetch
from bara.datasets._inspection import Availability, Report, available, verify
from bara.datasets._loading import load, places
from bara.datasets._partitions import Scheme, dirichlet, flip_labels, iid, parse, partition, quantity, shards
from bara.datasets._pictures import counts, picture
from bara.datasets._record import Dataset
from bara.datasets._splits import HeldOut, held_out, subset

__all__ = [
    "Availability",
    "Dataset",
    "Fetched",
    "HeldOut",
    "Report",
    "Scheme",
    "available",
    "counts",
    "dirichlet",
    "fetch",
    "flip_labels",
    "held_out",
    "iid",
    "load",
    "names",
    "parse",
    "partition",
    "picture",
    "places",
    "quantity",
    "shards",
    "subset",
    "verify",
]
