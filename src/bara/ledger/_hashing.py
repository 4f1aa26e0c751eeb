"""Hashes: one text for one content, each event bound to the one before, and commitments to what may be dropped."""

import hashlib
import hmac
import json
import secrets
from typing import Any

START = "0" * 64
"""What stands in the place of a hash before the first event."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(tree: Any) -> str:
    """One text for one content: keys sorted, no spaces, and every float as the shortest text that reads back as it.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return _ENCODER.encode(tree)


def link(previous: str, content: str, key: bytes | None = None) -> str:
    """The hash of an event that follows `previous`; with a key, an HMAC that only its holder can make."""
    message = f"{previous}\n{content}".encode()
    if key is None:
        return hashlib.sha256(message).hexdigest()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def new_salt() -> str:
    """128 bits that keep a digest from being guessed back."""
    return secrets.token_hex(16)


def commitment(salt: str, content: str) -> str:
    """A digest that binds to the content without revealing it, even where few contents are possible."""
    return hashlib.sha256(f"{salt}\n{content}".encode()).hexdigest()
