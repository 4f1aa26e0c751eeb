"""Starts the dashboard: on this machine for anybody here, on another address only for who knows a token."""

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from bara.dashboard._guard import LOOPBACK, Rules, is_loopback
from bara.dashboard._pages import make_app
from bara.dashboard._run_index import RunIndex
from bara.errors import ConfigError

YIELDS = 10
"""How much nicer than usual the server is to other processes: those who look on do not slow down a run beside it."""

SHORTEST = 16
"""Characters that a token of one's own must have."""


@dataclass(frozen=True)
class Address:
    """Where to serve, and whom.

    Attributes:
        host: The address to listen on.
        port: The port; 0 for any that is free.
        token: What visitors must know; None for a new one where the address is not loopback, and
            none otherwise.
        hosts: Further names under which visitors may ask, as a proxy that adds TLS hands them on.
            Beyond loopback, where all need the token, they may ask under any.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    hosts: Collection[str] = ()

    def rules(self) -> Rules:
        """Whom to let in."""
        if self.token is not None and len(self.token) < SHORTEST:
            raise ConfigError(
                f"the token must have at least {SHORTEST} characters, got {len(self.token)}"
            )
        if wild := [name for name in self.hosts if "*" in name]:
            raise ConfigError(f"--allow-host must be the name of one host, got {wild[0]!r}")
        if is_loopback(self.host):
            return Rules({name.lower() for name in (*LOOPBACK, self.host, *self.hosts)}, self.token)
        return Rules(("*",), self.token or secrets.token_urlsafe(24))


def serve(place: Path | str, address: Address, say: Callable[[str], None]) -> None:
    """Serve until interrupted; says where, once it listens."""
    rules = address.rules()
    app = make_app(RunIndex(place), rules)
    listener = _listen(address)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{port}/" + (f"?token={rules.token}" if rules.token else ""))
    if not is_loopback(address.host):
        say(
            "Whoever can listen on the network can read along: put TLS before it, for example with Caddy "
            f"(`caddy reverse-proxy --from NAME --to 127.0.0.1:{port}`, and here `--host 127.0.0.1 --allow-host NAME "
            "--token ...`), or use `ssh -L`."
        )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )
    os.nice(YIELDS)
    with contextlib.suppress(KeyboardInterrupt):  # that is how one ends it
        uvicorn.Server(config).run([listener])


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(family[4][:2], family=family[0], backlog=512)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from None
