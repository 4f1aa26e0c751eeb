"""The dashboard's server: open on this machine, and only with a token on any other address."""

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
"""The server's niceness, so that its visitors do not slow down a run on the same machine."""

SHORTEST = 16
"""The fewest characters of a token that the user chooses."""


@dataclass(frozen=True)
class Address:
    """The address to serve on, and who may visit.

    Attributes:
        host: The address to listen on.
        port: The port; 0 for any free one.
        token: The secret that visitors must know. None to make one if the address is not loopback,
            and to require none if it is.
        hosts: Further host names to answer to, as sent by a proxy that adds TLS. On addresses
            other than loopback, where all visitors need the token, any name is answered.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    hosts: Collection[str] = ()

    def rules(self) -> Rules:
        """Return the conditions that a request must meet."""
        if self.token is not None and len(self.token) < SHORTEST:
            raise ConfigError(
                f"the token must have at least {SHORTEST} characters, got {len(self.token)}"
            )
        for name in self.hosts:
            if "*" in name:
                raise ConfigError(f"--allow-host must be the name of one host, got {name!r}")
        if not is_loopback(self.host):
            return Rules(("*",), self.token or secrets.token_urlsafe(24))
        hosts = {name.lower() for name in (*LOOPBACK, self.host, *self.hosts)}
        return Rules(hosts, self.token)


def serve(
    place: Path | str, address: Address, say: Callable[[str], None], *, private: bool = False
) -> None:
    """Serve the dashboard until interrupted.

    Args:
        place: A run's folder, a folder of runs, or the URL of a database.
        address: Where to serve, and who may visit.
        say: Is told the address of the dashboard once the server listens, and then any warning.
        private: Whether only a person sees what `say` is told, as on a terminal. Otherwise it may
            stay in a log, where no token belongs.
    """
    rules = address.rules()
    if rules.token is not None and address.token is None and not private:
        raise ConfigError(
            f"visitors of {address.host} need a token, and one that is made here would stay in the "
            "log that this output goes to; choose one with BARA_DASHBOARD_TOKEN"
        )
    app = make_app(RunIndex(place), rules)
    listener = _listen(address)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    made = rules.token is not None and address.token is None
    query = f"?token={rules.token}" if made else ""
    say(f"http://{shown}:{port}/{query}")
    if address.token is not None:
        say("Visitors need the token that you chose: add ?token=TOKEN to the address once.")
    if not is_loopback(address.host):
        say(
            "Whoever can listen on the network can read along: put TLS before it, for example "
            f"with Caddy (`caddy reverse-proxy --from NAME --to 127.0.0.1:{port}`, and here "
            "`--host 127.0.0.1 --allow-host NAME --token ...`), or use `ssh -L`."
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
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop the server
        uvicorn.Server(config).run([listener])


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(family[4][:2], family=family[0], backlog=512)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from None
