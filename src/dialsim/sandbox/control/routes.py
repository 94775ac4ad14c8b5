"""Routes of the control plane: one per path, so that 405 names all its methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dialsim.sandbox.http.answers import refuse_body, refuse_query

Handler = Callable[[Request], Awaitable[Response]]

MOST_BYTES = 268_435_456
"""The most that a request under /_dialsim may carry."""


def route(
    path: str, *, query: Collection[str] = (), body: Collection[str] = (), **handlers: Handler
) -> Route:
    """The route of a path, with a handler per method (`get=…`); GET answers HEAD too.

    `query` and `body` name the methods whose handlers read what stands there. Of others nothing is
    taken: a request that has something there all the same is refused.
    """

    async def serve(request: Request) -> Response:
        method = "get" if request.method == "HEAD" else request.method.lower()
        if method not in query:
            refuse_query(request)
        if method not in body:
            await refuse_body(request)
        return await handlers[method](request)

    return Route(path, serve, methods=[method.upper() for method in handlers])
