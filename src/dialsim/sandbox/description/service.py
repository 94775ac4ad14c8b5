"""The operations behind the links of webhooks: recordings and transcripts.

The shape of the one webhook, `CALL_RESULT` (sections 2.7 and 6.4).

The interface's operations (sections 4.1 to 4.7): what they take, answer, and refuse.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from dialsim.interface.model import InstantText, UuidText
from dialsim.interface.schedule import DayWindows, ScheduleRequest
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.sandbox.description import operation as fail
from dialsim.sandbox.description import shapes
from dialsim.sandbox.description.operation import PAGE, Operation, identifier, link
from dialsim.sandbox.description.shapes import (
    Agent,
    DataExpired,
    ResultV1,
    ResultV2,
    Seconds,
    closed,
)
from dialsim.sandbox.files import Transcript

_LINK: tuple[dict[str, Any], ...] = (
    identifier("id", "call"),
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
_FAILURES = (fail.NO_FILE, fail.WRONG_SIGNATURE, fail.EXPIRED, fail.OUR_FAULT)

FILE_OPERATIONS = (
    Operation(
        "get",
        "/files/recordings/{id}.wav",
        "getRecording",
        "Get a recording",
        "Where recordUrl of a result leads: WAV, mono, 16 bits, 8 kHz. The form is the sandbox's.",
        media="audio/wav",
        parameters=_LINK,
        failures=(*_FAILURES, fail.REMOVED),
    ),
    Operation(
        "get",
        "/files/transcripts/{id}.json",
        "getTranscript",
        "Get a transcript",
        "Where transcriptFileUrl of a result leads. The form is the sandbox's.",
        answer=Transcript,
        parameters=_LINK,
        failures=(*_FAILURES, fail.REMOVED._replace(text="The transcript was removed")),
    ),
)


@closed
class EndedCall(TypedDict):
    """The attempt whose result is sent."""

    id: Annotated[UuidText, Field(description="The same as in the call endpoint: upsert on it.")]
    session_id: str
    call_status: CallStatus
    call_started_at: Annotated[InstantText | None, Field(description="null if never answered.")]
    call_ended_at: Annotated[
        InstantText | None, Field(description="Set for unanswered calls, too.")
    ]
    call_duration: Annotated[Seconds | None, Field(description="null if never connected.")]
    error_message: Annotated[str | None, Field(description="Why the call failed, where known.")]


@closed
class RecipientThen(TypedDict):
    """The recipient as it stands when the result is sent."""

    tel: str
    customer_name: str | None
    call_attempt: Annotated[
        int, Field(ge=0, description="Attempts that have ended by now; not this call's number.")
    ]
    latest_call_status: CallStatus | None
    agent_params: dict[str, JsonValue]


@closed
class CampaignSettings(TypedDict):
    """The campaign's settings when the result is sent."""

    id: UuidText
    name: str
    status: CampaignStatus
    max_attempts: Annotated[int, Field(ge=1)]
    max_concurrent_calls: Annotated[int, Field(ge=0, description="The organization's.")]
    retry_interval: Annotated[int, Field(ge=0, description="Milliseconds.")]
    schedule_start_at: InstantText
    schedule_end_at: InstantText | None
    schedule_date_time_window: list[DayWindows]
    sip_account_id: UuidText | None


@closed
class Payload(TypedDict):
    """What there is to know of a call."""

    is_re_analysis: Annotated[
        bool, Field(description="true for another result of a call that was sent before.")
    ]
    agent_name: str
    campaign_name: str
    call: EndedCall
    recipient: RecipientThen
    agent: Agent
    campaign: CampaignSettings
    call_result: Annotated[
        ResultV2 | ResultV1 | None, Field(description="The call endpoint names it result.")
    ]
    record_url: Annotated[
        str | None, Field(description="Link to the recording, good for an hour at the most.")
    ]
    transcript_file_url: Annotated[
        str | None, Field(description="Link to the transcript, good for an hour at the most.")
    ]
    data_expired: DataExpired


@closed
class CallResult(TypedDict):
    """The body of the webhook."""

    type: Literal["CALL_RESULT"]
    payload: Payload


