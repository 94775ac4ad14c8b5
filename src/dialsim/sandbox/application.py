"""The sandbox as an ASGI application: authentication, routes, injected faults, error envelope."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from time import monotonic
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialsim.errors import Refused
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX, ControlToken, hostname, is_control, is_loopback
from dialsim.sandbox.answers import JSON, failure, read_bytes
from dialsim.sandbox.control.clock import ClockOperations
from dialsim.sandbox.control.events import EventRoutes
from dialsim.sandbox.control.organizations import CampaignOperations, OrganizationOperations
from dialsim.sandbox.control.run import RunOperations
from dialsim.sandbox.control.traffic import TrafficOperations
from dialsim.sandbox.core import PATIENCE, SandboxCore
from dialsim.sandbox.operation import Operations, openapi_document
from dialsim.sandbox.orders import InjectedFault
from dialsim.sandbox.page import PageRoutes
from dialsim.sandbox.page.view import PATH
from dialsim.sandbox.request_log import RequestLogging
from dialsim.sandbox.service import FileOperations, GuessedOperations, InterfaceOperations

_ERRORS = {kind.status: kind for kind in fail.ASKED_FOR}


class FairShare:
    """Middleware that queues requests, so that polling clients do not hold up the clock.

    While the clock has work, requests run one after the other, each followed by a pause as long as
    the request took: requests get half of the time. The clock in turn works only for a moment
    before requests get their turn (`PATIENCE`).
    """

    def __init__(self, app: ASGIApp, core: SandboxCore) -> None:
        self._app = app
        self._core = core
        self._turn = asyncio.Lock()
        self._next = 0.0  # earliest start of the next request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Waiting requests pass in the order of their arrival: asyncio.Lock is fair.
        async with self._turn:
            while self._core.clock.is_busy and (pause := self._next - monotonic()) > 0:
                await asyncio.sleep(pause)
        begun = monotonic()
        try:
            await self._app(scope, receive, send)
        finally:
            ended = monotonic()
            # a longer request has mostly waited: for a body, a fault or the clock
            self._next = ended + min(ended - begun, PATIENCE)


class AnswerFaults:
    """Middleware that applies answer faults to authenticated requests.

    An error or a dropped connection replaces the answer. The request is then executed only if the
    fault requires it. A slow answer is computed at the moment of the request and sent late, as a
    whole or in pieces.
    """

    def __init__(self, app: ASGIApp, core: SandboxCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        fault = self._fault(scope)
        if fault is None:
            await self._app(scope, receive, send)
            return
        scope["fault"] = fault.number
        retry_after = fault.order.retry_after
        if fault.order.api == "limit":
            retry_after = fault.wait(scope["organization"], self._core.at)
        order, delay = fault.order, self._core.faults.delay(fault)
        match order.api:
            case "slow":
                await self._app(scope, receive, _held_back(send, delay))
                return
            case "slowBody":
                await self._app(scope, receive, _in_pieces(send, delay))
                return
        if order.executed:
            await self._app(scope, receive, _unsent)
        else:
            # The body is read although the request is not executed: the log of requests contains
            # the body.
            with suppress(Refused, ClientDisconnect):
                await read_bytes(Request(scope, receive))
        if order.api == "drop":
            await _drop(scope, receive)
            return
        headers = {fail.MARK: str(fault.number)}
        if retry_after is not None:
            headers["Retry-After"] = str(-(-retry_after // 1000))
        await failure(_ERRORS[order.error_status].refused(), headers)(scope, receive, send)

    def _fault(self, scope: Scope) -> InjectedFault | None:
        # Authentication sets the owner, only for paths under /api: faults strike no other path.
        caller = scope.get("organization")
        return None if caller is None else self._core.strike_request(caller, scope["path"])


def _held_back(send: Send, delay: int) -> Send:
    """Return a `send` whose answer starts `delay` ms late, or when the sandbox stops.

    The request has been executed by then. Dropping the answer would suggest to the client that the
    request failed.
    """

    async def later(message: Message) -> None:
        if message["type"] == "http.response.start":
            with suppress(CancelledError):
                await asyncio.sleep(delay / 1000)
        await send(message)

    return later


PIECES = 10
"""Number of pieces in which the body of a slow answer is sent."""


def _in_pieces(send: Send, delay: int) -> Send:
    """Return a `send` that sends a body in pieces over `delay` ms, or until the sandbox stops."""
    stopping = False

    async def piecewise(message: Message) -> None:
        nonlocal stopping
        body = message.get("body", b"")
        size = -(-len(body) // PIECES)
        while len(body) > size and not stopping:
            await send({"type": "http.response.body", "body": body[:size], "more_body": True})
            body = body[size:]
            try:
                await asyncio.sleep(delay / 1000 / PIECES)
            # The request was executed, so it must be answered: a client would take silence for a
            # failure and ask again.
            except CancelledError:
                stopping = True
        await send({**message, "body": body} if body else message)

    return piecewise


async def _unsent(_message: Message) -> None:
    """Discard an answer."""


DROP = "dialsim.drop"
"""Scope key under which a connection offers a function that drops it."""


async def _drop(scope: Scope, receive: Receive) -> None:
    """Close a connection, and wait until it is gone."""
    scope[DROP]()
    while (await receive())["type"] != "http.disconnect":
        pass


_HEADER = b"x-api-key"


class Authentication:
    """Lets a request under /api pass with the position of its organization, or answers 401."""

    def __init__(self, app: ASGIApp, core: SandboxCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and _is_guarded(scope["path"]):
            try:
                scope["organization"] = self._organization(scope)
            except Refused as refused:
                await failure(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _organization(self, scope: Scope) -> int:
        # a repeated header is read as one value with a comma, which is no key
        key = b", ".join(value for name, value in scope["headers"] if name == _HEADER).strip()
        if not key:
            raise fail.NO_KEY.refused()
        owner = self._core.keys.owner(key)
        if owner is None:
            raise fail.WRONG_KEY.refused()
        return owner


def _is_guarded(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")


# A proxy in front may add TLS: the page then has the scheme https, but this server has http.
_SCHEMES = ("http", "https")
_READS = ("GET", "HEAD")


class ControlGuard:
    """Middleware that answers 403 to control requests that another site may have made.

    The `Origin` header reveals such a request. Without a token, the server listens only to this
    machine, and the `Host` header reveals requests under a foreign host name (DNS rebinding). With
    a token, requests without the token get 401.
    """

    def __init__(self, app: ASGIApp, token: ControlToken | None = None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and is_control(scope["path"]):
            try:
                answer = self._answer(Request(scope))
            except Refused as refused:
                challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
                answer = failure(refused, challenge)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _answer(self, request: Request) -> Response | None:
        """Return the guard's answer, or None to let the request pass.

        Raises Refused for a forbidden request.
        """
        if self._token is None:
            if not (_is_addressed_here(request) and _is_of_our_pages(request)):
                raise fail.ELSEWHERE.refused()
            return None
        if not _is_of_our_pages(request):
            raise fail.OTHER_SITE.refused()
        offered = request.query_params.get("token")
        if request.method == "GET" and request.scope["path"] == PATH and offered is not None:
            return self._cookie_for(offered, request, self._token)
        self._require_token(request, self._token)
        return None

    def _cookie_for(self, offered: str, request: Request, token: ControlToken) -> Response:
        """Take the token out of the address and put a cookie in its place."""
        if not token.is_token(offered):
            raise fail.WRONG_TOKEN.refused()
        answer = RedirectResponse(
            PATH, 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        )
        answer.set_cookie(
            _cookie_name(request),
            token.cookie,
            path=PREFIX,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    def _require_token(self, request: Request, token: ControlToken) -> None:
        scheme, _, offered = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            if not token.is_token(offered.strip()):
                raise fail.WRONG_TOKEN.refused()
            return
        cookie = request.cookies.get(_cookie_name(request))
        if cookie is None or not _is_sent_by_our_pages(request) or not token.is_cookie(cookie):
            raise fail.NO_TOKEN.refused()


def _is_addressed_here(request: Request) -> bool:
    hosts = request.headers.getlist("host")
    return len(hosts) == 1 and is_loopback(hostname(f"http://{hosts[0]}"))


def _is_of_our_pages(request: Request) -> bool:
    """True if the request comes from a page of this address, or from no page."""
    host = request.headers.get("host", "")
    ours = [f"{scheme}://{host}" for scheme in _SCHEMES]
    return all(origin in ours for origin in request.headers.getlist("origin"))


def _is_sent_by_our_pages(request: Request) -> bool:
    """True if a page of this address may have sent the cookie.

    Browsers send cookies also from other ports of the same machine. A browser that does not report
    the origin may read, because it does not pass the answer to pages of other sites.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return request.method in _READS or "origin" in request.headers


