"""The operations of the interface (sections 4.1 to 4.7), and of the links of webhooks to files.

Files of calls are recordings and transcripts, behind links that expire in virtual time (6.4). What
they say is made up, always the same for the same call: a recording is a tone, a transcript has
sentences that fit any call. Their form is ours, the interface names none.
"""

from __future__ import annotations

import hmac
import io
import re
import wave
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from starlette.requests import Request

from dialsim.interface import CampaignStatus
from dialsim.interface.agent import SAMPLE_CATEGORIES
from dialsim.interface.instants import format_instant
from dialsim.interface.model import UuidText, WireModel, is_uuid
from dialsim.interface.payload import FileKind, links, signature
from dialsim.interface.schedule import ScheduleRequest, check_strictly
from dialsim.sandbox import answers
from dialsim.sandbox import failures as fail
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.commands import ScheduleCampaign, SteerCampaign
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import (
    CampaignId,
    Operations,
    PageQuery,
    Success,
    identifier,
    link,
    operation,
)
from dialsim.sandbox.tables import count_pages
from dialsim.webhooks.analysis import AnalysisOutcome
from dialsim.webhooks.bodies import AUDIO, PERSONAL_DATA

LONGEST_MS = 5_000
"""Longest recording (ms), however long the conversation was."""

RATE = 8_000  # samples per second, as on the telephone
_LOUDNESS = 6_000
_SHORTEST_PERIOD, _PITCHES = 16, 32  # in samples: frequencies from 170 to 500 Hz


