"""Tries a mechanism, a user's own included, against the properties it claims, and against the others."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from bara.mechanisms.properties import EVERY_PROPERTY, PROPERTIES, random_case
from bara.protocols import Mechanism, requirements_of


@dataclass(frozen=True)
class Finding:
    """What an audit found about one property.

    Attributes:
        name: Which property.
        claimed: Whether the mechanism promises it.
        trials: In how many rounds it was looked for.
        counter_example: Where it fails, or None if it held in all of them.
    """

    name: str
    claimed: bool
    trials: int
    counter_example: str | None

    @property
    def broken(self) -> bool:
        """A promise that does not hold."""
        return self.claimed and self.counter_example is not None


def audit(
    mechanism: Mechanism, trials: int = 1000, seed: int = 0, names: Collection[str] = EVERY_PROPERTY
) -> Iterator[Finding]:
    """Try these properties on random rounds; stop at a property's first counter-example."""
    columns = tuple({"samples": 0, **dict.fromkeys(requirements_of(mechanism).columns)})
    for index, (name, check) in enumerate(PROPERTIES.items()):
        if name not in names:
            continue
        rng = np.random.default_rng((seed, index))
        counter_example, tried = None, 0
        while counter_example is None and tried < trials:
            tried += 1
            found = check(mechanism, random_case(rng, columns))
            counter_example = found.text if found else None
        yield Finding(name, name in mechanism.claims, tried, counter_example)
