"""The interface's endpoints over HTTP (sections 4.1 to 4.7): paths, methods, and nothing else."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialsim.sandbox.envelopes import MEDIA_TYPE
from dialsim.sandbox.request_body import read_bytes, read_json
from dialsim.sandbox.service import Service, require_uuid

_MALFORMED = (400, "VALIDATION_FAILED")
"""What a body of another content type is answered with: the interface has no 415 (section 7)."""


class Endpoints:
    """Hands requests to the service; who asks is known by then."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """One route per endpoint; GET answers HEAD too."""
        campaign = "/api/campaign/{id}"
        return [
            Route(f"{campaign}/recipients", self._recipients),  # tried in turn: the busiest first
            Route("/api/call/{callId}", self._call),
            Route("/api/recipient/{recipientId}", self._recipient),
            Route("/api/agent/list", self._agents),
            Route(f"{campaign}/pause", self._pause, methods=["POST"]),
            Route(f"{campaign}/schedule", self._schedule, methods=["POST"]),
            Route("/voice-demo/catalog", self._voices),
        ]

    async def _agents(self, request: Request) -> Response:
        return _answer(self._service.agents(_organization(request)))

    async def _pause(self, request: Request) -> Response:
        identifier = request.path_params["id"]
        require_uuid("id", identifier)
        await read_bytes(request)  # no body is asked for; one that is sent must not be too large
        return _answer(self._service.pause(_organization(request), identifier))

    async def _recipients(self, request: Request) -> Response:
        query = request.scope["query_string"].decode("latin-1")
        pages = [
            value for name, value in parse_qsl(query, keep_blank_values=True) if name == "page"
        ]
        # a parameter sent twice counts as one with a comma in it, as everywhere
        page = ",".join(pages) if pages else None
        identifier = request.path_params["id"]
        return _answer(self._service.recipients(_organization(request), identifier, page))

    async def _recipient(self, request: Request) -> Response:
        identifier = request.path_params["recipientId"]
        return _answer(self._service.recipient(_organization(request), identifier))

    async def _call(self, request: Request) -> Response:
        identifier = request.path_params["callId"]
        return _answer(self._service.call(_organization(request), identifier))

    async def _schedule(self, request: Request) -> Response:
        identifier = request.path_params["id"]
        body = await read_json(request, unsupported=_MALFORMED)
        return _answer(self._service.schedule(_organization(request), identifier, body))

    async def _voices(self, _request: Request) -> Response:
        return _answer(self._service.voices)


def _answer(body: bytes) -> Response:
    return Response(body, media_type=MEDIA_TYPE)


def _organization(request: Request) -> int:
    position: int = request.scope["organization"]
    return position
