"""The names of a grid's nodes, under which the ledger pays them.

`python -m bara.flower.identity KEY.pub` prints the name that belongs to a node's public key.
"""

import logging
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol, final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)
from flwr.serverapp import Grid

from bara.clients.bidding import client_names
from bara.errors import ConfigError
from bara.flower._bid_messages import Opened, name_in

By = Literal["key", "partition"]

log = logging.getLogger("flwr")

_DIGITS = 20
"""The length of a fingerprint in hexadecimal digits: 80 bits."""


class Node(Protocol):
    """A connected node as `Grid.get_nodes` describes it; Flower has no public name for the type."""

    @property
    def node_id(self) -> int:
        """The id under which Flower reaches the node."""

    @property
    def public_key(self) -> bytes:
        """The key with which the node authenticates; random in a simulation."""


def known_by(grid: Grid) -> By:
    """Return what identifies a grid's nodes: their key, or their partition in a simulation.

    Simulated nodes are new in every run, so that only their partitions stay the same. The class of
    the grid is the only thing by which a server app can tell a simulation, and it is not public.
    """
    return "partition" if type(grid).__name__ == "InMemoryGrid" else "key"


def key_fingerprint(public_key: bytes) -> str:
    """Return the end of a client's name: the first digits of its key's SHA-256.

    Args:
        public_key: The key as Flower stores it: PEM, SubjectPublicKeyInfo.
    """
    return sha256(public_key.strip()).hexdigest()[:_DIGITS]


def client_of_key(public_key: bytes, name: str = "key") -> str:
    """Return the name of the client that owns a key; node ids may change, this name does not.

    >>> client_of_key(b"-----BEGIN PUBLIC KEY----- ...", "silo-north")
    'silo-north-76a5ae3e89247ddc8ba7'
    """
    return f"{name}-{key_fingerprint(public_key)}"


def client_of_key_file(path: Path) -> str:
    """Return the name of the client whose public key is in a file of ssh-keygen or openssl."""
    return client_of_key(_pem(path.read_bytes()))


def read_names(path: Path) -> dict[str, str]:
    """Read an operator's names for the clients.

    Args:
        path: A file of public keys, one per line as ssh-keygen writes them: type, key, comment.
            The comment is the name.

    Returns:
        The names by the fingerprints of the keys.
    """
    found = {}
    try:
        for text in path.read_text().splitlines():
            line = text.strip()
            if not line or line.startswith("#"):
                continue
            words = line.split(maxsplit=2)
            name = name_in(words[2]) if len(words) == 3 else None
            if name is None:
                raise ConfigError(
                    f"bara.names: a key in {str(path)!r} has no name behind it: {line[:60]}..."
                )
            found[key_fingerprint(_pem(line.encode()))] = name
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
    """A directory of the clients that can be reached now: their names and their nodes.

    A client with a key is called what the operator calls it, else what it calls itself, else
    `key`, in each case followed by the key's fingerprint. Thus nobody can take another client's
    name. A client keeps the first name it was given.

    Args:
        by: What identifies the clients. A node itself states its partition, so that partitions are
            fit for simulations only.
        names: The operator's names for the clients, by fingerprint.
        partitions: The names of the partitions; empty to number them.
    """

    def __init__(
        self, by: By, names: Mapping[str, str] | None = None, partitions: tuple[str, ...] = ()
    ) -> None:
        self._by = by
        self._names = names or {}
        self._partitions = partitions
        self._called: dict[str, str] = {}  # by fingerprint
        self._nodes: dict[str, int] = {}
        self._once: dict[int, str] = {}  # what each node that bid was called

    def know(self, clients: Iterable[str]) -> None:
        """Remember the names of clients that already stand in the books."""
        self._called |= {client[-_DIGITS:]: client for client in clients}

    def read(self, nodes: Iterable[Node], opened: Mapping[int, Opened]) -> dict[str, int]:
        """Replace the directory's entries by the connected nodes; return the node of each client.

        A client that two nodes claim to be is left out: it cannot be told which of them it is.

        Args:
            nodes: The connected nodes.
            opened: The bids by node id, which hold the nodes' partitions and names.
        """
        found: dict[str, int] = {}
        twice: set[str] = set()
        for node in nodes:
            name = self._name(node, opened.get(node.node_id))
            if name is None:
                continue
            if name in found:
                twice.add(name)
                log.warning(
                    "bara: nodes %d and %d are both client %r, which is left out; each client must "
                    "be one node",
                    found[name],
                    node.node_id,
                    name,
                )
            found[name] = node.node_id
        for name in twice:
            del found[name]
        self._nodes = found
        self._once |= {node: client for client, node in found.items()}
        if self._by == "key":
            self.know(client for client, node in found.items() if node in opened)
        return found

    def node_of(self, client: str) -> int | None:
        """Return the id of a client's node, None if the client is not connected."""
        return self._nodes.get(client)

    def shown(self, node: Node) -> str:
        """Return a node's name for log lines, before or after its bid."""
        return self._name(node, None) or self._once.get(node.node_id) or f"node {node.node_id}"

    def _name(self, node: Node, opened: Opened | None) -> str | None:
        """Return a node's name; None for a simulated node whose partition is not known yet."""
        if self._by == "key":
            mine = key_fingerprint(node.public_key)
            if mine in self._called:
                return self._called[mine]
            own_name = None if opened is None else opened.name
            name = self._names.get(mine) or own_name or "key"
            return f"{name}-{mine}"
        if opened is None or opened.partition is None:
            return None
        number, count = opened.partition
        names = self._partitions or client_names(count)
        return names[number]


if __name__ == "__main__":
    for _path in sys.argv[1:]:
        sys.stdout.write(f"{client_of_key_file(Path(_path))}\n")
