"""Bodies of the webhook as stored by a receiver: each becomes one row of plain values.

Bodies are parsed by the interface (sections 2.6, 2.7 and 6.4). The parser shares no code with
`dialsim.webhooks.bodies`, because a log may come from the service itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder
from numpy.typing import NDArray
from pyarrow import compute

from dialsim.conformance.table import STATUSES
from dialsim.engine.rules import ENDINGS, Windows
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.instants import DAY, MINUTE, clock_text, format_instant, parse_instant
from dialsim.interface.payload import NO_CONVERSATION, UNKNOWN
from dialsim.interface.schedule import WeekdayRange

NO_INSTANT = np.iinfo(np.int64).min
"""Value for an unknown instant; its bits equal NaT."""

OUTCOMES = {status: code for code, status in enumerate(ENDINGS)} | {CallStatus.ANALYSIS_FAILED: 0}
"""Index into `ENDINGS` of each status that ends an attempt (P5)."""
CAMPAIGN_STATUSES = tuple(CampaignStatus)
RESULTS = ("analyzed", "no_conversation", "unavailable", "masked")
"""Kinds of a body's result: those of the calls table, and one whose values were removed."""
ANALYZED, NONE_SPOKE, UNAVAILABLE, MASKED = range(4)
NO_RESULT = -1


class Mark:
    """Bit flags of a body, in addition to its columns."""

    # Plain numbers, because Python looks up enum members so slowly that it takes a twentieth of the
    # reading time.
    RE_ANALYSIS = 1
    AUDIO_EXPIRED = 2
    PERSONAL_EXPIRED = 4
    OUTPUT_EXPIRED = 8
    HAS_RECORDING = 16
    HAS_TRANSCRIPT = 32
    HAS_NAME = 64
    """`customerName` is a text that is not empty."""
    NAME_IS_EMPTY = 128
    HAS_PARAMS = 256
    """`agentParams` contains a value that retention would remove."""
    TEL_MASKED = 512
    HAS_RESULT_VALUES = 1_024
    """`callResult` contains a value that retention would remove."""
    HAS_ERROR_MESSAGE = 2_048
    OTHER_CAMPAIGN_NAME = 4_096
    """`campaignName` is not the campaign's name."""
    OTHER_AGENT_NAME = 8_192
    FUNNEL_OUTSIDE = 16_384
    """The funnel's value is neither among its steps nor `Unknown`."""
    OLD_FORM = 32_768
    """The result has `customizableAttr` or version v1."""
    FORM_DISAGREES = 65_536
    """The result's version does not match its fields."""
    DURATION_BADLY_WRITTEN = 131_072
    """`callDuration` is not a text with three decimals."""
    HAS_FLAGS = 262_144
    """`dataExpired` is present."""
    UNKNOWN_VERSION = 1_048_576
    """The result's version is neither v1 nor v2."""
    UNKNOWN_LATEST_STATUS = 2_097_152
    """`latestCallStatus` is a text that is no status."""
    LONG_TEL = 524_288
    """`tel` has more than four digits, so some of them can be masked."""


class Damaged(ValueError):
    """Body that cannot be read; the text has the location and the reason."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`payload.campaign`: a campaign's settings in a body (section 2.7).

    Missing values are None; instants are milliseconds since 1970.
    """

    id: str
    name: str | None
    status: str | None
    max_attempts: int | None
    max_concurrent_calls: int | None
    retry_interval: int | None
    start_at: int | None
    end_at: int | None
    windows: tuple[WeekdayRange, ...] | None
    sip_account_id: str | None

    @property
    def calling_hours(self) -> Windows | None:
        """Time windows on the Thai week; None if bodies show none."""
        if not self.windows:
            return None
        return Windows(
            [((one.day - 1) * DAY + one.start * MINUTE, (one.day - 1) * DAY + one.end * MINUTE)
             for one in self.windows]
        )  # fmt: skip

    def request(self) -> dict[str, Any]:
        """Return the body of a schedule request with these settings."""
        days: dict[int, list[dict[str, str]]] = {}
        for day, start, end in sorted(set(self.windows or ())):
            span = {"start": clock_text(start), "end": clock_text(end)}
            days.setdefault(day, []).append(span)
        instants = ("startDateTime", self.start_at), ("endDateTime", self.end_at)
        return {
            **{key: format_instant(at) for key, at in instants if at is not None},
            **({"timeWindows": [{"dayOfWeek": day, "time": spans} for day, spans in days.items()]}
               if days else {}),
            **{key: value for key, value in (("maxAttempts", self.max_attempts),
                                             ("retryInterval", self.retry_interval))
               if value is not None},
        }  # fmt: skip


