"""The service: what the interface's endpoints do, for one organization, without HTTP.

The interface's endpoints over HTTP (sections 4.1 to 4.7): paths, methods, and nothing else.

The links of webhooks over HTTP: files of calls, without key and without token.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialsim.interface.agent import SAMPLE_CATEGORIES
from dialsim.interface.errors import Refused
from dialsim.interface.model import is_uuid
from dialsim.interface.schedule import read_schedule
from dialsim.interface.status import CampaignStatus
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.commands import PauseCampaign, ScheduleCampaign
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.files import CallFiles
from dialsim.sandbox.http.answers import MEDIA_TYPE, read_bytes, read_json, success
from dialsim.sandbox.tables import count_pages, read_page


class Service:
    """Endpoints of the interface (sections 4.1 to 4.7) over an core.

    Every method takes the position of the organization that asks. It returns the answer's body, and
    raises `Refused` with the status, code and texts of its error tables, in the order of its
    checks. Another organization's resources are missing.
    """

    def __init__(self, core: SandboxCore) -> None:
        self.core = core
        self._accounts = core.accounts
        self._simulation = core.simulation
        scenario = core.scenario
        self.voices = orjson.dumps(
            {
                "voices": [voice.model_dump(by_alias=True) for voice in scenario.voices],
                "categories": [part.model_dump(by_alias=True) for part in SAMPLE_CATEGORIES],
            }
        )

    def agents(self, organization: int) -> bytes:
        """List agents (4.1)."""
        return success(
            "Get Agent list successfully", orjson.dumps(self._accounts[organization].agents)
        )

    def pause(self, organization: int, identifier: str) -> bytes:
        """Pause a campaign (4.2)."""
        require_uuid("id", identifier)
        view = self._campaign(organization, identifier)
        if view.campaign.status is CampaignStatus.PAUSED:
            return success("Campaign is already PAUSED", _state(view, CampaignStatus.PAUSED))
        self.core.carry_out(PauseCampaign(**view.place))
        message = "Campaign status updated to PAUSED successfully"
        return success(message, _state(view, CampaignStatus.PAUSED))

    def recipients(self, organization: int, identifier: str, page: str | None = None) -> bytes:
        """List a campaign's recipients (4.3); `page` as it stands in the query, None if absent."""
        require_uuid("id", identifier)
        shown = read_page(page)
        view = self._campaign(organization, identifier)
        view.catch_up()
        total = view.total_recipients
        who = view.newest_first(shown.rows.start, shown.rows.stop)
        data = {
            "totalRecipients": total,
            "totalPages": count_pages(total),
            "page": orjson.Fragment(shown.digits),  # may be beyond the integers of orjson
            "recipients": view.recipients(who, self._simulation.at),
        }
        return success("Get Campaign recipients successfully", orjson.dumps(data))

    def recipient(self, organization: int, identifier: str) -> bytes:
        """Get a recipient (4.4)."""
        require_uuid("recipientId", identifier)
        found = self._accounts[organization].recipient(identifier)
        if found is None:
            raise Refused(404, "RECIPIENT_NOT_FOUND", ["Recipient not found"])
        view, recipient = found
        view.catch_up()
        data = view.recipient(recipient, self._simulation.at)
        return success("Get Recipient details successfully", orjson.dumps(data))

    def call(self, organization: int, identifier: str) -> bytes:
        """Get a call (4.5)."""
        require_uuid("callId", identifier)
        found = self._accounts[organization].call(identifier)
        if found is None:
            raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
        view, call = found
        view.catch_up()
        data = view.call(call, self._simulation.at)
        return success("Get Call details successfully", orjson.dumps(data))

    def schedule(self, organization: int, identifier: str, body: object) -> bytes:
        """Start a campaign (4.6); `body` is decoded JSON, and its shape comes first (C9)."""
        request = read_schedule(body)
        assert isinstance(body, dict)  # anything else was refused
        require_uuid("id", identifier)
        view = self._campaign(organization, identifier)
        self.core.carry_out(ScheduleCampaign(**view.place, body=body))
        data = _state(view, CampaignStatus.SCHEDULED)
        if request.remove_duplicates:
            removed = view.campaign.block.people.count - view.total_recipients
            data = b'%b,"removedRecipients":%d}' % (data[:-1], removed)
        return success("Campaign schedule updated successfully", data)

    def _campaign(self, organization: int, identifier: str) -> CampaignView:
        view = self._accounts[organization].campaign(identifier)
        if view is None:
            raise Refused(404, "CAMPAIGN_NOT_FOUND", ["Campaign not found"])
        return view


def require_uuid(parameter: str, identifier: str) -> None:
    """Refuse an identifier in a path that has not the form of a UUID (section 4)."""
    if not is_uuid(identifier):
        raise Refused(400, "INVALID_ID", [f"{parameter} must be a valid UUID"])


def _state(view: CampaignView, status: CampaignStatus) -> bytes:
    return orjson.dumps({"id": view.identifier, "status": status})


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


class FileEndpoints:
    """Serves recordings and transcripts; errors have the error envelope."""

    def __init__(self, core: SandboxCore) -> None:
        self._files = CallFiles(core)

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
