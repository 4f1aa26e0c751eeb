"""Data to train on: load it, verify it, divide it among clients.

```python
from bara.datasets import load, partition, picture

data = load("digits")
parts = partition("shards(2)", data.y_train, clients=20, seed=0)
print(picture(data.y_train, parts))
```
"""

from bara.datasets._catalogue import classes, names, silos
from bara.datasets._division import Division, divide
from bara.datasets._fetching import Fetched, fetch
from bara.datasets._inspection import Availability, Report, available, verify
from bara.datasets._loading import is_own, load, locate, require, unvouched
from bara.datasets._partitions import (
    Scheme,
    dirichlet,
    flip_labels,
    iid,
    parse,
    partition,
    quantity,
    shards,
)
from bara.datasets._pictures import counts, picture
from bara.datasets._places import places, whole_path
from bara.datasets._record import Dataset, Task
from bara.datasets._splits import HeldOut, held_out, subset
from bara.datasets._table_files import digest, is_table
from bara.datasets._tables import Columns

__all__ = [
    "Availability",
    "Columns",
    "Dataset",
    "Division",
    "Fetched",
    "HeldOut",
    "Report",
    "Scheme",
    "Task",
    "available",
    "classes",
    "counts",
    "digest",
    "dirichlet",
    "divide",
    "fetch",
    "flip_labels",
    "held_out",
    "iid",
    "is_own",
    "is_table",
    "load",
    "locate",
    "names",
    "parse",
    "partition",
    "picture",
    "places",
    "quantity",
    "require",
    "shards",
    "silos",
    "subset",
    "unvouched",
    "verify",
    "whole_path",
]