_REPEATED = pa.dictionary(pa.int32(), pa.large_binary())
COLUMNS: dict[str, Any] = {
    "line": pa.int64(),
    "sent_at": pa.int64(),
    "post": pa.int32(),
    "response": pa.int32(),
    "received": pa.bool_(),
    "call_id": pa.large_string(),
    "session": pa.int64(),
    "status": pa.int8(),
    "started_at": pa.int64(),
    "ended_at": pa.int64(),
    "duration_ms": pa.int64(),
    "tel": pa.large_string(),
    "person": pa.int64(),
    "shown_attempts": pa.int32(),
    "shown_status": pa.int8(),
    "setting": _REPEATED,
    "agent": _REPEATED,
    "shape": _REPEATED,
    "result": pa.int8(),
    "funnel": pa.large_string(),
    "fields": pa.large_string(),
    "digest": pa.int64(),
    "marks": pa.int32(),
}
"""Columns of bodies; `row` returns their values in this order.

Instants are texts in rows and ms in columns; `session`, `person` and `digest` are texts in rows and
hashes (`hashes`) in columns, since a column of texts takes several times the memory. `setting` is
the JSON of `payload.campaign`, `agent` a list of id and name, and `shape` has the type of each
value of `agentParams`: text, number, boolean, null or other. All bodies of a campaign repeat them,
so their columns have each value once.
"""

_JSON_TYPES = {str: "text", int: "number", float: "number", bool: "boolean", type(None): "null"}


# Structs for msgspec: values may have any type, and parts that repeat in all bodies of a campaign
# or are rarely needed stay unparsed.


# gc=False: these objects hold no references in cycles, and the collector would visit millions of
# them.
class _Call(Struct, gc=False, rename="camel"):
    id: Any = None
    session_id: Any = None
    call_status: Any = None
    call_started_at: Any = None
    call_ended_at: Any = None
    call_duration: Any = None
    error_message: Any = None


class _Recipient(Struct, gc=False, rename="camel"):
    tel: Any = None
    customer_name: Any = None
    call_attempt: Any = None
    latest_call_status: Any = None
    agent_params: Any = None


