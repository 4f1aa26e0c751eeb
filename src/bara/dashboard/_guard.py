"""Who may ask: no foreign page, and beyond this machine only who knows the token."""

import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import final
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[")
"""This machine's names as `TrustedHostMiddleware` reads them: of an IPv6 address, `[::1]:8765`, up to the first colon.

A page that reaches us by rebinding its own name asks under that name, never under an address in
numbers.
"""

COOKIE = "bara-dashboard"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Rules:
    """Whom to let in.

    Attributes:
        hosts: Names under which the dashboard may be asked for; "*" for any, where there is a token
            to know.
        token: What a visitor must know; None for nothing.
    """

    hosts: Collection[str] = LOOPBACK
    token: str | None = None

    def accepts(self, presented: str) -> bool:
        """Whether that is the token; takes as long whatever is presented."""
        return self.token is None or hmac.compare_digest(_digest(presented), _digest(self.token))

    def recognises(self, cookie: str) -> bool:
        """Whether that is what a browser keeps."""
        return hmac.compare_digest(_digest(cookie), _digest(self.cookie))

    @property
    def cookie(self) -> str:
        """What the visitor's browser keeps instead of the token, which cannot be found from it."""
        return hmac.new((self.token or "").encode(), b"bara dashboard", hashlib.sha256).hexdigest()


@final
class Guard:
    """Stands before the pages.

    Args:
        app: The pages.
        rules: Whom to let in.
    """

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for the pages, or let them."""
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

        # Hosts have the same name in capitals; Starlette's check, further in, compares letter by
        # letter.
        headers = [
            (name, value.lower() if name == b"host" else value) for name, value in scope["headers"]
        ]
        scope = {**scope, "headers": headers}
        refusal = self._refusal(Request(scope))
        await (self._app if refusal is None else refusal)(scope, receive, send_safely)

    def _refusal(self, request: Request) -> Response | None:
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host", ""):
            return PlainTextResponse("Another site's page may not ask.\n", 403)
        return None if self._rules.token is None else self._admission(request)

    def _admission(self, request: Request) -> Response | None:
        """None for who has the cookie or the token in a header; a cookie for who brings the token in the address."""
        given = request.query_params.getlist("token")
        if given and self._rules.accepts(given[0]):
            return self._with_cookie(request)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and self._rules.accepts(bearer)
        if not given and (known or self._rules.recognises(request.cookies.get(COOKIE, ""))):
            return None
        return PlainTextResponse(
            "The token is missing or wrong: open the address that `bara dashboard` printed, or send it "
            "as `Authorization: Bearer TOKEN`.\n",
            401,
            {"www-authenticate": "Bearer"},
        )

    def _with_cookie(self, request: Request) -> Response:
        """The same page without the token in its address, where it would be seen, kept and passed on."""
        query = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
        path = "/" + request.scope["path"].lstrip("/")  # never to //elsewhere
        response = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        secure = "https" in (request.scope.get("scheme"), request.headers.get("x-forwarded-proto"))
        response.set_cookie(
            COOKIE, self._rules.cookie, httponly=True, samesite="strict", secure=secure
        )
        return response


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
