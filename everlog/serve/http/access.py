"""Access control: refuses requests before any route sees them.

A service on loopback has no token by default, but any page in a browser can send requests to it.
So the Host header must name this service (otherwise another name may lead here: DNS rebinding),
pages of other origins are refused, and bodies must be declared as JSON, which such pages cannot do
without CORS, which is absent.  Tokens are compared in constant time.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from attrs import frozen
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everlog.serve.errors import ApiError
from everlog.serve.requests.routes import PREFIX
from everlog.serve.wire import dumped

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_ELSEWHERE = frozenset({"cross-site", "same-site"})  # values of Sec-Fetch-Site
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def is_loopback(host: str) -> bool:
    """Whether a host means this machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0")]
    [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@frozen
class AccessRules:
    """The rules of access: a token, if there is one, and allowed host names, if any."""

    token: str | None = None
    hosts: Collection[str] = _LOCAL

    @staticmethod
    def of(host: str, token: str | None, names: Collection[str] = ()) -> AccessRules:
        """The rules for a service at `host`; beyond loopback any host name is allowed."""
        known = _LOCAL | {host, *names} if is_loopback(host) or names else frozenset()
        return AccessRules(token, frozenset(name.lower() for name in known))

    def refuse(self, headers: Headers, path: str, is_open: bool) -> ApiError | None:
        """The error for a request without access, or None."""
        host = headers.get("host", "")
        if self.hosts and _name(host) not in self.hosts:
            message = f"this service is not known as `{host[:80]}`: allow the name with `--allow-host`"
            return ApiError(421, "host", message)
        if not path.startswith(PREFIX):
            return None  # the workbench, which is public
        origin = headers.get("origin")
        sites = {site.strip().lower() for value in headers.getlist("sec-fetch-site") for site in value.split(",")}
        if (origin is not None and _place(origin) != host.lower()) or sites & _ELSEWHERE:
            return ApiError(403, "forbidden", "pages of other origins may not use this service")
        if self.token is not None and not is_open and not self._is_right(headers.get("authorization", "")):
            return ApiError(401, "token", "send the token of this service: `Authorization: Bearer TOKEN`")
        return None

    def _is_right(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        right = (self.token or "").encode()
        return hmac.compare_digest(given.strip().encode("utf-8", "replace"), right) and scheme.lower() == "bearer"


def _place(origin: str) -> str:
    """Host and port of an origin; empty if it has none.

    >>> _place("http://localhost:8765"), _place("null"), _place("http://[")
    ('localhost:8765', '', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """The name in a Host header, without its port.

    >>> _name("localhost:8765"), _name("[::1]:80"), _name("evil.example")
    ('localhost', '::1', 'evil.example')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class AccessControl:
    """ASGI middleware that refuses requests, and adds safe headers to all answers."""

    def __init__(self, app: ASGIApp, access: AccessRules, open_paths: Collection[str]) -> None:
        self._app, self._admission, self._open = app, access, open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._admission.refuse(Headers(scope=scope), scope["path"], scope["path"] in self._open)
        if refusal is not None:
            await _refuse(refusal, send)
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        await self._app(scope, receive, safely)


async def _refuse(refusal: ApiError, send: Send) -> None:
    body = dumped(refusal.body())
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_HEADERS]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="everlog"'))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
