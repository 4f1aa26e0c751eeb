"""Who is who: the nodes of a grid by the names under which the ledger pays them.

`python -m bara.flower.identity KEY.pub` prints the name that goes with a node's public key.
"""

import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal, final

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.superlink.grid import InMemoryGrid

from bara.errors import InvalidBidError
from bara.federations.bidding import client_names
from bara.flower._bid_messages import Opened

By = Literal["key", "partition"]


def known_by(grid: Grid) -> By:
    """In a simulation nodes are new in every run and known by their partition, elsewhere by their key."""
    return "partition" if isinstance(grid, InMemoryGrid) else "key"


def client_of_key(public_key: bytes) -> str:
    """The name of the client that proves itself with this key: it survives restarts and node identifiers.

    Args:
        public_key: As Flower stores it: PEM, SubjectPublicKeyInfo.

    >>> client_of_key(b"-----BEGIN PUBLIC KEY----- ...")
    'key-76a5ae3e89247ddc8ba7'
    """
    return f"key-{sha256(public_key.strip()).hexdigest()[:20]}"


def client_of_key_file(path: Path) -> str:
    """The same from a key in a file, as ssh-keygen or openssl writes it."""
    content = path.read_bytes()
    read = load_pem_public_key if content.startswith(b"-----BEGIN") else load_ssh_public_key
    return client_of_key(read(content).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@final
class Directory:
    """The clients that can be reached now.

    Args:
        by: What they are known by. A partition is what a node itself says: fit for simulations only.
    """

    def __init__(self, by: By) -> None:
        self._by = by
        self._nodes: dict[str, int] = {}

    def read(self, nodes: Iterable[NodeInfo], opened: Mapping[int, Opened]) -> dict[str, int]:
        """Know the nodes that are there, those with a partition by the answers they gave; returns client to node.

        Raises:
            InvalidBidError: when two nodes are one client.
        """
        found: dict[str, int] = {}
        for node in nodes:
            name = self._name(node, opened.get(node.node_id))
            if name in found:
                raise InvalidBidError(f"nodes {found[name]} and {node.node_id} both are client {name!r}")
            if name is not None:
                found[name] = node.node_id
        self._nodes = found
        return found

    def node_of(self, client: str) -> int | None:
        """Where that client is, if it is known."""
        return self._nodes.get(client)

    def _name(self, node: NodeInfo, opened: Opened | None) -> str | None:
        if self._by == "key":
            return client_of_key(node.public_key)
        if opened is None or opened.partition is None:
            return None
        part, parts = opened.partition
        return client_names(parts)[part]


if __name__ == "__main__":
    for _path in sys.argv[1:]:
        sys.stdout.write(f"{client_of_key_file(Path(_path))}\n")