def _cookie_name(request: Request) -> str:
    """Return a cookie name per port: all servers of a host name share its cookies."""
    return f"dialsim_control_{request.scope['server'][1]}"


DESCRIPTION = "/openapi.json"
OPERATIONS: tuple[type[Operations], ...] = (
    InterfaceOperations,
    ClockOperations,
    CampaignOperations,
    OrganizationOperations,
    TrafficOperations,
    RunOperations,
    FileOperations,
)
"""Operations of every sandbox, in the order of the description."""


def offered(guessed: bool) -> tuple[type[Operations], ...]:
    """Return the offered operations; `guessed` adds those without an example in the interface."""
    return (*OPERATIONS, GuessedOperations) if guessed else OPERATIONS


def description(guessed: bool = False) -> dict[str, Any]:
    """The OpenAPI 3.1 description of interface and control plane, as plain values."""
    return openapi_document([one for kind in offered(guessed) for one in kind.declared])


def application(core: SandboxCore, token: ControlToken | None = None) -> Starlette:
    """Serve interface, control plane, page and description; errors are in the error envelope."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        core.open()
        yield
        await core.close()

    guessed = core.scenario.service.guessed

    async def describe(_request: Request) -> Response:
        return Response(_description(guessed), media_type=JSON)

    app = Starlette(
        lifespan=lifespan,
        routes=[
            *(route for kind in offered(guessed) for route in kind(core).routes()),
            *EventRoutes(core).routes(),
            *PageRoutes(core).routes(),
            Route(DESCRIPTION, describe),
        ],
        middleware=[
            # The order matters: refused requests wait and are logged as well, and faults strike
            # only authenticated ones.
            Middleware(FairShare, core=core),
            Middleware(RequestLogging, core=core),
            Middleware(ControlGuard, token=token),
            Middleware(Authentication, core=core),
            Middleware(AnswerFaults, core=core),
        ],
        exception_handlers={
            Refused: _refused,
            HTTPException: _not_routed,
            ClientDisconnect: _gone,
            Exception: _our_fault,
        },
    )
    # An unknown path is 404 as in the interface; a redirect would hide a mistake of the client.
    app.router.redirect_slashes = False
    return app


@cache
def _description(guessed: bool) -> bytes:
    return orjson.dumps(description(guessed))


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return failure(error)


async def _not_routed(request: Request, error: Exception) -> Response:
    """An unknown path, or a method that the path doesn't take."""
    assert isinstance(error, HTTPException)
    text = f"Cannot {request.method} {request.scope['path']}"
    if error.status_code != 405:
        return failure(Refused(404, "NOT_FOUND", [text]))
    allowed = sorted((error.headers or {}).get("Allow", "").split(", "))
    return failure(Refused(405, "METHOD_NOT_ALLOWED", [text]), {"Allow": ", ".join(allowed)})


async def _gone(_request: Request, _error: Exception) -> Response:
    """Return a placeholder answer for a client that disconnected during its request."""
    return Response(status_code=400)


async def _our_fault(_request: Request, _error: Exception) -> Response:
    return failure(fail.OUR_FAULT.refused())
