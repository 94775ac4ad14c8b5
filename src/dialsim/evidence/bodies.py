"""Bodies of the webhook as they were kept: each becomes one row of plain values.

A body is read by the interface (sections 2.6, 2.7 and 6.4), not by the code that makes bodies here:
a log may come from the service itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.interface.instants import parse_instant
from dialsim.interface.payload import NO_CONVERSATION, UNKNOWN
from dialsim.interface.status import CallStatus, CampaignStatus

NO_INSTANT = np.iinfo(np.int64).min
"""Stands for an instant that is not known; the same bits as NaT."""

STATUSES = tuple(CallStatus)
CAMPAIGN_STATUSES = tuple(CampaignStatus)
RESULTS = ("analyzed", "no_conversation", "unavailable", "masked")
"""What kind of result a body has; those of the calls table, and one whose values are removed."""
ANALYZED, NONE_SPOKE, UNAVAILABLE, MASKED = range(4)
NO_RESULT = -1


class Mark(IntEnum):
    """What a body says beside its columns: bits, which add up."""

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
    """A value of `agentParams` that retention would remove is there."""
    TEL_MASKED = 512
    HAS_RESULT_VALUES = 1_024
    """A value of `callResult` that retention would remove is there."""
    HAS_ERROR_MESSAGE = 2_048
    OTHER_CAMPAIGN_NAME = 4_096
    """`campaignName` is not the campaign's name."""
    OTHER_AGENT_NAME = 8_192
    FUNNEL_OUTSIDE = 16_384
    """The funnel's value is neither among its steps nor `Unknown`."""
    OLD_FORM = 32_768
    """The result has `customizableAttr` or says v1."""
    FORM_DISAGREES = 65_536
    """The result's version is not that of its fields."""
    DURATION_BADLY_WRITTEN = 131_072
    """`callDuration` is not a text with three decimals."""
    HAS_FLAGS = 262_144
    """`dataExpired` is there."""
    LONG_TEL = 524_288
    """`tel` has more than four digits, so some of them can be masked."""


class Damaged(ValueError):
    """A body can't be read; the text says where and why."""


class TimeRange(NamedTuple):
    """A range of `scheduleDateTimeWindow`: a day of the week (1 to 7) and minutes of that day."""

    day: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Settings:
    """`payload.campaign`: a campaign's settings as a body shows them (section 2.7).

    What a body does not say is None; instants are milliseconds since 1970.
    """

    id: str
    name: str | None
    status: str | None
    max_attempts: int | None
    max_concurrent_calls: int | None
    retry_interval: int | None
    start_at: int | None
    end_at: int | None
    windows: tuple[TimeRange, ...] | None
    sip_account_id: str | None


class Row(NamedTuple):
    """A body; the fields are the columns of a chunk."""

    line: int
    sent_at: str | None
    post: int
    response: int
    received: bool
    call_id: str
    session: int
    status: int
    started_at: str | None
    ended_at: str | None
    duration_ms: int
    tel: str | None
    person: int
    shown_attempts: int
    shown_status: int
    setting: int
    agent: int
    result: int
    funnel: str | None
    fields: str | None
    digest: int
    marks: int


@dataclass(slots=True)
class Dictionary:
    """Values that repeat in many bodies, each kept once: settings by their JSON, agents."""

    settings: dict[bytes, int] = field(default_factory=dict)
    known_settings: list[Settings] = field(default_factory=list)
    agents: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    unknown_fields: Counter[str] = field(default_factory=Counter)

    def taken_in(self, other: Dictionary) -> dict[str, list[int]]:
        """Take in the values of another dictionary: the codes here of its settings and agents."""
        settings = []
        for key, code in other.settings.items():
            if key not in self.settings:
                self.settings[key] = len(self.known_settings)
                self.known_settings.append(other.known_settings[code])
            settings.append(self.settings[key])
        agents = [self.agents.setdefault(key, len(self.agents)) for key in other.agents]
        return {"setting": settings, "agent": agents}


_STATUS_CODES = {status.value: code for code, status in enumerate(STATUSES)}
_PAYLOAD_KEYS = frozenset(
    ("isReAnalysis", "agentName", "campaignName", "call", "recipient", "agent", "campaign",
     "callResult", "recordUrl", "transcriptFileUrl", "dataExpired")
)  # fmt: skip
_NOTHING: dict[str, Any] = {}


