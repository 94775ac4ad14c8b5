"""Routes of the control plane: one per path, so that 405 names all its methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Handler = Callable[[Request], Awaitable[Response]]

MOST_BYTES = 268_435_456
"""The most that a request under /_dialsim may carry."""


def route(path: str, **handlers: Handler) -> Route:
    """The route of a path, with a handler per method (`get=…`); GET answers HEAD too."""

    async def serve(request: Request) -> Response:
        method = "get" if request.method == "HEAD" else request.method.lower()
        return await handlers[method](request)

    return Route(path, serve, methods=[method.upper() for method in handlers])
