"""Access control: no page of another site, and from other machines only with the token."""

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import final
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[")
"""This machine's names as `TrustedHostMiddleware` sees them: a host up to its first colon.

Of an IPv6 address such as `[::1]:8765` only the bracket is left. That is safe: a page that reaches
the dashboard by DNS rebinding sends its own name, never a numeric address.
"""

COOKIE = "bara-dashboard"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Rules:
    """The conditions that a request must meet.

    Attributes:
        hosts: Host names that requests may be addressed to; "*" for any, which needs a token.
        token: The secret that a visitor must know; None to require none.
    """

    hosts: Collection[str] = LOOPBACK
    token: str | None = None

    def accepts(self, presented: str) -> bool:
        """Return whether the presented text is the token, in constant time."""
        return self.token is None or hmac.compare_digest(_digest(presented), _digest(self.token))

    def recognises(self, cookie: str) -> bool:
        """Return whether the presented text is the right cookie."""
        return hmac.compare_digest(_digest(cookie), _digest(self.cookie))

    @property
    def cookie(self) -> str:
        """The value that a browser stores instead of the token, without revealing the token."""
        return hmac.new((self.token or "").encode(), b"bara dashboard", hashlib.sha256).hexdigest()


@final
class Guard:
    """A middleware that refuses forbidden requests and adds security headers to every answer.

    Args:
        app: The application to protect.
        rules: The conditions that a request must meet.
    """

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        scope = {**scope, "headers": _lower_host(scope["headers"])}
        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_safely)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that may not pass, or None if it may."""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host", ""):
            return PlainTextResponse("Another site's page may not ask.\n", 403)
        if self._rules.token is None:
            return None
        return self._admission(request)

    def _admission(self, request: Request) -> Response | None:
        """Let in the cookie or a bearer token; exchange a token in the address for the cookie."""
        given = request.query_params.getlist("token")
        if given and self._rules.accepts(given[0]):
            return self._with_cookie(request)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and self._rules.accepts(bearer)
        if not given and (known or self._rules.recognises(request.cookies.get(COOKIE, ""))):
            return None
        return PlainTextResponse(
            "The token is missing or wrong: open the address that `bara dashboard` printed, or "
            "send it as `Authorization: Bearer TOKEN`.\n",
            401,
            {"www-authenticate": "Bearer"},
        )

    def _with_cookie(self, request: Request) -> Response:
        """Set the cookie and redirect to the same address without the token in it."""
        query = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
        address = "/" + request.scope["path"].lstrip("/")  # never to //elsewhere
        if query:
            address += f"?{urlencode(query)}"
        response = RedirectResponse(address, 303)
        secure = "https" in (request.scope.get("scheme"), request.headers.get("x-forwarded-proto"))
        response.set_cookie(
            COOKIE, self._rules.cookie, httponly=True, samesite="strict", secure=secure
        )
        return response


def _lower_host(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Write the host in lower case, because Starlette's check distinguishes capitals."""
    lowered = []
    for name, value in headers:
        if name == b"host":
            lowered.append((name, value.lower()))
        else:
            lowered.append((name, value))
    return lowered


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
