"""Who is who: the nodes of a grid by the names under which the ledger pays them.

`python -m bara.flower.identity KEY.pub` prints the name that goes with a node's public key.
"""

import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal, final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.superlink.grid import InMemoryGrid

from bara.clients.bidding import client_names
from bara.errors import ConfigError, InvalidBidError
from bara.flower._bid_messages import Opened, name_in

By = Literal["key", "partition"]

_DIGITS = 20
"""Of a fingerprint: 80 bits."""


def known_by(grid: Grid) -> By:
    """In a simulation nodes are new in every run and known by their partition, elsewhere by their key."""
    return "partition" if isinstance(grid, InMemoryGrid) else "key"


def fingerprint(public_key: bytes) -> str:
    """What a client's name ends in: the beginning of its key's SHA-256.

    Args:
        public_key: As Flower stores it: PEM, SubjectPublicKeyInfo.
    """
    return sha256(public_key.strip()).hexdigest()[:_DIGITS]


def client_of_key(public_key: bytes, name: str = "key") -> str:
    """The name of the client that proves itself with this key: it survives restarts and node identifiers.

    >>> client_of_key(b"-----BEGIN PUBLIC KEY----- ...", "silo-north")
    'silo-north-76a5ae3e89247ddc8ba7'
    """
    return f"{name}-{fingerprint(public_key)}"


def client_of_key_file(path: Path) -> str:
    """The same from a key in a file, as ssh-keygen or openssl writes it."""
    return client_of_key(_pem(path.read_bytes()))


def read_names(path: Path) -> dict[str, str]:
    """What an operator calls the clients: a file of public keys, one a line, as ssh-keygen writes them with a comment.

    Returns:
        The names, by the fingerprints of the keys.
    """
    found = {}
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
        for line in (line for line in lines if line and not line.startswith("#")):
            _, _, comment = (*line.split(maxsplit=2), "", "")[:3]
            if (name := name_in(comment)) is None:
                raise ConfigError(
                    f"bara.names: a key in {str(path)!r} has no name behind it: {line[:60]}..."
                )
            found[fingerprint(_pem(line.encode()))] = name
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"bara.names must be a file of public keys with names, got {str(path)!r}: {error}"
        ) from None
    return found


def _pem(content: bytes) -> bytes:
    read = load_pem_public_key if content.startswith(b"-----BEGIN") else load_ssh_public_key
    return read(content).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@final
class Directory:
    """The clients that can be reached now, and what they are called.

    A client that is known by its key is called what the operator calls it, else what it calls
    itself, else `key`, each followed by the key's fingerprint. So nobody can take another's name,
    and the name it was first given stays.

    Args:
        by: What they are known by. A partition is what a node itself says: fit for simulations
            only.
        names: What the operator calls them, by fingerprint.
        partitions: The partitions' names, where they have any.
    """

    def __init__(
        self, by: By, names: Mapping[str, str] | None = None, partitions: tuple[str, ...] = ()
    ) -> None:
        self._by = by
        self._names = names or {}
        self._partitions = partitions
        self._called: dict[str, str] = {}  # by fingerprint
        self._nodes: dict[str, int] = {}

    def know(self, clients: Iterable[str]) -> None:
        """These have their names already: they stand in the books."""
        self._called |= {client[-_DIGITS:]: client for client in clients}

    def read(self, nodes: Iterable[NodeInfo], opened: Mapping[int, Opened]) -> dict[str, int]:
        """Know the nodes that are there, those with a partition by the answers they gave; returns client to node.

        Raises:
            InvalidBidError: when two nodes are one client.
        """
        found: dict[str, int] = {}
        for node in nodes:
            name = self._name(node, opened.get(node.node_id))
            if name in found:
                raise InvalidBidError(
                    f"nodes {found[name]} and {node.node_id} are both client {name!r}; each client must be one node"
                )
            if name is not None:
                found[name] = node.node_id
        self._nodes = found
        if self._by == "key":
            self.know(client for client, node in found.items() if node in opened)
        return found

    def node_of(self, client: str) -> int | None:
        """Where that client is, if it is known."""
        return self._nodes.get(client)

    def shown(self, node: NodeInfo) -> str:
        """What a person is told of a node, before or after it has bid."""
        return self._name(node, None) or f"node {node.node_id}"

    def _name(self, node: NodeInfo, opened: Opened | None) -> str | None:
        if self._by == "key":
            mine = fingerprint(node.public_key)
            said = None if opened is None else opened.name
            return self._called.get(mine) or f"{self._names.get(mine) or said or 'key'}-{mine}"
        if opened is None or opened.partition is None:
            return None
        part, parts = opened.partition
        return (self._partitions or client_names(parts))[part]


if __name__ == "__main__":
    for _path in sys.argv[1:]:
        sys.stdout.write(f"{client_of_key_file(Path(_path))}\n")
