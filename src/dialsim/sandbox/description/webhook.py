"""The shape of the one webhook, `CALL_RESULT` (sections 2.7 and 6.4)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.interface.windows import DayWindows
from dialsim.interface.wire import InstantText, UuidText
from dialsim.sandbox.description.shapes import (
    Agent,
    DataExpired,
    ResultV1,
    ResultV2,
    Seconds,
    closed,
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
