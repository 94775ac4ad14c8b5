"""The operations of the interface (sections 4.1 to 4.7), and of the links of webhooks to files."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from starlette.requests import Request

from dialsim.interface.agent import SAMPLE_CATEGORIES
from dialsim.interface.schedule import ScheduleRequest, check_strictly
from dialsim.interface.status import CampaignStatus
from dialsim.sandbox import failures as fail
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.commands import ScheduleCampaign, SteerCampaign
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.files import CallFiles, Transcript, record_url
from dialsim.sandbox.http import models
from dialsim.sandbox.http.operation import (
    CampaignId,
    Operations,
    PageQuery,
    Success,
    identifier,
    link,
    operation,
)
from dialsim.sandbox.tables import count_pages

JsonObject = dict[str, Any]

_PAUSED = "Campaign status updated to PAUSED successfully"
_PAUSED_BEFORE = "Campaign is already PAUSED"


class InterfaceOperations(Operations):
    """Operations of the interface (sections 4.1 to 4.7) for one organization, the `caller`."""

    @operation(
        "GET",
        "/api/agent/list",
        answer=list[models.AgentJson],
        messages=("Get Agent list successfully",),
    )
    def list_agents(self, caller: int) -> list[JsonObject]:
        """List the agents.

        All agents of the organization, the newest first.
        """
        return self.core.accounts[caller].agents

    @operation(
        "POST",
        "/api/campaign/{id}/pause",
        fail.NOT_PAUSABLE,
        answer=models.CampaignStanding,
        messages=(_PAUSED, _PAUSED_BEFORE),
    )
    def pause_campaign(self, caller: int, id: CampaignId) -> Success:
        """Pause a campaign.

        No call starts until the campaign is resumed; calls that ring or are in conversation go on.
        Only SCHEDULED and RUNNING campaigns can be paused; pausing a PAUSED campaign changes
        nothing. The request needs no body.
        """
        view = self._campaign(caller, id)
        data = _state(view, CampaignStatus.PAUSED)
        if view.campaign.status is CampaignStatus.PAUSED:
            return Success(_PAUSED_BEFORE, data)
        self.core.carry_out(SteerCampaign(**view.position._asdict(), kind="pause"))
        return Success(_PAUSED, data)

    @operation(
        "GET",
        "/api/campaign/{id}/recipients",
        answer=models.RecipientPage,
        messages=("Get Campaign recipients successfully",),
        links={"newestRecipient": link("getRecipient", "recipientId", "data/recipients/0/id")},
    )
    def list_recipients(self, caller: int, id: CampaignId, query: PageQuery) -> JsonObject:
        """List a campaign's recipients.

        Pages of 100, the newest recipient first.
        """
        view = self._campaign(caller, id)
        view.catch_up()
        total, rows = view.total_recipients, query.page.rows
        who = view.newest_first(rows.start, rows.stop)
        return {
            "totalRecipients": total,
            "totalPages": count_pages(total),
            "page": orjson.Fragment(query.page.digits),  # may be beyond orjson's integers
            "recipients": view.recipients(who, self.core.simulation.at),
        }

    @operation(
        "GET",
        "/api/recipient/{recipientId}",
        answer=models.RecipientJson,
        messages=("Get Recipient details successfully",),
        links={"recipientsOfItsCampaign": link("listRecipients", "id", "data/campaignId")},
    )
    def get_recipient(
        self,
        caller: int,
        recipient_id: Annotated[str, identifier("recipient", "recipientId", fail.NO_RECIPIENT)],
    ) -> JsonObject:
        """Get a recipient.

        One recipient, as in the list of its campaign.
        """
        core = self.core
        found = core.accounts[caller].recipient(recipient_id)
        found = found or core.triggers.recipient(caller, recipient_id)
        if found is None:
            raise fail.NO_RECIPIENT.refused()
        view, recipient = found
        view.catch_up()
        return view.recipient(recipient, self.core.simulation.at)

    @operation(
        "GET",
        "/api/call/{callId}",
        answer=models.CallJson,
        messages=("Get Call details successfully",),
        links={"itsRecipient": link("getRecipient", "recipientId", "data/recipient/id")},
    )
    def get_call(
        self, caller: int, call_id: Annotated[str, identifier("call", "callId", fail.NO_CALL)]
    ) -> JsonObject:
        """Get a call.

        One call with its result. The webhook gives its id as payload.call.id.
        """
        view, call = self._call(caller, call_id)
        view.catch_up()
        return view.call(call, self.core.simulation.at)

    @operation(
        "POST",
        "/api/campaign/{id}/schedule",
        fail.NOT_ALLOWED,
        fail.STARTED,
        answer=models.CampaignStart,
        messages=("Campaign schedule updated successfully",),
        links={"itsRecipients": link("listRecipients", "id", "data/id")},
    )
    def schedule_campaign(
        self, caller: int, body: ScheduleRequest, sent: dict[str, Any], id: CampaignId
    ) -> JsonObject:
        """Start a campaign.

        Gives a DRAFT campaign its schedule and prepares a call for each recipient; it can be done
        once. Besides its schema, a body must meet conditions that no schema can express: the
        campaign is DRAFT, days exist and spans end after they begin, voices, caller ids and SIP
        accounts are known, the organization may call, and duplicates can be removed.
        """
        # The strict checks come first, as they concern the shape alone (C9).
        if self.core.scenario.service.strict:
            check_strictly(sent, body)
        # C9: the body's shape comes before the campaign's id
        view = self._campaign(caller, id)
        self.core.carry_out(ScheduleCampaign(**view.position._asdict(), body=sent))
        removed: dict[str, object] = {}
        if body.remove_duplicates:
            everybody = view.campaign.block.people.count
            removed["removedRecipients"] = everybody - view.total_recipients
        return _state(view, CampaignStatus.SCHEDULED, **removed)

    @operation("GET", "/voice-demo/catalog", answer=models.CatalogJson)
    def list_voices(self) -> JsonObject:
        """List the voices.

        Needs no key and has no envelope. To be asked by servers: pages of other sites are kept
        out by the browser.
        """
        return {
            "voices": [voice.model_dump(by_alias=True) for voice in self.core.scenario.voices],
            "categories": [part.model_dump(by_alias=True) for part in SAMPLE_CATEGORIES],
        }

    def _call(self, caller: int, identifier: str) -> tuple[CampaignView, int]:
        core = self.core
        found = core.accounts[caller].call(identifier) or core.triggers.call(caller, identifier)
        if found is None:
            raise fail.NO_CALL.refused()
        return found

    def _campaign(self, caller: int, identifier: str) -> CampaignView:
        view = self.core.accounts[caller].campaign(identifier)
        if view is None:
            raise fail.NO_CAMPAIGN.refused()
        return view


_CHANGED = tuple(f"Campaign status updated to {status} successfully" for status in CampaignStatus)


class GuessedOperations(InterfaceOperations):
    """Operations that the interface names without an example (end of section 4), as guessed here.

    Paths, envelopes and texts follow the examples of other operations.
    """

    @operation(
        "POST",
        "/api/campaign/{id}/resume",
        fail.NOT_RESUMABLE,
        answer=models.CampaignSteered,
        messages=_CHANGED,
        guessed=True,
    )
    def resume_paused_campaign(self, caller: int, id: CampaignId) -> Success:
        """Resume a paused campaign.

        Only a PAUSED campaign can be resumed (C5). No body is asked for.
        """
        return self._steer(caller, id, "resume")

    @operation(
        "POST",
        "/api/campaign/{id}/cancel",
        fail.NOT_CANCELLABLE,
        answer=models.CampaignSteered,
        messages=_CHANGED,
        guessed=True,
    )
    def cancel_open_campaign(self, caller: int, id: CampaignId) -> Success:
        """Cancel a campaign that is not over.

        No further call starts; calls that ring or are in conversation go on (C6). The request needs
        no body.
        """
        return self._steer(caller, id, "cancel")

    @operation(
        "GET",
        "/api/campaign/{id}/calls",
        answer=models.CampaignCalls,
        messages=("Get Campaign calls successfully",),
        guessed=True,
    )
    def list_campaign_calls(self, caller: int, id: CampaignId, query: PageQuery) -> JsonObject:
        """List a campaign's calls as the call endpoint shows them.

        Pages of 100, the newest call first.
        """
        view = self._campaign(caller, id)
        view.catch_up()
        total, rows, at = len(view.calls), query.page.rows, self.core.simulation.at
        newest = range(total - 1, -1, -1)[rows]
        return {
            "totalCalls": total,
            "totalPages": count_pages(total),
            "page": orjson.Fragment(query.page.digits),  # may be beyond orjson's integers
            "calls": [view.call(call, at) for call in newest],
        }

    @operation(
        "GET",
        "/api/call/{callId}/record-url",
        fail.NO_RECORDING,
        answer=models.RecordLink,
        messages=("Get Call record URL successfully",),
        guessed=True,
    )
    def get_record_url(
        self, caller: int, call_id: Annotated[str, identifier("call", "callId", fail.NO_CALL)]
    ) -> JsonObject:
        """Get a fresh link to a call's recording.

        As the webhook's recordUrl, good for an hour from now.
        """
        url = record_url(*self._call(caller, call_id), self.core.simulation.at)
        if url is None:
            raise fail.NO_RECORDING.refused()
        return {"recordUrl": url}

    def _steer(self, caller: int, identifier: str, kind: Literal["resume", "cancel"]) -> Success:
        view = self._campaign(caller, identifier)
        self.core.carry_out(SteerCampaign(**view.position._asdict(), kind=kind))
        status = view.campaign.status
        return Success(f"Campaign status updated to {status} successfully", _state(view, status))


def _state(view: CampaignView, status: CampaignStatus, **more: object) -> JsonObject:
    return {"id": view.identifier, "status": status, **more}


_LINK: tuple[dict[str, Any], ...] = (
    {
        "name": "expires",
        "in": "query",
        "required": True,
        "description": "The second since 1970, of virtual time, up to which the link is good.",
        "schema": {"type": "string", "pattern": "^[0-9]{10}$"},
        "example": "1767582000",
    },
    {
        "name": "signature",
        "in": "query",
        "required": True,
        "description": "What shows that the sandbox has made the link.",
        "schema": {"type": "string"},
    },
)
_LINK_FAILURES = (fail.NO_FILE, fail.WRONG_SIGNATURE, fail.EXPIRED)
# no check for a UUID: any other text finds no file
_FileId = Annotated[
    str, replace(identifier("call"), read=lambda _core, _name, text: text, failures=())
]


class FileOperations(Operations):
    """Operations for recordings and transcripts, readable by every holder of a link."""

    def __init__(self, core: SandboxCore) -> None:
        super().__init__(core)
        self._files = CallFiles(core)

    @operation(
        "GET",
        "/files/recordings/{id}.wav",
        *_LINK_FAILURES,
        fail.REMOVED,
        media="audio/wav",
        described=_LINK,
    )
    def get_recording(self, id: _FileId, request: Request) -> bytes:
        """Get a recording.

        Where recordUrl of a result leads: WAV, mono, 16 bits, 8 kHz. The form is the sandbox's.
        """
        return self._files.recording(id, *_signed(request))

    @operation(
        "GET",
        "/files/transcripts/{id}.json",
        *_LINK_FAILURES,
        fail.REMOVED._replace(text="The transcript was removed"),
        answer=Transcript,
        described=_LINK,
    )
    def get_transcript(self, id: _FileId, request: Request) -> bytes:
        """Get a transcript.

        Where transcriptFileUrl of a result leads. The form is the sandbox's.
        """
        return self._files.transcript(id, *_signed(request))


def _signed(request: Request) -> tuple[str, str]:
    """Expiry and signature as they stand in a link."""
    query = request.query_params
    return query.get("expires", ""), query.get("signature", "")
