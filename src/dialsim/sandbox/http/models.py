"""Models of the interface's answers and webhooks (sections 2, 4 and 6.4), with descriptions."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, JsonValue, WithJsonSchema, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from dialsim.interface.agent import Voice, VoiceCategory
from dialsim.interface.model import InstantText, UuidText
from dialsim.interface.schedule import DayWindows
from dialsim.interface.status import CallStatus, CampaignStatus

# Answers are plain dicts, which these types describe: to validate each with a model would take
# longer than to answer the request.
closed = with_config(
    extra="forbid",
    alias_generator=to_camel,
    model_title_generator=lambda model: named(model.__name__),
)
"""Makes a model of named fields alone, in camelCase on the wire."""


def named(name: str) -> str:
    """Return a model's name in the description: `Call` for `CallJson`. Names must be unique."""
    return name.removesuffix("Json")


Seconds = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+\.[0-9]{3}$", "examples": ["90.000"]}),
]


@with_config(extra="forbid")
class AgentParameter(TypedDict):
    """One parameter that the recipients of an agent carry."""

    type: Annotated[Literal["text", "number", "boolean"], Field(description="What the value is.")]
    required: Annotated[
        bool, Field(description="Whether every recipient's agentParams must carry the key.")
    ]
    description: NotRequired[Annotated[str, Field(description="What the parameter means.")]]
    default: NotRequired[
        Annotated[
            JsonValue, Field(description="What the agent uses where agentParams lacks the key.")
        ]
    ]
    spell: NotRequired[
        Annotated[JsonValue, Field(description="How the value is spelled out; may be ignored.")]
    ]
    pronunciation_map: NotRequired[
        Annotated[JsonValue, Field(description="How the value is pronounced; may be ignored.")]
    ]


@closed
class AgentJson(TypedDict):
    """The script of a conversation, as it is published."""

    id: UuidText
    name: Annotated[str, Field(description="Its name in the dashboard.", examples=["Reminder"])]
    params_schema: Annotated[
        dict[str, AgentParameter] | None,
        Field(
            description="The parameters by name; null for an agent without any.",
            examples=[{"amount": {"type": "number", "required": True}}],
        ),
    ]


@closed
class CampaignStanding(TypedDict):
    """A campaign's status after a request."""

    id: UuidText
    status: Annotated[Literal["PAUSED"], Field(description="The status after the request.")]


@closed
class CampaignSteered(TypedDict):
    """A campaign's status after a request that the interface doesn't show."""

    id: UuidText
    status: Annotated[CampaignStatus, Field(description="The status after the request.")]


@closed
class CampaignStart(TypedDict):
    """A campaign that has been started."""

    id: UuidText
    status: Annotated[Literal["SCHEDULED"], Field(description="The status after the request.")]
    removed_recipients: NotRequired[
        Annotated[
            int,
            Field(ge=0, description="How many were dropped; with removeDuplicates alone."),
        ]
    ]


@closed
class RecipientJson(TypedDict):
    """A person whom a campaign calls."""

    id: UuidText
    customer_name: Annotated[
        str | None,
        Field(description="null where none was uploaded, empty where masked.", examples=["สมชาย"]),
    ]
    tel: Annotated[
        str,
        Field(
            description="Phone number; where masked, x in place of all but the first and last two "
            "digits.",
            examples=["0812345678", "08xxxxxx78"],
        ),
    ]
    call_attempt: Annotated[
        int, Field(ge=0, description="Attempts that have ended; waiting in vain is none.")
    ]
    latest_call_status: Annotated[
        CallStatus | None,
        Field(description="Status of the newest call; null before the campaign is started."),
    ]
    agent_params: Annotated[
        dict[str, JsonValue],
        Field(
            description="The data uploaded for the agent. Where masked, null under every key but "
            "those that begin with metadata__.",
            examples=[{"amount": 1500}],
        ),
    ]
    campaign_id: UuidText
    created_at: InstantText
    updated_at: InstantText
    personal_data_masked: Annotated[
        bool, Field(description="Whether retention has removed the person's data.")
    ]


@closed
class RecipientPage(TypedDict):
    """Up to 100 recipients, the newest first."""

    total_recipients: Annotated[int, Field(ge=0)]
    total_pages: Annotated[int, Field(ge=0, description="Pages of 100.")]
    page: Annotated[int, Field(ge=1, description="The page that was asked for.")]
    recipients: Annotated[list[RecipientJson], Field(max_length=100)]