def payload_of(entry: object) -> Mapping[str, Any]:
    """The payload in an entry of a log: a body, or an object with a body in it.

    Raises Damaged if it is none.
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
    if payload is None and "call" in body and "campaign" in body:
        return body
    if not isinstance(payload, dict):
        raise Damaged("has no payload")
    return payload


def row(line: int, entry: Any, known: Dictionary) -> Row:
    """Read one entry of a log. Raises Damaged, with the place and the reason."""
    payload = payload_of(entry)
    if not payload.keys() <= _PAYLOAD_KEYS:
        known.unknown_fields.update(payload.keys() - _PAYLOAD_KEYS)
    call = _object(payload, "call")
    recipient = _object(payload, "recipient")
    call_id = call.get("id")
    if not isinstance(call_id, str) or not call_id:
        raise Damaged(f"payload.call.id: is {_shown(call_id)} and no id")
    status = _status_code(call.get("callStatus"))
    if status < 0:
        raise Damaged(f"payload.call.callStatus: {_shown(call.get('callStatus'))} is no status")
    setting = _setting(payload, known)
    settings = known.known_settings[setting]
    agent = _part(payload, "agent")
    agent_name = agent.get("name", payload.get("agentName"))
    expired = _part(payload, "dataExpired")
    marks = (
        (payload.get("isReAnalysis") is True)
        + 2 * (expired.get("audio") is True)
        + 4 * (expired.get("personalData") is True)
        + 8 * (expired.get("output") is True)
        + 16 * (payload.get("recordUrl") is not None)
        + 32 * (payload.get("transcriptFileUrl") is not None)
    )
    if payload.get("campaignName", settings.name) != settings.name:
        marks |= Mark.OTHER_CAMPAIGN_NAME
    if payload.get("agentName", agent_name) != agent_name:
        marks |= Mark.OTHER_AGENT_NAME
    if call.get("errorMessage"):
        marks |= Mark.HAS_ERROR_MESSAGE
    if "dataExpired" in payload:
        marks |= Mark.HAS_FLAGS
    duration, duration_marks = _duration(call.get("callDuration"))
    tel, person, person_marks = _person(recipient, expired.get("personalData") is True)
    result, funnel, fields, digest, result_marks = _result(payload.get("callResult"))
    wrapped = "body" in entry
    attempts = recipient.get("callAttempt")
    return Row(
        line=line,
        sent_at=_sent_at(entry) if wrapped else None,
        post=_whole(entry.get("attempt"), 0) if wrapped else 0,
        response=_response(entry.get("response")) if wrapped else 0,
        received=entry.get("received") is not False if wrapped else True,
        call_id=call_id,
        session=_hash(call.get("sessionId")),
        status=status,
        started_at=_text(call, "callStartedAt"),
        ended_at=_text(call, "callEndedAt"),
        duration_ms=duration,
        tel=tel,
        person=person,
        shown_attempts=_whole(attempts, -1),
        shown_status=_status_code(recipient.get("latestCallStatus")),
        setting=setting,
        agent=known.agents.setdefault(
            (_name(agent.get("id")), _name(agent_name)), len(known.agents)
        ),
        result=result,
        funnel=funnel,
        fields=fields,
        digest=digest,
        marks=marks | duration_marks | person_marks | result_marks,
    )


def _status_code(value: object) -> int:
    return _STATUS_CODES.get(value, -1) if isinstance(value, str) else -1


def _response(value: object) -> int:
    """What came of a POST: an HTTP status, -1 for none in time, 0 if it is not known."""
    return _whole(value, 0) if value != "timeout" else -1


def _sent_at(entry: Mapping[str, Any]) -> str | None:
    for name in ("at", "sentAt", "receivedAt", "sent_at", "received_at"):
        value = entry.get(name)
        if isinstance(value, str):
            return value
    return None


def _object(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    if not isinstance(value, dict):
        raise Damaged(f"payload.{name}: is {_kind(value)} and no object")
    return value


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object of a body that may be missing."""
    value = payload.get(name)
    return value if isinstance(value, dict) else _NOTHING


def _text(call: Mapping[str, Any], name: str) -> str | None:
    value = call.get(name)
    if value is None or isinstance(value, str):
        return value
    raise Damaged(f"payload.call.{name}: {_shown(value)} is no instant")


def _name(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object, otherwise: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    return otherwise


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false",
             int: "a number", float: "a number", type(None): "missing"}  # fmt: skip
    return kinds.get(type(value), "no JSON")


