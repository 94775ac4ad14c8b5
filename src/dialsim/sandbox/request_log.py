"""The log of requests: requests of clients and their answers, secrets masked."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialsim.sandbox.access import is_control

if TYPE_CHECKING:
    from dialsim.sandbox.core import SandboxCore

MOST_REQUESTS = 2_000
"""Number of requests kept; further requests replace the oldest."""
MOST_LOGGED_BYTES = 16_384
"""Bytes kept of a body."""

# requests of the sandbox's operators, not of clients of the service
_UNLOGGED = ("/", "/openapi.json", "/favicon.ico")


@dataclass(slots=True)
class Captured:
    """Recorded body: its beginning, and its whole size in bytes."""

    kept: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, piece: bytes) -> None:
        """Take in the next piece."""
        self.size += len(piece)
        self.kept += piece[: MOST_LOGGED_BYTES - len(self.kept)]

    @property
    def cut(self) -> bool:
        """True if only the beginning of the body is kept."""
        return self.size > len(self.kept)

    def shown(self) -> Any:
        """Return the body with secrets masked: JSON, else text; None for empty or binary bodies."""
        if not self.kept:
            return None
        # A truncated body is no longer valid JSON, so it is shown as text.
        if not self.cut:
            try:
                return masked(orjson.loads(self.kept))
            except orjson.JSONDecodeError:
                pass
        text = self.kept.decode(errors="ignore" if self.cut else "replace")
        return None if "\0" in text or "\ufffd" in text else masked_text(text)


@dataclass(slots=True)
class LoggedRequest:
    """A request; `at` is the virtual instant (ms) at which it came, `received_at` the real one.

    `organization` is the name of the key's owner, known once the key was checked. `status` and
    `took` (s) are None until the answer; `status` stays None if the connection was dropped. `fault`
    is the number of the fault that struck the request.
    """

    n: int
    at: int
    received_at: int
    method: str
    path: str
    query: str
    raw_headers: list[tuple[bytes, bytes]]
    body: Captured = field(default_factory=Captured)
    answer: Captured = field(default_factory=Captured)
    organization: str | None = None
    status: int | None = None
    took: float | None = None
    fault: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers, secrets masked; values of a repeated header are joined by commas."""
        shown: dict[str, str] = {}
        for raw_name, raw_value in self.raw_headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            value = masked_value(value) if _is_secret(name) else masked_text(value)
            shown[name] = f"{shown[name]}, {value}" if name in shown else value
        return shown

    @property
    def outcome(self) -> str:
        """Short text of the outcome."""
        if self.status is not None:
            return str(self.status)
        return "under way" if self.took is None else "dropped"

    @property
    def fate(self) -> Literal["delivered", "failed", "underWay"]:
        """Kind of the outcome, as for webhooks."""
        if self.status is None:
            return "underWay" if self.took is None else "failed"
        return "delivered" if self.status < 400 else "failed"


class RequestLog:
    """The latest requests of clients, the oldest first, numbered from 1.

    `count` is the number of requests ever logged; `changes` grows with every change of the log.
    """

    def __init__(self) -> None:
        self.count = 0
        self.changes = 0
        self._requests: deque[LoggedRequest] = deque(maxlen=MOST_REQUESTS)

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._requests)

    def begin(self, scope: Scope, at: int) -> LoggedRequest:
        """Log a request that arrives at a virtual instant (ms)."""
        self.count += 1
        self.changes += 1
        request = LoggedRequest(
            n=self.count,
            at=at,
            received_at=time.time_ns() // 1_000_000,
            method=scope["method"],
            path=masked_text(scope["path"]),
            query=_masked_query(scope["query_string"].decode("latin-1")),
            raw_headers=[*scope["headers"]],
        )
        self._requests.append(request)
        return request

    def clear(self) -> int:
        """Remove all requests and return their number. Request numbers are not used again."""
        cleared = len(self._requests)
        self._requests.clear()
        self.changes += 1
        return cleared

    def newest(self, most: int) -> list[LoggedRequest]:
        """Return a range of the requests, newest first."""
        return [*islice(reversed(self._requests), most)]

    def find(self, n: int) -> LoggedRequest | None:
        """Return the request with a number; None for a forgotten, cleared or unknown request."""
        first = self.count - len(self._requests) + 1
        return self._requests[n - first] if first <= n <= self.count else None