def recording(call_id: str, talk_ms: int, silent: bool) -> bytes:
    """Return a call's recording: WAV, mono, 16 bits, 8 kHz.

    The recording is as long as the conversation, up to `LONGEST_MS`: one tone per call, or silence
    if neither side spoke.
    """
    count = min(talk_ms, LONGEST_MS) * RATE // 1_000
    samples = np.zeros(count, dtype="<i2") if silent else _tone(call_id, count)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def _tone(call_id: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """A triangle wave, in whole numbers: the same bytes everywhere."""
    period = _SHORTEST_PERIOD + int(call_id[:8], 16) % _PITCHES
    ramp = np.arange(count, dtype=np.int64) % period * 2
    wave_form = np.abs(ramp - period) * 2 - period
    return (wave_form * _LOUDNESS // period).astype("<i2")


_TURN_MS = 6_000
_MOST_TURNS = 40
_TEXTS = ("สวัสดีค่ะ ขอเวลาสักครู่นะคะ", "ได้ครับ")
"""Sentences that fit any call: the agent's, and the customer's."""


class Turn(WireModel):
    """Turn of the agent or the customer; times are ms from the answer."""

    speaker: Literal["agent", "customer"]
    start_ms: int
    end_ms: int
    text: str


class Transcript(WireModel):
    """Text of a conversation, without turns if neither side spoke."""

    call_id: UuidText
    session_id: str
    language: Literal["th"] = "th"
    duration_ms: int
    turns: list[Turn]


def turns(talk_ms: int) -> list[Turn]:
    """Turns that fill a conversation, the agent's first."""
    count = min(max(1, talk_ms // _TURN_MS), _MOST_TURNS)
    bounds = [talk_ms * number // count for number in range(count + 1)]
    return [
        Turn(
            speaker="customer" if number % 2 else "agent",
            start_ms=bounds[number],
            end_ms=bounds[number + 1],
            text=_TEXTS[number % 2],
        )
        for number in range(count)
    ]


_EXPIRES = re.compile(r"[0-9]{10}")
_REMOVED_BY: dict[FileKind, int] = {"recordings": AUDIO, "transcripts": PERSONAL_DATA}


class CallFiles:
    """Files of all calls of a core, generated on request and always the same."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def recording(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's recording as WAV."""
        view, call = self._find("recordings", identifier, expires, signed)
        entry = view.calls[call]
        return recording(
            _name(view, call), entry.talk_ms, view.analyses.outcome(call) is AnalysisOutcome.SILENT
        )

    def transcript(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's transcript as JSON."""
        view, call = self._find("transcripts", identifier, expires, signed)
        entry, said = view.calls[call], view.analyses.outcome(call) is not AnalysisOutcome.SILENT
        shown = Transcript(
            call_id=_name(view, call),
            session_id=view.session_ids(np.array([call]))[0].decode(),
            duration_ms=entry.talk_ms,
            turns=turns(entry.talk_ms) if said else [],
        )
        return orjson.dumps(shown.model_dump(mode="json", by_alias=True))

    def _find(
        self, kind: FileKind, identifier: str, expires: str, signed: str
    ) -> tuple[CampaignView, int]:
        """Return the call of a file link; raises Refused for an invalid or expired link."""
        view, call = self._call(identifier)
        world, at = view.part.trace.world, self._core.simulation.at
        # Checked before the signature is compared: `int` accepts spaces, signs and underscores.
        known = _EXPIRES.fullmatch(expires) is not None
        if not known or not hmac.compare_digest(
            signature(kind, _name(view, call), int(expires), world.seed).encode(), signed.encode()
        ):
            raise fail.WRONG_SIGNATURE.refused()
        if at >= int(expires) * 1_000:
            text = f"The link expired at {format_instant(int(expires) * 1_000)}"
            raise fail.EXPIRED.refused(text)
        if view.expired(call, at) & _REMOVED_BY[kind]:
            raise fail.REMOVED.refused(f"The {kind[:-1]} was removed")
        return view, call

    def _call(self, identifier: str) -> tuple[CampaignView, int]:
        """Return a call that has files; raises Refused for any other."""
        # An invalid id gets the answer of an unknown id, so that ids cannot be probed.
        if not is_uuid(identifier):
            raise fail.NO_FILE.refused()
        accounts, triggers = self._core.accounts, self._core.triggers
        calls = (
            one.call(identifier) or triggers.call(one.block.position, identifier)
            for one in accounts
        )
        found = next((call for call in calls if call is not None), None)
        if found is None or not has_recording(*found):
            raise fail.NO_FILE.refused()
        return found


def has_recording(view: CampaignView, call: int) -> bool:
    """True if a call has a recording, or had one before its removal."""
    view.catch_up()
    recorded = view.analyses.outcome(call) is not AnalysisOutcome.NOT_RECORDED
    return bool(view.calls[call].has_talked and recorded)


def record_url(view: CampaignView, call: int, at: int) -> str | None:
    """Return a link to a call's recording, created at an instant (ms); None without a recording.

    A webhook sent at that instant would contain the same link.
    """
    if not has_recording(view, call) or view.expired(call, at) & AUDIO:
        return None
    world, who = view.part.trace.world, np.array([call])
    public_url = world.scenario.service.public_url
    [url] = links(public_url, "recordings", view.call_ids(who), np.array([at]), world.seed)
    return str(url)


def _name(view: CampaignView, call: int) -> str:
    """Return the call's id as links contain it."""
    name: str = view.call_ids(np.array([call]))[0].decode()
    return name


JsonObject = dict[str, Any]

_PAUSED = "Campaign status updated to PAUSED successfully"
_PAUSED_BEFORE = "Campaign is already PAUSED"


class InterfaceOperations(Operations):
    """Operations of the interface (sections 4.1 to 4.7) for one organization, the `caller`."""

    @operation(
        "GET",
        "/api/agent/list",
        answer=list[answers.AgentJson],
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
        answer=answers.CampaignStanding,
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
        answer=answers.RecipientPage,
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
        answer=answers.RecipientJson,
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
        answer=answers.CallJson,
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
        answer=answers.CampaignStart,
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

    @operation("GET", "/voice-demo/catalog", answer=answers.CatalogJson)
    def list_voices(self) -> JsonObject:
        """List the voices.

        Needs no key and has no envelope. For servers: browsers keep pages of other sites from
        reading the answer.
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
        answer=answers.CampaignSteered,
        messages=_CHANGED,
        guessed=True,
    )
    def resume_paused_campaign(self, caller: int, id: CampaignId) -> Success:
        """Resume a paused campaign.

        Only a PAUSED campaign can be resumed (C5). The request needs no body.
        """
        return self._steer(caller, id, "resume")

    @operation(
        "POST",
        "/api/campaign/{id}/cancel",
        fail.NOT_CANCELLABLE,
        answer=answers.CampaignSteered,
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
        answer=answers.CampaignCalls,
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
        answer=answers.RecordLink,
        messages=("Get Call record URL successfully",),
        guessed=True,
    )
    def get_record_url(
        self, caller: int, call_id: Annotated[str, identifier("call", "callId", fail.NO_CALL)]
    ) -> JsonObject:
        """Get a fresh link to a call's recording.

        A link like the webhook's recordUrl, valid for an hour from now.
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
        "description": "Virtual time until which the link is valid, in seconds since 1970.",
        "schema": {"type": "string", "pattern": "^[0-9]{10}$"},
        "example": "1767582000",
    },
    {
        "name": "signature",
        "in": "query",
        "required": True,
        "description": "Signature that only the sandbox can make.",
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

        The file behind recordUrl of a result: WAV, mono, 16 bits, 8 kHz. The form is the sandbox's
        own.
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

        The file behind transcriptFileUrl of a result. The form is the sandbox's own.
        """
        return self._files.transcript(id, *_signed(request))


def _signed(request: Request) -> tuple[str, str]:
    """Expiry and signature as they stand in a link."""
    query = request.query_params
    return query.get("expires", ""), query.get("signature", "")
