"""The sandbox as an ASGI application."""

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

from dialsim.interface.errors import Refused
from dialsim.sandbox.answer_faults import AnswerFaults
from dialsim.sandbox.authentication import Authentication
from dialsim.sandbox.control.plane import control_routes
from dialsim.sandbox.control_guard import ControlGuard
from dialsim.sandbox.control_token import ControlToken
from dialsim.sandbox.description.document import document
from dialsim.sandbox.endpoints import Endpoints
from dialsim.sandbox.envelopes import MEDIA_TYPE, failure
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.file_endpoints import FileEndpoints
from dialsim.sandbox.page.routes import Page
from dialsim.sandbox.service import Service

DESCRIPTION = "/openapi.json"


def application(exchange: Exchange, token: ControlToken | None = None) -> Starlette:
    """Serve interface, control plane, page and description; errors are in the error envelope."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        exchange.open()
        yield
        await exchange.close()

    app = Starlette(
        lifespan=lifespan,
        routes=[
            *Endpoints(Service(exchange)).routes(),
            *FileEndpoints(exchange).routes(),
            *control_routes(exchange),
            *Page(exchange).routes(),
            Route(DESCRIPTION, _describe),
        ],
        middleware=[
            Middleware(ControlGuard, token=token),
            Middleware(Authentication, keys=exchange.keys),
            Middleware(AnswerFaults, exchange=exchange),
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
