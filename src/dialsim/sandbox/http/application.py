"""Authentication: who asks is known before anything else under /api is looked at (section 5).

The sandbox as an ASGI application.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.control.guard import ControlGuard, ControlToken
from dialsim.sandbox.control.plane import control_routes
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.description.document import document
from dialsim.sandbox.http.answer_faults import AnswerFaults
from dialsim.sandbox.http.answers import MEDIA_TYPE, failure
from dialsim.sandbox.http.endpoints import Endpoints, FileEndpoints, Service
from dialsim.sandbox.organization import KeyRing
from dialsim.sandbox.page.routes import Page

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
            raise Refused(401, "API_KEY_REQUIRED", ["API key is required"])
        owner = self._keys.owner(key)
        if owner is None:
            raise Refused(401, "INVALID_API_KEY", ["Invalid API key"])
        return owner


def _is_guarded(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")


DESCRIPTION = "/openapi.json"


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
            *Endpoints(Service(core)).routes(),
            *FileEndpoints(core).routes(),
            *control_routes(core),
            *Page(core).routes(),
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
    return Response(_description(), media_type=MEDIA_TYPE)


@cache
def _description() -> bytes:
    return orjson.dumps(document())


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
    return failure(Refused(500, "INTERNAL_ERROR", ["Internal server error"]))
