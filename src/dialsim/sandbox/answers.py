"""Answers over HTTP: envelopes, models with descriptions, and the bodies and queries of requests.

Envelopes are those of section 2.1 of the interface, models those of sections 2, 4 and 6.4.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from email.message import Message
from typing import Annotated, Literal, NotRequired

import orjson
from pydantic import Field, JsonValue, WithJsonSchema, with_config
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from dialsim.errors import Refused
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.agent import Voice, VoiceCategory
from dialsim.interface.model import InstantText, UuidText, WireModel, invalid
from dialsim.interface.schedule import DayWindows

JSON = "application/json"
BINARY = "application/octet-stream"  # media type of files from generated clients
MOST_BYTES = 1_048_576
"""Maximum size (bytes) of the body of a request under /api."""

Answer = tuple[int, str]
"""Status and code of a refusal."""
UNSUPPORTED: Answer = (415, "UNSUPPORTED_MEDIA_TYPE")

_READ = ("utf-8", "ascii")  # names of charsets in codecs; ASCII is a part of UTF-8
_NOTHING = (b"", b"{}")
_MOST_DIGITS = 9


def success(message: str, data: object) -> bytes:
    """The success envelope around plain values."""
    return orjson.dumps({"success": True, "message": message, "data": data})


def bare(shown: WireModel | Sequence[WireModel], status: int = 200) -> Response:
    """Return a success of the control plane: the data without an envelope."""
    content = [_plain(one) for one in shown] if isinstance(shown, Sequence) else _plain(shown)
    return Response(orjson.dumps(content), status, media_type=JSON)


def _plain(shown: WireModel) -> dict[str, object]:
    return shown.model_dump(mode="json", by_alias=True)


def failure(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """An error in the error envelope."""
    body = orjson.dumps(
        {
            "success": False,
            "statusCode": refused.status,
            "code": refused.code,
            "message": refused.message,
            "errors": refused.errors,
        }
    )
    return Response(body, refused.status, headers, JSON)


async def read_bytes(request: Request, most: int = MOST_BYTES) -> bytes:
    """Return the whole body; 413 as soon as it exceeds `most` bytes."""
    declared = request.headers.get("content-length", "")
    # The declared length is refused at once; a length that is not declared is found out by reading.
    if declared.isdecimal() and int(declared[:18]) > most:
        raise _too_large(most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


async def read_json(
    request: Request, most: int = MOST_BYTES, unsupported: Answer = UNSUPPORTED
) -> object:
    """Return the decoded body; a missing body is an empty object.

    A body with another type than JSON is refused with `unsupported`. NaN, infinities and text that
    is not UTF-8 are no JSON.
    """
    body = await read_bytes(request, most)
    if not body:
        return {}
    require_media_type(request, JSON, unsupported=unsupported)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(400, "VALIDATION_FAILED", ["body must be valid JSON"]) from None


def require_media_type(request: Request, *known: str, unsupported: Answer = UNSUPPORTED) -> str:
    """Return the type of the body; any type not in `known` is refused by name.

    The type is never guessed: it is required, text is UTF-8, and packed bodies are refused.
    """
    header, types = request.headers.get("content-type", ""), " or ".join(known)
    said = Message()
    said["content-type"] = header
    kind, charset = said.get_content_type(), said.get_content_charset("utf-8")
    packed = request.headers.get("content-encoding", "identity")
    if not header.strip():
        wrong = f"Content-Type must be {types}, but there is none"
    elif kind not in known:
        wrong = f'Content-Type must be {types}, not "{header}"'
    elif not _is_read(charset):
        wrong = f'charset must be utf-8, not "{charset}"'
    elif packed.lower() != "identity":
        wrong = f'Content-Encoding must be left out, not "{packed}"'
    else:
        return kind
    raise Refused(*unsupported, [wrong])


async def refuse_body(request: Request) -> None:
    """Refuse an unexpected body; an empty object counts as no body."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if not any(nothing.startswith(body) for nothing in _NOTHING):
            break
    if body not in _NOTHING:
        raise Refused(400, "VALIDATION_FAILED", ["body must be left out"])


def _is_read(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name in _READ
    except (LookupError, ValueError):
        return False


def _too_large(most: int) -> Refused:
    text = f"The request body must not be larger than {most} bytes"
    return Refused(413, "PAYLOAD_TOO_LARGE", [text])


def query_of(request: Request) -> dict[str, str]:
    """Return the parameters of a query; a repeated parameter is read as one value with commas."""
    query = request.query_params
    return {name: ",".join(query.getlist(name)) for name in query}


def refuse_query(request: Request) -> None:
    """Refuse unexpected query parameters, with the text for unknown properties."""
    if request.query_params:
        raise invalid(*(f"property {name} should not exist" for name in request.query_params))


def is_number(text: str) -> bool:
    """True if a text from a URL is a whole number with few digits."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


# Answers are plain dicts, which these types describe: to validate each with a model would take
# longer than to answer the request.
closed = with_config(
    extra="forbid",
    alias_generator=to_camel,
    model_title_generator=lambda model: named(model.__name__),
)
"""Decorator of models: no fields but the declared ones, names in camelCase on the wire."""


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
    name: Annotated[
        str, Field(description="The agent's name in the dashboard.", examples=["Reminder"])
    ]
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
            Field(ge=0, description="Number of duplicates dropped; only with removeDuplicates."),
        ]
    ]


@closed
class RecipientJson(TypedDict):
    """A person whom a campaign calls."""

    id: UuidText
    customer_name: Annotated[
        str | None,
        Field(description="null if no name was uploaded, empty if masked.", examples=["สมชาย"]),
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
        int, Field(ge=0, description="Attempts that have ended; a queue timeout is no attempt.")
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

    id: Annotated[
        UuidText, Field(description="Id of the call, as in the call endpoint: upsert on it.")
    ]
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
    max_concurrent_calls: Annotated[int, Field(ge=0, description="Limit of the organization.")]
    retry_interval: Annotated[int, Field(ge=0, description="Milliseconds.")]
    schedule_start_at: InstantText
    schedule_end_at: InstantText | None
    schedule_date_time_window: list[DayWindows]
    sip_account_id: UuidText | None


@closed
class Payload(TypedDict):
    """Result of a call."""

    is_re_analysis: Annotated[
        bool, Field(description="true if the call already had a result before this one.")
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
