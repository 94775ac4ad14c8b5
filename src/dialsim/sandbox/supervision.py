"""Supervision: requests are broken off when the sandbox stops, and faults of ours are noted."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.envelopes import failure


class Supervision:
    """The application, watched: `faults` are those of ours, which were answered with 500.

    Once `stopping` is set, requests that are cancelled or still come in are answered with 503, and
    answers that are under way, such as streams, end where they are.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.stopping = False
        self.faults: list[Exception] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            if scope["type"] != "http" or not self.stopping:
                await self._app(scope, receive, noted)
                return
        except CancelledError:
            if not self.stopping:
                raise
        except Exception as fault:
            self.faults.append(fault)
            raise
        if begun:
            with suppress(Exception):  # of an answer that announced its length
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            refused = Refused(503, "STOPPED", ["The sandbox was stopped"])
            await failure(refused)(scope, receive, send)