class RequestLogging:
    """Middleware that logs requests of clients and their answers, except control requests."""

    def __init__(self, app: ASGIApp, core: SandboxCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or _is_unlogged(scope["path"]):
            await self._app(scope, receive, send)
            return
        # the sender is an index into these accounts, which a restore may replace meanwhile
        log, accounts = self._core.requests, self._core.accounts
        request, began = log.begin(scope, self._core.at), time.perf_counter()

        async def heard() -> Message:
            message = await receive()
            request.body.add(message.get("body", b""))
            return message

        async def said(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
            else:
                request.answer.add(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, heard, said)
        except Exception:
            # The error handler, outside of this middleware, answers with a 500 that is not seen
            # here.
            request.status = request.status or 500
            raise
        finally:
            request.took = time.perf_counter() - began
            owner = scope.get("organization")
            request.organization = None if owner is None else accounts[owner].block.name
            request.fault = scope.get("fault")
            log.changes += 1


def _is_unlogged(path: str) -> bool:
    return path in _UNLOGGED or is_control(path)


# -- filters ---------------------------------------------------------------------------------------

_WILD = re.compile(r"(\{[^{}/]*\}|\*\*|\*)")


def path_pattern(path: str) -> re.Pattern[str]:
    """Return a pattern in which `*`, or a name in braces, matches any text without a slash.

    `**` matches any text: `/api/campaign/{id}/pause`, `/api/call/*`, `/api/**`.
    """
    parts = _WILD.split(path)
    texts = (re.escape(part) if index % 2 == 0 else _wild(part) for index, part in enumerate(parts))
    return re.compile("".join(texts), re.DOTALL)


def _wild(part: str) -> str:
    return ".*" if part == "**" else "[^/]+"


def has_status(status: int | None, wanted: str) -> bool:
    """True if a status matches `wanted`: a status (`404`), a class (`4xx`), or `none`."""
    shown = "none" if status is None else str(status)
    return wanted in (shown, f"{shown[0]}xx")


def chosen(
    requests: Iterable[LoggedRequest],
    *,
    method: str | None = None,
    path: str | None = None,
    status: str | None = None,
    organization: str | None = None,
) -> list[LoggedRequest]:
    """Return the requests that match all filters; None as a filter matches everything."""
    pattern = None if path is None else path_pattern(path)
    return [
        one
        for one in requests
        if (method is None or one.method == method.upper())
        and (pattern is None or pattern.fullmatch(one.path) is not None)
        and (status is None or has_status(one.status, status))
        and organization in (None, one.organization)
    ]


# -- secrets ---------------------------------------------------------------------------------------

MASK = "xxxxxxxx"
"""Replacement of a secret without a format of its specific kind."""

_SECRETS = ("authorization", "cookie", "key", "token", "secret", "password", "signature")
# an API key is a prefix, an underscore and 32 characters (interface, section 5)
_KEY = re.compile(r"_[^\s_\"'&,;/\\]{32,}")
_SIGNATURE = re.compile(r"(signature=)[^&\s\"'\\]+")
_NO_SECRETS = ("voicekey", "categorykey", "ttsvoicekeys")  # keys of voices, not secrets


def _is_secret(name: str) -> bool:
    plain = name.lower()
    return plain not in _NO_SECRETS and any(part in plain for part in _SECRETS)


def masked_text(text: str) -> str:
    """Return a text with its API keys and signatures masked."""
    return _SIGNATURE.sub(rf"\1{MASK}", _KEY.sub("_" + "x" * 32, text))


def masked_value(value: str) -> str:
    """A secret, masked; of an API key the prefix stays."""
    shown = masked_text(value)
    return MASK if shown == value else shown


def masked(value: Any) -> Any:
    """Return JSON with secrets masked: texts under secret names, and API keys anywhere."""
    if isinstance(value, dict):
        return {
            name: masked_value(one) if isinstance(one, str) and _is_secret(name) else masked(one)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [masked(one) for one in value]
    return masked_text(value) if isinstance(value, str) else value


def _masked_query(query: str) -> str:
    pairs = (pair.partition("=") for pair in query.split("&")) if query else ()
    return "&".join(
        f"{name}{equals}{masked_value(value) if _is_secret(name) and value else masked_text(value)}"
        for name, equals, value in pairs
    )
