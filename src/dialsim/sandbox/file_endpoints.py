"""The links of webhooks over HTTP: files of calls, without key and without token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialsim.sandbox.call_files import CallFiles
from dialsim.sandbox.envelopes import MEDIA_TYPE
from dialsim.sandbox.exchange import Exchange


class FileEndpoints:
    """Serves recordings and transcripts; errors have the error envelope."""

    def __init__(self, exchange: Exchange) -> None:
        self._files = CallFiles(exchange)

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [
            Route("/files/recordings/{id}.wav", self._recording),
            Route("/files/transcripts/{id}.json", self._transcript),
        ]

    async def _recording(self, request: Request) -> Response:
        return Response(self._files.recording(*_link(request)), media_type="audio/wav")

    async def _transcript(self, request: Request) -> Response:
        return Response(self._files.transcript(*_link(request)), media_type=MEDIA_TYPE)


def _link(request: Request) -> tuple[str, str, str]:
    """Id, expiry and signature as they stand in the link."""
    query = request.query_params
    return request.path_params["id"], query.get("expires", ""), query.get("signature", "")