class _Payload(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    call: _Call
    recipient: _Recipient
    campaign: Raw
    is_re_analysis: Any = None
    agent_name: Any = UNSET
    campaign_name: Any = UNSET
    agent: Raw = Raw(b"null")
    call_result: Raw = Raw(b"null")
    record_url: Any = None
    transcript_file_url: Any = None
    data_expired: Any = UNSET


class _Body(Struct, gc=False):
    payload: _Payload
    type: Any = "CALL_RESULT"


class _Entry(Struct, gc=False, rename={"sent": "sentAt", "got": "receivedAt"}):
    """A body, or an object that contains one."""

    body: _Body | UnsetType = UNSET
    payload: _Payload | UnsetType = UNSET
    type: Any = "CALL_RESULT"
    at: Any = None
    sent: Any = None
    got: Any = None
    sent_at: Any = None
    received_at: Any = None
    attempt: Any = None
    response: Any = None
    received: Any = None


_Count = Annotated[int, Meta(ge=0, lt=2**31)] | None


class _Span(Struct):
    start: str
    end: str


class _Day(Struct, rename="camel"):
    # A larger number would come back from orjson as a float, which is no int in a second reading.
    day_of_week: Annotated[int, Meta(ge=-(2**31), lt=2**31)]
    time: list[_Span]


class _Campaign(Struct, rename="camel"):
    id: Annotated[str, Meta(min_length=1)]
    name: Any = None
    status: Any = None
    max_attempts: _Count = None
    max_concurrent_calls: _Count = None
    retry_interval: _Count = None
    schedule_start_at: str | None = None
    schedule_end_at: str | None = None
    schedule_date_time_window: list[_Day] | None = None
    sip_account_id: Any = None


_ENTRY = Decoder(_Entry)
_CAMPAIGN = Decoder(_Campaign)
_AROUND = frozenset(_Entry.__struct_encode_fields__) - {"body", "payload", "type"}
_PAYLOAD_KEYS = frozenset(_Payload.__struct_encode_fields__)
_STATUS_CODES = {status.value: code for code, status in enumerate(STATUSES)}
_NOTHING: dict[str, Any] = {}


def _decoded(text: bytes, unknown: Counter[str]) -> tuple[_Entry, _Payload]:
    """Return an entry of a log and its payload."""
    try:
        entry = _ENTRY.decode(text)
    # Also entries with unknown fields end here; the slow path counts and drops them.
    except (DecodeError, RecursionError):
        entry = _ENTRY.decode(_usual(text, unknown))
    if entry.body is not UNSET:
        payload, event = entry.body.payload, entry.body.type
    elif entry.payload is not UNSET:
        payload, event = entry.payload, entry.type
    else:
        entry = _ENTRY.decode(_usual(text, unknown))
        assert entry.payload is not UNSET
        return entry, entry.payload
    if event != "CALL_RESULT":
        raise Damaged(f"type: is {_shown(event)} and not CALL_RESULT")
    return entry, payload


def _usual(text: bytes, unknown: Counter[str]) -> bytes:
    """Convert an entry of another form, or with unknown fields, to the usual form."""
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Damaged(_why_no_json(text, error)) from None
    payload = _payload_of(entry)
    unknown.update(payload.keys() - _PAYLOAD_KEYS)
    for part in ("call", "recipient", "campaign"):
        _object(payload, part)
    usual = {"payload": {key: payload[key] for key in payload.keys() & _PAYLOAD_KEYS}}
    if "body" not in entry:
        return orjson.dumps(usual)
    return orjson.dumps({"body": usual} | {key: entry[key] for key in entry.keys() & _AROUND})


def _why_no_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16: save the file as UTF-8"
    if b"\0" in text:
        return "has NUL bytes: a piece of the file was never written"
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        return f"is no UTF-8 at byte {wrong.start + 1}"
    return f"is no JSON ({error.msg} at character {error.pos + 1})"


def _payload_of(entry: object) -> Mapping[str, Any]:
    """Return the payload in an entry of a log: a body, or an object that contains one.

    Raises Damaged for anything else.
    """
    if not isinstance(entry, dict):
        raise Damaged(f"is {_kind(entry)} and no object")
    body = entry.get("body", entry)
    if isinstance(body, str):
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Damaged(f"body: is no JSON ({error})") from None
    if not isinstance(body, dict):
        raise Damaged(f"body: is {_kind(body)} and no object")
    event = body.get("type", "CALL_RESULT")
    if event != "CALL_RESULT":
        raise Damaged(f"type: is {_shown(event)} and not CALL_RESULT")
    payload = body.get("payload")
    # Some receivers store the payload without its envelope.
    if payload is None and "call" in body and "campaign" in body:
        return body
    if not isinstance(payload, dict):
        raise Damaged("has no payload")
    return payload


def row(line: int, text: bytes, unknown: Counter[str]) -> tuple[Any, ...]:
    """Parse one entry of a log into the values of `COLUMNS`; count fields that are `unknown`.

    Raises Damaged, with the location and the reason.
    """
    entry, payload = _decoded(text, unknown)
    call, recipient = payload.call, payload.recipient
    call_id = call.id
    if not isinstance(call_id, str) or not call_id:
        raise Damaged(f"payload.call.id: is {_shown(call_id)} and no id")
    status = _status_code(call.call_status)
    if status < 0:
        raise Damaged(f"payload.call.callStatus: {_shown(call.call_status)} is no status")
    setting, settings = campaign_of(bytes(payload.campaign))
    if settings.name is None and isinstance(payload.campaign_name, str):
        named = orjson.loads(setting) | {"name": payload.campaign_name}
        setting, settings = campaign_of(orjson.dumps(named))
    agent, marks = _agent(payload)
    if payload.is_re_analysis is True:
        marks |= Mark.RE_ANALYSIS
    if payload.record_url is not None:
        marks |= Mark.HAS_RECORDING
    if payload.transcript_file_url is not None:
        marks |= Mark.HAS_TRANSCRIPT
    if call.error_message:
        marks |= Mark.HAS_ERROR_MESSAGE
    if payload.campaign_name is not UNSET and (payload.campaign_name != settings.name):
        marks |= Mark.OTHER_CAMPAIGN_NAME
    is_removed = False
    if payload.data_expired is not UNSET:
        marks |= Mark.HAS_FLAGS
        if isinstance(payload.data_expired, dict):
            flag = payload.data_expired.get
            is_removed = flag("personalData") is True
            marks |= (2 * (flag("audio") is True) + 4 * is_removed
                      + 8 * (flag("output") is True))  # fmt: skip
    latest = _status_code(recipient.latest_call_status)
    if latest < 0 and recipient.latest_call_status is not None:
        marks |= Mark.UNKNOWN_LATEST_STATUS
    duration, duration_marks = _duration(call.call_duration)
    tel, person, person_marks = _person(recipient, is_removed)
    result, funnel, fields, digest, result_marks = _result(bytes(payload.call_result))
    # Only an object around the body can carry the time and the response of a POST.
    wrapped = entry.body is not UNSET
    return (
        line,
        _sent_at(entry) if wrapped else None,
        _whole(entry.attempt, 0) if wrapped else 0,
        _response(entry.response) if wrapped else 0,
        entry.received is not False if wrapped else True,
        call_id,
        None if call.session_id is None else str(call.session_id),
        status,
        _text(call.call_started_at, "callStartedAt"),
        _text(call.call_ended_at, "callEndedAt"),
        duration,
        tel,
        person,
        _whole(recipient.call_attempt, -1),
        latest,
        setting,
        agent,
        _shape(recipient.agent_params),
        result,
        funnel,
        fields,
        digest,
        marks | duration_marks | person_marks | result_marks,
    )


def _status_code(value: object) -> int:
    return _STATUS_CODES.get(value, -1) if isinstance(value, str) else -1


def _response(value: object) -> int:
    """Return the outcome of a POST: an HTTP status, -1 for a timeout, 0 if unknown."""
    return _whole(value, 0) if value != "timeout" else -1


def _sent_at(entry: _Entry) -> str | None:
    if isinstance(entry.at, str):
        return entry.at
    others = (entry.sent, entry.got, entry.sent_at, entry.received_at)
    return next((value for value in others if isinstance(value, str)), None)


def _object(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    if not isinstance(value, dict):
        raise Damaged(f"payload.{name}: is {_kind(value)} and no object")
    return value


def _text(value: object, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise Damaged(f"payload.call.{name}: {_shown(value)} is no instant")


def _name(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object, otherwise: int) -> int:
    # `type` and not isinstance, which would accept bool. Columns have 32 bits; a larger count in a
    # log is damage, not information.
    return value if type(value) is int and 0 <= value < 2**31 else otherwise


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false",
             int: "a number", float: "a number", type(None): "missing"}  # fmt: skip
    return kinds.get(type(value), "no JSON")


def _shown(value: object) -> str:
    """Format a value for a reason: short, and on one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _duration(value: object) -> tuple[int, int]:
    """Return a duration in ms, -1 for none, and its marks."""
    if value is None:
        return -1, 0
    try:
        seconds = float(value)  # type: ignore[arg-type]
        duration = round(seconds * 1000)
    except (TypeError, ValueError, OverflowError):
        duration = -1
    if not 0 <= duration < 2**53:
        raise Damaged(f"payload.call.callDuration: {_shown(value)} is no duration")
    written = isinstance(value, str) and value == f"{duration // 1000}.{duration % 1000:03}"
    return duration, 0 if written else Mark.DURATION_BADLY_WRITTEN


def _person(recipient: _Recipient, is_removed: bool) -> tuple[str | None, bytes | None, int]:
    """Return a phone number, the person's identity (None if unknown), and marks."""
    tel, name, params = recipient.tel, recipient.customer_name, recipient.agent_params
    if not isinstance(params, dict):
        params = _NOTHING
    if not isinstance(tel, str):
        tel = None
    marks = 0
    if name:
        marks |= Mark.HAS_NAME
    elif name is not None:
        marks |= Mark.NAME_IS_EMPTY
    for key, value in params.items():
        # Retention keeps metadata, so metadata are no values that should have been removed.
        if value is not None and not key.startswith("metadata__"):
            marks |= Mark.HAS_PARAMS
            break
    if tel is None:
        return None, None, marks
    # Masked numbers look like 08xxxxxx78, which do not identify a person any more.
    if "x" in tel:
        return tel, None, marks | Mark.TEL_MASKED
    # Masking keeps four digits (D1).
    if is_removed and sum(map(str.isdigit, tel)) > 4:
        marks |= Mark.LONG_TEL
    identity = tel, name, params
    try:
        return tel, orjson.dumps(identity, option=orjson.OPT_SORT_KEYS), marks
    except TypeError:  # a number of more than 64 bits
        return tel, json.dumps(identity, sort_keys=True).encode(), marks


def _shape(params: object) -> bytes:
    if not isinstance(params, dict):
        return b"{}"
    return orjson.dumps(
        {key: _JSON_TYPES.get(type(value), "other") for key, value in params.items()}
    )


def _agent(payload: _Payload) -> tuple[bytes, int]:
    """Return the agent's id and name as JSON, and a mark if the body gives the agent two names."""
    identifier, name = _agent_in(bytes(payload.agent))
    other = payload.agent_name
    if name is UNSET:
        name = None if other is UNSET else other
    agent = orjson.dumps([_name(identifier), _name(name)])
    return agent, Mark.OTHER_AGENT_NAME if other is not UNSET and other != name else 0


# Cached by the raw bytes: nearly all bodies repeat agent and campaign verbatim, so that these parts
# need not be parsed.
@lru_cache(4096)
def _agent_in(text: bytes) -> tuple[Any, Any]:
    agent = orjson.loads(text)
    return (agent.get("id"), agent.get("name", UNSET)) if isinstance(agent, dict) else (None, UNSET)


@lru_cache(4096)
def campaign_of(text: bytes) -> tuple[bytes, Settings]:
    """Return the JSON of a campaign without white space, and its settings. Raises Damaged."""
    try:
        found = _CAMPAIGN.decode(text)
        days = found.schedule_date_time_window
        windows = [
            WeekdayRange(day.day_of_week, _minute(span.start), _minute(span.end))
            for day in days or ()
            for span in day.time
        ]
        return orjson.dumps(orjson.loads(text)), Settings(
            id=found.id,
            name=_name(found.name),
            status=_name(found.status),
            max_attempts=found.max_attempts,
            max_concurrent_calls=found.max_concurrent_calls,
            retry_interval=found.retry_interval,
            start_at=_parsed(found.schedule_start_at),
            end_at=_parsed(found.schedule_end_at),
            windows=None if days is None else tuple(windows),
            sip_account_id=found.sip_account_id,
        )
    except (DecodeError, ValueError) as error:
        raise Damaged(f"payload.campaign: {error}") from None


def _parsed(value: str | None) -> int | None:
    return None if value is None else parse_instant(value)


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    if not (0 <= int(hour) <= 24 and 0 <= int(minute) < 60):
        raise ValueError(f"{_shown(text)} is no time of day")
    return int(hour) * 60 + int(minute)


def _result(text: bytes) -> tuple[int, str | None, str | None, bytes | None, int]:
    """Return a result's kind, funnel value, fields as JSON, digest, and marks."""
    result = None if text == b"null" else orjson.loads(text)
    if not result:
        return NO_RESULT, None, None, None, 0
    if not isinstance(result, dict):
        raise Damaged(f"payload.callResult: is {_kind(result)} and no object")
    digest = orjson.dumps(result)  # normalizes white space
    fixed = result.get("fixedAttr")
    if not isinstance(fixed, dict):
        fixed = _NOTHING
    items = result.get("postCallAnalyticsResult") or result.get("customizableAttr")
    version, marks = result.get("version"), 0
    if version == "v1" or "customizableAttr" in result:
        marks |= Mark.OLD_FORM
    if (version == "v1" and "postCallAnalyticsResult" in result) or (
        version == "v2" and "customizableAttr" in result
    ):
        marks |= Mark.FORM_DISAGREES
    funnel = fixed.get("funnel")
    if not isinstance(funnel, dict):
        funnel = _NOTHING
    step, steps = funnel.get("value"), funnel.get("funnelFlow")
    values = (
        {key: item.get("value") for key, item in items.items() if isinstance(item, dict)}
        if isinstance(items, dict)
        else {}
    )
    # Retention removes the version along with the values.
    if version is None:
        has_values = any(value is not None for value in (fixed.get("callSummary"), step))
        has_values |= any(value is not None for value in values.values())
        return MASKED, None, None, digest, marks | (Mark.HAS_RESULT_VALUES if has_values else 0)
    marks |= Mark.HAS_RESULT_VALUES
    if version not in ("v1", "v2"):
        marks |= Mark.UNKNOWN_VERSION
    if not isinstance(step, str):
        step = None
    elif step != UNKNOWN and step not in (steps if isinstance(steps, list) else ()):
        marks |= Mark.FUNNEL_OUTSIDE
    # A result whose only field is `error` is the fallback (section 2.6).
    if "error" in values and len(values) == 1:
        spoke = fixed.get("callSummary") != NO_CONVERSATION
        return UNAVAILABLE if spoke else NONE_SPOKE, step, None, digest, marks
    fields = orjson.dumps(values).decode() if values else None
    return ANALYZED, step, fields, digest, marks


def hashes(texts: Iterable[str | bytes | None]) -> NDArray[np.int64]:
    """Return 64-bit hashes of texts, equal in every process; 0 for None."""
    given = np.fromiter(texts, dtype=object)
    there = given != None  # noqa: E711 – of each element
    found = np.zeros(len(given), dtype=np.int64)
    # Python's hash() is salted per process; pandas' hash is the same in all of them.
    found[there] = pd.util.hash_array(given[there], categorize=False).view(np.int64)
    return found


def instants(texts: Iterable[str | None]) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Parse instants into ms, `NO_INSTANT` for None; also return the reason by invalid row."""
    given = list(texts)
    column = pa.array(given, pa.string())
    # Arrow parses a column at once, but is more lenient than the interface; the pattern admits one
    # form only. For a column of nulls `all` gives None.
    if compute.all(compute.match_substring_regex(column, _USUAL_INSTANT)).as_py() is not False:
        try:
            read = column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
            return read.fill_null(NO_INSTANT).to_numpy(), {}
        except pa.ArrowInvalid:  # one text is an impossible date
            pass
    values, wrong = np.full(len(given), NO_INSTANT, dtype=np.int64), {}
    for index, text in enumerate(given):
        if text is None:
            continue
        try:
            values[index] = parse_instant(text)
        except ValueError as error:
            wrong[index] = str(error)
    return values, wrong


_USUAL_INSTANT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
