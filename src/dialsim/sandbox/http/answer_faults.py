"""Answers that fail on purpose: requests under /api meet the faults that were asked for."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import InjectedFault
from dialsim.sandbox.http.answers import failure
from dialsim.sandbox.http.failures import ASKED_FOR, MARK

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
