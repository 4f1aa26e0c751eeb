"""Data to train on: load it, verify it, divide it among clients.

from bara.datasets import load, partition, picture

data = load("digits")
parts = partition("shards(2)", data.y_train, clients=20, seed=0)
print(picture(data.y_train, parts))
"""

from bara.datasets.catalogue import names
from bara.datasets.fetching import Fetched, fetch
from bara.datasets.inspection import Availability, Report, available, verify
from bara.datasets.loading import load
from bara.datasets.locating import places
from bara.datasets.noise import flip_labels
from bara.datasets.partitions import dirichlet, iid, quantity, shards
from bara.datasets.pictures import counts, picture
from bara.datasets.record import Dataset
from bara.datasets.schemes import Scheme, parse, partition
from bara.datasets.splits import HeldOut, held_out, subset

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