@closed
class FunnelJson(TypedDict):
    """Progress of the conversation."""

    funnel_flow: Annotated[
        list[str] | None, Field(description="All steps in order; null where removed.")
    ]
    value: Annotated[
        str | None, Field(description="The furthest step reached, or Unknown; null where removed.")
    ]


@closed
class FixedAttributes(TypedDict):
    """Attributes of every analysis."""

    call_summary: Annotated[
        str | None, Field(description="Short summary, mostly Thai; null where removed.")
    ]
    funnel: NotRequired[
        Annotated[FunnelJson, Field(description="Only where the agent defines a funnel.")]
    ]


@closed
class AnalysisItem(TypedDict):
    """A custom field of an analysis; read its `value`. All is null where removed."""

    type: str | None
    value: str | float | bool | None
    required: bool | None
    description: NotRequired[str | None]
    enum_variant: NotRequired[list[str] | None]


@closed
class ResultV2(TypedDict):
    """The analysis of a current agent's conversation.

    A key `error` under `postCallAnalyticsResult` means that the analysis could not run.
    """

    version: Annotated[Literal["v2"] | None, Field(description="null where removed.")]
    fixed_attr: FixedAttributes
    post_call_analytics_result: dict[str, AnalysisItem]


@closed
class ResultV1(TypedDict):
    """The analysis of an older agent's conversation."""

    version: Annotated[Literal["v1"] | None, Field(description="null where removed.")]
    fixed_attr: FixedAttributes
    customizable_attr: dict[str, AnalysisItem]


@closed
class NoResult(TypedDict):
    """No analysis, or none yet."""


@closed
class CalledPerson(TypedDict):
    """The recipient of a call; masked where `dataExpired.personalData` is true."""

    id: UuidText
    customer_name: str | None
    tel: str


@closed
class DataExpired(TypedDict):
    """Data removed by retention; all are removed once the campaign is deleted."""

    audio: bool
    personal_data: bool
    output: bool


@closed
class CallJson(TypedDict):
    """One attempt to reach a recipient."""

    id: Annotated[UuidText, Field(description="The webhook names it payload.call.id.")]
    session_id: Annotated[str, Field(description="The attempt's session.")]
    call_status: CallStatus
    agent_status: Annotated[
        str,
        Field(
            description="COMPLETED where the agent finished without error. Other values exist; "
            "the sandbox's are NOT_STARTED, IN_PROGRESS and ERROR.",
            examples=["COMPLETED"],
        ),
    ]
    call_started_at: Annotated[
        InstantText | None, Field(description="Begin of the conversation; null if never answered.")
    ]
    call_ended_at: Annotated[InstantText | None, Field(description="End of the attempt.")]
    call_duration: Annotated[
        Seconds | None, Field(description="Seconds of conversation; null if never connected.")
    ]
    result: Annotated[
        ResultV2 | ResultV1 | NoResult, Field(description="The webhook names it callResult.")
    ]
    recipient: CalledPerson
    created_at: InstantText
    updated_at: InstantText
    data_expired: DataExpired


@closed
class CampaignCalls(TypedDict):
    """Up to 100 calls, the newest first."""

    total_calls: Annotated[int, Field(ge=0)]
    total_pages: Annotated[int, Field(ge=0, description="Pages of 100.")]
    page: Annotated[int, Field(ge=1, description="The page that was asked for.")]
    calls: Annotated[list[CallJson], Field(max_length=100)]


@closed
class RecordLink(TypedDict):
    """A fresh link to a recording."""

    record_url: Annotated[str, Field(description="Good for an hour at the most.")]


@closed
class CatalogJson(TypedDict):
    """All voices, and sentences to try them with."""

    voices: Annotated[list[Voice], Field(description="In the service's display order.")]
    categories: Annotated[list[VoiceCategory], Field(description="May be ignored.")]


@closed
class Failure(TypedDict):
    """Error answer."""

    success: Literal[False]
    status_code: Annotated[int, Field(ge=400, le=599, description="The HTTP status.")]
    code: Annotated[str, Field(description="The machine-readable reason.")]
    message: Annotated[str, Field(description="The first of `errors`.")]
    errors: Annotated[
        list[str], Field(min_length=1, description="Every failure of the check that failed.")
    ]


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
    """Result of a call."""

    is_re_analysis: Annotated[
        bool, Field(description="true for another result of a call that was sent before.")
    ]
    agent_name: str
    campaign_name: str
    call: EndedCall
    recipient: RecipientThen
    agent: AgentJson
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
