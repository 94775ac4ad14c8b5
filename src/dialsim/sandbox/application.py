"""The sandbox as an ASGI application: authentication, routes, injected faults, error envelope."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.control.campaigns import CallOperations, CampaignOperations
from dialsim.sandbox.control.clock import ClockOperations
from dialsim.sandbox.control.export import ExportOperations
from dialsim.sandbox.control.faults import FaultOperations
from dialsim.sandbox.control.guard import ControlGuard
from dialsim.sandbox.control.organizations import OrganizationOperations, PeopleOperations
from dialsim.sandbox.control.token import ControlToken
from dialsim.sandbox.control.webhooks import WebhookOperations
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import InjectedFault
from dialsim.sandbox.http.answers import JSON, failure
from dialsim.sandbox.http.failures import ASKED_FOR, MARK, NO_KEY, OUR_FAULT, WRONG_KEY
from dialsim.sandbox.http.openapi import document
from dialsim.sandbox.http.operation import Operations
from dialsim.sandbox.http.service import FileOperations, InterfaceOperations
from dialsim.sandbox.organization import KeyRing
from dialsim.sandbox.page.routes import PageRoutes

_ERRORS = {kind.status: kind for kind in ASKED_FOR}


class AnswerFaults:
    """Has a request whose sender is known meet the faults of answers.

    An error comes in the place of the answer, and the request is not carried out. A slow answer is
    that of the moment of the request, and is only held back.
    """

    def __init__(self, app: ASGIApp, core: SandboxCore) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        fault = self._fault(scope)
        if fault is None:
            await self._app(scope, receive, send)
        elif fault.order.api == "error":
            refused = _ERRORS[fault.order.status or 503].refused()
            await failure(refused, {MARK: str(fault.number)})(scope, receive, send)
        else:
            await self._app(scope, receive, _held_back(send, fault.order.delay or 0))

    def _fault(self, scope: Scope) -> InjectedFault | None:
        organization = scope.get("organization")  # known only under /api
        if organization is None:
            return None
        core = self._core
        return core.face(core.faults.for_answer(organization, scope["path"]))


def _held_back(send: Send, delay: int) -> Send:
    """Sends an answer that begins `delay` ms late, or when the sandbox stops.

    The request has been carried out by then: to break it off would tell the client otherwise.
    """

    async def later(message: Message) -> None:
        if message["type"] == "http.response.start":
            with suppress(CancelledError):
                await asyncio.sleep(delay / 1000)
        await send(message)

    return later


_HEADER = b"x-api-key"


class Authentication:
    """Lets a request under /api pass with the position of its organization, or answers 401."""

    def __init__(self, app: ASGIApp, keys: KeyRing) -> None:
        self._app = app
        self._keys = keys

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
        # a header sent twice counts as one with a comma in it, which is no key
        key = b", ".join(value for name, value in scope["headers"] if name == _HEADER).strip()
        if not key:
            raise NO_KEY.refused()
        owner = self._keys.owner(key)
        if owner is None:
            raise WRONG_KEY.refused()
        return owner


def _is_guarded(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")


DESCRIPTION = "/openapi.json"
OPERATIONS: tuple[type[Operations], ...] = (
    InterfaceOperations,
    ClockOperations,
    CampaignOperations,
    CallOperations,
    OrganizationOperations,
    PeopleOperations,
    FaultOperations,
    WebhookOperations,
    ExportOperations,
    FileOperations,
)
"""All that a sandbox offers to programs, in the order of the description."""


def description() -> dict[str, Any]:
    """The OpenAPI 3.1 description of interface and control plane, as plain values."""
    return document([one for kind in OPERATIONS for one in kind.declared])


def application(core: SandboxCore, token: ControlToken | None = None) -> Starlette:
    """Serve interface, control plane, page and description; errors are in the error envelope."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        core.open()
        yield
        await core.close()

    app = Starlette(
        lifespan=lifespan,
        routes=[
            *(route for kind in OPERATIONS for route in kind(core).routes()),
            *PageRoutes(core).routes(),
            Route(DESCRIPTION, _describe),
        ],
        middleware=[
            Middleware(ControlGuard, token=token),
            Middleware(Authentication, keys=core.keys),
            Middleware(AnswerFaults, core=core),
        ],
        exception_handlers={
            Refused: _refused,
            HTTPException: _not_routed,
            ClientDisconnect: _gone,
            Exception: _our_fault,
        },
    )
    app.router.redirect_slashes = False
    return app


async def _describe(_request: Request) -> Response:
    return Response(_description(), media_type=JSON)


@cache
def _description() -> bytes:
    return orjson.dumps(description())


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
    """A client that hung up amid its request: nobody is there to be answered."""
    return Response(status_code=400)


async def _our_fault(_request: Request, _error: Exception) -> Response:
    return failure(OUR_FAULT.refused())
