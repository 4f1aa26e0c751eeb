"""What a test asks of an error: its class, and the facts that a user needs, not the sentence."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(error, *facts):
    """Expect this error, and in its message each of these facts: a key, a value, whose it is."""
    with pytest.raises(error) as caught:
        yield caught
    said = str(caught.value)
    missing = [fact for fact in map(str, facts) if fact not in said]
    assert not missing, f"{said!r} does not name {missing}"