_CAMPAIGN = identifier("id", "campaign")
_KEYED = (fail.NO_KEY, fail.WRONG_KEY, *fail.ASKED_FOR)

OPERATIONS = (
    Operation(
        "get",
        "/api/agent/list",
        "listAgents",
        "List the agents",
        "All agents of the organization, the newest first.",
        answer=list[shapes.Agent],
        messages=("Get Agent list successfully",),
        failures=_KEYED,
    ),
    Operation(
        "post",
        "/api/campaign/{id}/pause",
        "pauseCampaign",
        "Pause a campaign",
        "Nobody is dialled any more until the campaign is resumed; calls that ring or are in "
        "conversation go on. Only SCHEDULED and RUNNING campaigns can be paused; pausing a PAUSED "
        "one changes nothing. No body is asked for.",
        answer=shapes.CampaignStanding,
        messages=(
            "Campaign status updated to PAUSED successfully",
            "Campaign is already PAUSED",
        ),
        parameters=(_CAMPAIGN,),
        failures=(
            *_KEYED,
            fail.INVALID_ID,
            fail.NO_CAMPAIGN,
            fail.NOT_PAUSABLE,
            fail.TOO_LARGE,
            fail.NOT_KEPT,
        ),
    ),
    Operation(
        "get",
        "/api/campaign/{id}/recipients",
        "listRecipients",
        "List a campaign's recipients",
        "Pages of 100, the newest recipient first.",
        answer=shapes.RecipientPage,
        messages=("Get Campaign recipients successfully",),
        parameters=(_CAMPAIGN, PAGE),
        failures=(*_KEYED, fail.INVALID_ID, fail.INVALID_PAGE, fail.NO_CAMPAIGN),
        links={"newestRecipient": link("getRecipient", "recipientId", "data/recipients/0/id")},
    ),
    Operation(
        "get",
        "/api/recipient/{recipientId}",
        "getRecipient",
        "Get a recipient",
        "One recipient, as in the list of its campaign.",
        answer=shapes.Recipient,
        messages=("Get Recipient details successfully",),
        parameters=(identifier("recipientId", "recipient"),),
        failures=(
            *_KEYED,
            fail.INVALID_ID._replace(text="recipientId must be a valid UUID"),
            fail.NO_RECIPIENT,
        ),
        links={"recipientsOfItsCampaign": link("listRecipients", "id", "data/campaignId")},
    ),
    Operation(
        "get",
        "/api/call/{callId}",
        "getCall",
        "Get a call",
        "One call with its result. The webhook gives its id as payload.call.id.",
        answer=shapes.Call,
        messages=("Get Call details successfully",),
        parameters=(identifier("callId", "call"),),
        failures=(
            *_KEYED,
            fail.INVALID_ID._replace(text="callId must be a valid UUID"),
            fail.NO_CALL,
        ),
        links={"itsRecipient": link("getRecipient", "recipientId", "data/recipient/id")},
    ),
    Operation(
        "post",
        "/api/campaign/{id}/schedule",
        "scheduleCampaign",
        "Start a campaign",
        "Gives a DRAFT campaign its schedule and prepares a call for each recipient; it can be "
        "done once. Besides its shape a body is checked against what no schema can tell: whether "
        "the campaign is DRAFT, days exist and spans end after they begin, voices, caller ids and "
        "SIP accounts are known, the organization may call, and duplicates can be removed.",
        answer=shapes.CampaignStart,
        messages=("Campaign schedule updated successfully",),
        parameters=(_CAMPAIGN,),
        body=ScheduleRequest,
        failures=(
            *_KEYED,
            fail.INVALID_ID,
            fail.INVALID_BODY,
            fail.NOT_ALLOWED,
            fail.NO_CAMPAIGN,
            fail.STARTED,
            fail.TOO_LARGE,
            fail.NOT_KEPT,
        ),
        links={"itsRecipients": link("listRecipients", "id", "data/id")},
    ),
    Operation(
        "get",
        "/voice-demo/catalog",
        "listVoices",
        "List the voices",
        "Needs no key and has no envelope. To be asked by servers: pages of other sites are kept "
        "out by the browser.",
        answer=shapes.Catalog,
        failures=(fail.OUR_FAULT,),
    ),
)