def _shown(value: object) -> str:
    """A value as a reason quotes it: short, and on one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _hash(value: object) -> int:
    if value is None:
        return 0
    return _digest(value if isinstance(value, bytes) else str(value).encode(errors="replace"))


def _digest(text: bytes) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


def _duration(value: object) -> tuple[int, int]:
    """A duration in ms, -1 for none; and its marks."""
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


def _person(recipient: Mapping[str, Any], is_removed: bool) -> tuple[str | None, int, int]:
    """A number, who it is (0: it can't be told), and marks."""
    tel, name = recipient.get("tel"), recipient.get("customerName")
    params = recipient.get("agentParams")
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
        if value is not None and not key.startswith("metadata__"):
            marks |= Mark.HAS_PARAMS
            break
    if tel is None:
        return None, 0, marks
    if "x" in tel:
        return tel, 0, marks | Mark.TEL_MASKED
    if is_removed and sum(map(str.isdigit, tel)) > 4:
        marks |= Mark.LONG_TEL
    told = orjson.dumps((tel, name, params), option=orjson.OPT_SORT_KEYS)
    return tel, _digest(told), marks


def _setting(payload: Mapping[str, Any], known: Dictionary) -> int:
    campaign = _object(payload, "campaign")
    key = orjson.dumps(campaign)
    code = known.settings.get(key)
    if code is None:
        code = len(known.known_settings)
        known.known_settings.append(_settings(campaign, payload.get("campaignName")))
        known.settings[key] = code
    return code


def _settings(campaign: Mapping[str, Any], campaign_name: object) -> Settings:
    identifier = campaign.get("id")
    if not isinstance(identifier, str) or not identifier:
        raise Damaged(f"payload.campaign.id: is {_shown(identifier)} and no id")
    name = campaign.get("name", campaign_name)

    def number(key: str) -> int | None:
        value = campaign.get(key)
        if value is None:
            return None
        if _whole(value, -1) < 0:
            raise Damaged(f"payload.campaign.{key}: {_shown(value)} is no whole number")
        return int(value)

    def instant(key: str) -> int | None:
        value = campaign.get(key)
        if value is None:
            return None
        try:
            return parse_instant(value)
        except (TypeError, ValueError):
            raise Damaged(f"payload.campaign.{key}: {_shown(value)} is no instant") from None

    return Settings(
        id=identifier,
        name=name if isinstance(name, str) else None,
        status=campaign.get("status") if isinstance(campaign.get("status"), str) else None,
        max_attempts=number("maxAttempts"),
        max_concurrent_calls=number("maxConcurrentCalls"),
        retry_interval=number("retryInterval"),
        start_at=instant("scheduleStartAt"),
        end_at=instant("scheduleEndAt"),
        windows=_windows(campaign.get("scheduleDateTimeWindow")),
        sip_account_id=campaign.get("sipAccountId"),
    )


def _windows(days: object) -> tuple[TimeRange, ...] | None:
    if days is None:
        return None
    try:
        return tuple(
            TimeRange(int(day["dayOfWeek"]), _minute(span["start"]), _minute(span["end"]))
            for day in days  # type: ignore[attr-defined]
            for span in day["time"]
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        raise Damaged(
            f"payload.campaign.scheduleDateTimeWindow: {_shown(days)} has no days with times"
        ) from None


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    if not (0 <= int(hour) <= 24 and 0 <= int(minute) < 60):
        raise ValueError(text)
    return int(hour) * 60 + int(minute)


def _result(result: object) -> tuple[int, str | None, str | None, int, int]:
    """The kind of a result, its funnel's value, its fields as JSON, what it is alike, marks."""
    if not result:
        return NO_RESULT, None, None, 0, 0
    if not isinstance(result, dict):
        raise Damaged(f"payload.callResult: is {_kind(result)} and no object")
    digest = _digest(orjson.dumps(result))
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
    step = funnel.get("value") if isinstance(funnel, dict) else None
    values = (
        {key: item.get("value") for key, item in items.items() if isinstance(item, dict)}
        if isinstance(items, dict)
        else {}
    )
    if version is None:
        has_values = any(value is not None for value in (fixed.get("callSummary"), step))
        has_values |= any(value is not None for value in values.values())
        return MASKED, None, None, digest, marks | (Mark.HAS_RESULT_VALUES if has_values else 0)
    marks |= Mark.HAS_RESULT_VALUES
    if not isinstance(step, str):
        step = None
    elif step != UNKNOWN and step not in (funnel.get("funnelFlow") or ()):  # type: ignore[union-attr]
        marks |= Mark.FUNNEL_OUTSIDE
    if "error" in values and len(values) == 1:  # section 2.6: so a client tells the fallback
        spoke = fixed.get("callSummary") != NO_CONVERSATION
        return UNAVAILABLE if spoke else NONE_SPOKE, step, None, digest, marks
    fields = orjson.dumps(values).decode() if values else None
    return ANALYZED, step, fields, digest, marks


def instants(texts: Iterable[str | None]) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Instants in ms, `NO_INSTANT` for none; and by row the reasons of those that are none."""
    given = list(texts)
    try:
        cut = [None if text is None else _without_z(text) for text in given]
        return np.array(cut, dtype="datetime64[ms]").astype(np.int64), {}
    except ValueError:  # another form among them, or none
        values, wrong = np.full(len(given), NO_INSTANT, dtype=np.int64), {}
        for index, text in enumerate(given):
            if text is None:
                continue
            try:
                values[index] = parse_instant(text)
            except ValueError as error:
                wrong[index] = str(error)
        return values, wrong


def _without_z(text: str) -> str:
    if len(text) != 24 or text[-1] != "Z" or text[10] != "T":
        raise ValueError(text)
    return text[:-1]
