"""The schedule request: its body, the checks of its shape, and the scheduling conditions.

Requests from files and from HTTP use the same checks. The models declare the shape (step 1 of C9),
each field with its text, in the order of the interface. `check_conditions` is step 4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Annotated, Any, NamedTuple

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema

from dialsim.errors import ValidationFailed
from dialsim.interface.instants import INSTANT_PATTERN, format_instant, parse_instant_or_epoch
from dialsim.interface.model import (
    MOST_EXACT,
    UUID_PATTERN,
    Fault,
    NullAsAbsent,
    WireModel,
    broken,
    is_strict_uuid,
    is_uuid,
    read_model,
    wrong,
    wrong_item,
)

TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
"""Pattern of a time of day, 24-hour with a two-digit hour: `09:00`."""
LEAST_RETRY_INTERVAL = 300_000
DEFAULT_RETRY_INTERVAL = 3_600_000

_TIME = re.compile(TIME_PATTERN[1:-1])
_DAYS = 7


def _whole(value: object) -> int | None:
    """Return a whole number such as 1.0 as an int, else None (also for bool, NaN and infinity)."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _integer(value: object) -> int:
    number = _whole(value)
    if number is None:
        raise wrong("must be an integer number")
    return number


def _day_of_week(value: object) -> int:
    number = _whole(value)
    if number is None or not 1 <= number <= _DAYS:
        # The interface has one text for every invalid day (section 4.6).
        raise wrong(f"must not be greater than {_DAYS}")
    return number


def _instant(value: object, info: ValidationInfo) -> int:
    """Validate an instant: ISO 8601 text, or ms since 1970 from our own code."""
    # Without the context SENT the value comes from our own code. A number in a request is an error.
    if info.context is None and isinstance(value, int):
        return value
    try:
        return parse_instant_or_epoch(value if isinstance(value, str) else "")
    except ValueError:
        raise wrong("must be a valid ISO 8601 date string") from None


def _time_of_day(value: object) -> str:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise wrong("must be HH:MM (24-hour, two-digit hour)")
    return value


def _uuid(value: object) -> str:
    if not is_uuid(value):
        raise wrong("must be a UUID")
    return value


def _array(value: object) -> list[Any] | tuple[Any, ...]:
    # JSON has lists; our own code passes tuples.
    if not isinstance(value, list | tuple):
        raise wrong("must be an array")
    return value


def _texts(value: object) -> list[Any] | tuple[Any, ...]:
    items = _array(value)
    if not items:
        raise broken("should not be empty")
    for index, item in enumerate(items):
        if not _is_text(item):
            raise wrong_item(index, "a string")
    return items


def _is_text(value: object) -> bool:
    """Return True for a text that UTF-8 can encode, unlike half of a surrogate pair."""
    return isinstance(value, str) and _printable(value) == value


def _printable(name: object) -> str:
    return str(name).encode("utf-8", "backslashreplace").decode("utf-8")


class _Body(WireModel):
    """Object of a request body: null counts as absent."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, body: Any, info: ValidationInfo) -> Any:
        if info.context is None or not isinstance(body, Mapping):
            return body
        # An absent required field gets None, so that it fails with its type's text: the interface
        # has no text for a missing field.
        fields = {field.alias: field for field in cls.model_fields.values()}
        required = dict.fromkeys(name for name, field in fields.items() if field.is_required())
        sent = {
            _printable(name): value
            for name, value in body.items()
            if value is not None or name not in fields
        }
        return required | sent


Time = Annotated[str, Field(pattern=TIME_PATTERN), BeforeValidator(_time_of_day)]


class WeekdayRange(NamedTuple):
    """Range of a day of the week (1 to 7), in minutes of that day; `end` is excluded."""

    day: int
    start: int
    end: int


class TimeRange(_Body):
    """Time range of a day, Thai time, in which calls may start: includes start, excludes end
    (T3).
    """

    start: Time = Field(
        description="First minute, HH:MM, 24-hour with a two-digit hour", examples=["09:00"]
    )
    end: Time = Field(
        description="First minute after the range, HH:MM; later than start",
        examples=["19:00"],
    )

    @property
    def start_minute(self) -> int:
        """Minutes from midnight to `start`."""
        return _minute(self.start)

    @property
    def end_minute(self) -> int:
        """Minutes from midnight to `end`."""
        return _minute(self.end)


class DayWindows(_Body):
    """Day of the week with its time ranges, as sent (interface, section 4.6)."""

    day_of_week: Annotated[int, BeforeValidator(_day_of_week)] = Field(
        ge=1, le=_DAYS, description="1 = Monday ... 7 = Sunday", examples=[1]
    )
    time: Annotated[tuple[TimeRange, ...], BeforeValidator(_array)] = Field(
        description="Ranges of that day, Thai time; at least one", json_schema_extra={"minItems": 1}
    )


def _days(days: range, start: str, end: str) -> tuple[DayWindows, ...]:
    hours = (TimeRange(start=start, end=end),)
    return tuple(DayWindows(day_of_week=day, time=hours) for day in days)


DEFAULT_TIME_WINDOWS = (
    *_days(range(1, 6), "09:00", "19:00"),
    *_days(range(6, 8), "10:00", "19:00"),
)
"""Default windows of a request, one entry per day (T3)."""


def _minute(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:])


Instant = Annotated[
    int,
    BeforeValidator(_instant),
    PlainSerializer(format_instant, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": INSTANT_PATTERN}),
]
Uuid = Annotated[str, Field(pattern=UUID_PATTERN), BeforeValidator(_uuid)]
_Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
_OneOrMore = Field(json_schema_extra={"minItems": 1})
_RetryInterval = Annotated[
    int,
    BeforeValidator(_integer),
    # A short interval is a condition, checked in step 4 of C9; the body as such is well-formed.
    Field(ge=0, le=MOST_EXACT),
    WithJsonSchema(
        {
            "type": "integer",
            "anyOf": [{"const": 0}, {"minimum": LEAST_RETRY_INTERVAL, "maximum": MOST_EXACT}],
        }
    ),
    NullAsAbsent(),
]


def _if(field: str, form: JsonSchemaValue, then: JsonSchemaValue) -> JsonSchemaValue:
    """Build a JSON Schema rule: if `field` is present and matches `form`, `then` applies."""
    return {"if": {"required": [field], "properties": {field: form}}, "then": then}


class ScheduleRequest(_Body):
    """Well-formed body of the schedule request, defaults filled in (interface, section 4.6).

    Instants are milliseconds since the Unix epoch, UTC; `retry_interval` is in milliseconds.
    `model_dump(mode="json", by_alias=True)` returns a body that reads back as the same request.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "description": "The body of POST /api/campaign/{id}/schedule; only startDateTime is "
            "required.",
            "allOf": [
                _if(
                    "maxAttempts",
                    {"type": "integer", "minimum": 2},
                    {"properties": {"retryInterval": {"minimum": LEAST_RETRY_INTERVAL}}},
                ),
                _if(
                    "sipCallerId",
                    {"type": "string"},
                    {
                        "required": ["sipAccountId"],
                        "properties": {"sipAccountId": {"type": "string"}},
                    },
                ),
            ],
        }
    )

    start_date_time: Instant = Field(
        description="Earliest time calls may start, ISO 8601; without an offset it is UTC. "
        "One in the past means now.",
        examples=["2026-01-05T02:00:00Z"],
    )
    end_date_time: Instant | None = Field(
        default=None,
        description="Instant, ISO 8601, at which people not called yet become EXPIRED; null: no "
        "end. It must be after startDateTime.",
        examples=["2026-01-12T12:00:00Z"],
    )
    time_windows: Annotated[
        tuple[DayWindows, ...], BeforeValidator(_array), _OneOrMore, NullAsAbsent()
    ] = Field(
        default=DEFAULT_TIME_WINDOWS,
        description="When people may be called, by day of the week, in Thai time; not on days "
        "left out.",
        examples=[[{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "12:00"}]}]],
    )
    max_attempts: Annotated[
        int, Field(ge=1, le=MOST_EXACT), BeforeValidator(_integer), NullAsAbsent()
    ] = Field(
        default=1,
        description="Calls per recipient, the first included: 3 means up to 2 retries.",
        examples=[3],
    )
    retry_interval: _RetryInterval = Field(
        default_factory=lambda fields: (
            DEFAULT_RETRY_INTERVAL if fields.get("max_attempts", 1) > 1 else 0
        ),
        description="Least wait from the end of a call to its retry, in milliseconds: at least "
        "300000 (5 minutes), or 0 where maxAttempts is 1. Left out: 3600000 where maxAttempts is "
        "more than 1, else 0.",
        examples=[3_600_000],
    )
    caller_ids: Annotated[_Texts, _OneOrMore] | None = Field(
        default=None,
        description="The organization's numbers to call from, written as in its settings. If "
        "there are several, each call uses one at random, and a retry not the one just used. "
        "Left out: the agent's number, else the service's shared number.",
        examples=[["021000002", "021000003"]],
    )
    sip_account_id: Uuid | None = Field(
        default=None,
        description="The organization's SIP account that holds sipCallerId (legacy).",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    )
    sip_caller_id: Uuid | None = Field(
        default=None,
        description="Id of the number for all calls (legacy). It needs sipAccountId, and "
        "callerIds takes precedence.",
        examples=["c0a5b3d2-9c4e-4d6f-8a43-51d0f5b7e921"],
    )
    tts_voice_keys: Annotated[_Texts, _OneOrMore] | None = Field(
        default=None,
        description="Voices of the catalog to speak with, one at random per call. Left out: the "
        "agent's voice. If any is named, the second-generation voice engine is used.",
        examples=[["malee"]],
    )
    remove_duplicates: Annotated[bool, Field(strict=True), NullAsAbsent()] = Field(
        default=False,
        description="Drop recipients whom this agent has already reached within the "
        "organization's duplicate-call window.",
        examples=[False],
    )

    @property
    def weekday_ranges(self) -> tuple[WeekdayRange, ...]:
        """Time windows as ranges of minutes."""
        return tuple(
            WeekdayRange(day.day_of_week, span.start_minute, span.end_minute)
            for day in self.time_windows
            for span in day.time
        )


def read_schedule(body: object) -> ScheduleRequest:
    """Validate the body of a schedule request: step 1 of its checks (C9, C10).

    `body` is decoded JSON. Raises ValidationFailed with every failure.
    """
    return read_model(ScheduleRequest, body)


@dataclass(frozen=True, slots=True)
class CallingAccount:
    """Settings of an organization that the scheduling conditions refer to.

    `sip_accounts` maps SIP account ids to the account's numbers by number id. All ids are in lower
    case, and lookups use lower case.
    """

    caller_ids: frozenset[str]
    sip_accounts: Mapping[str, Mapping[str, str]]
    duplicate_call_alert: bool

    def sip_number(self, request: ScheduleRequest) -> str | None:
        """Return the number of a request's SIP caller ID; None if absent or unknown."""
        account, caller = request.sip_account_id, request.sip_caller_id
        if account is None or caller is None:
            return None
        return self.sip_accounts.get(account.lower(), {}).get(caller.lower())


def check_conditions(
    request: ScheduleRequest,
    organization: CallingAccount,
    voice_keys: Collection[str],
    *,
    strict: bool = False,
    now: int = 0,
) -> None:
    """Check the scheduling conditions: step 4 of the request's checks (C9).

    `voice_keys` are the keys of the voice catalog. `strict` refuses a retry interval without
    retries, which section 8 forbids and the texts of section 4.6 leave open, and an end that is not
    after `now` (ms), because an earlier start is treated as now. Raises ValidationFailed with every
    failure, in the order of the interface's table.
    """
    faults = [
        *_time_faults(request, now if strict else 0),
        *_retry_faults(request, strict),
        *_unknown("voice", "ttsVoiceKeys", request.tts_voice_keys, voice_keys),
        *_unknown("caller ID", "callerIds", request.caller_ids, organization.caller_ids),
        *_sip_faults(request, organization),
    ]
    if faults:
        raise ValidationFailed(faults)


def check_duplicate_alert(request: ScheduleRequest, organization: CallingAccount) -> None:
    """Check that duplicates can be removed where a request asks for it: part of step 6 (C9)."""
    if request.remove_duplicates and not organization.duplicate_call_alert:
        text = "Duplicate call alert is not enabled for this organization"
        raise ValidationFailed([Fault(("removeDuplicates",), text)])


_STRICT_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z")


def check_strictly(body: Mapping[str, Any], request: ScheduleRequest) -> None:
    """Refuse a form of body that the interface leaves open; part of step 1 (C9).

    `request` is the body as read. Raises ValidationFailed with every failure.
    """
    faults = [*map(_strict_fault, body, body.values()), *_strict_window_faults(body, request)]
    if request.sip_account_id is not None and request.sip_caller_id is None:
        faults.append("sipCallerId must be given with sipAccountId")
    if any(faults):
        raise ValidationFailed(Fault((), message) for message in faults if message)


def _strict_fault(name: str, value: Any) -> str | None:
    if value is None:
        return None if name == "endDateTime" else f"{name} must not be null"
    if isinstance(value, float):
        return f"{name} must be an integer number"
    if name in ("startDateTime", "endDateTime") and not _STRICT_INSTANT.fullmatch(value):
        return f"{name} must be a valid ISO 8601 date string"
    if name in ("sipAccountId", "sipCallerId") and not is_strict_uuid(value):
        return f"{name} must be a UUID"
    if name in ("callerIds", "ttsVoiceKeys") and len({*value}) < len(value):
        return f"All {name}'s elements must be unique"
    return None


def _strict_window_faults(body: Mapping[str, Any], request: ScheduleRequest) -> Iterator[str]:
    sent = body.get("timeWindows") or ()
    for index, window in enumerate(sent):
        if isinstance(window["dayOfWeek"], float):
            yield f"timeWindows.{index}.dayOfWeek must be an integer number"
    days = [window.day_of_week for window in request.time_windows]
    if len({*days}) < len(days):
        yield "All timeWindows's days must be unique"
    for window in request.time_windows:
        spans = sorted((span.start_minute, span.end_minute) for span in window.time)
        if any(end > start for (_, end), (start, _) in pairwise(spans)):
            yield f"Time ranges must not overlap for day {window.day_of_week}"


def _time_faults(request: ScheduleRequest, now: int) -> Iterator[Fault]:
    end, windows = request.end_date_time, request.time_windows
    if end is not None and max(request.start_date_time, now) >= end:
        yield Fault(("endDateTime",), "Start date must be before end date")
    if not windows:
        yield Fault(("timeWindows",), "At least one time window must be provided")
    for index, day in enumerate(windows):
        # A second loop: faults come in the order of the interface's table, not by day.
        if not day.time:
            yield Fault(
                ("timeWindows", index, "time"),
                f"Time ranges must be provided for day {day.day_of_week}",
            )
    for index, day in enumerate(windows):
        for position, span in enumerate(day.time):
            if span.start_minute >= span.end_minute:
                yield Fault(
                    ("timeWindows", index, "time", position),
                    f"Start time must be before end time for day {day.day_of_week}",
                )


def _retry_faults(request: ScheduleRequest, strict: bool) -> Iterator[Fault]:
    interval, retries = request.retry_interval, request.max_attempts > 1
    is_long = interval >= LEAST_RETRY_INTERVAL and (retries or not strict)
    if is_long or (interval == 0 and not retries):
        return
    when = "when maxAttempts is more than 1" if retries else "(or 0)"
    yield Fault(
        ("retryInterval",),
        f"retryInterval must be at least {LEAST_RETRY_INTERVAL} ms (5 minutes) {when}",
    )


def _unknown(
    noun: str, field: str, asked: tuple[str, ...] | None, known: Collection[str]
) -> Iterator[Fault]:
    for index, key in enumerate(asked or ()):
        if key not in known:
            yield Fault((field, index), f"Unknown {noun}: {key}")


def _sip_faults(request: ScheduleRequest, organization: CallingAccount) -> Iterator[Fault]:
    account, caller = request.sip_account_id, request.sip_caller_id
    if account is None:
        if caller is not None:
            yield Fault(("sipCallerId",), "Cannot set caller ID without specifying a SIP account")
    elif account.lower() not in organization.sip_accounts:
        yield Fault(("sipAccountId",), "Unknown SIP account")
    elif caller is not None and organization.sip_number(request) is None:
        yield Fault(
            ("sipCallerId",),
            "The specified caller ID does not belong to the selected SIP account",
        )
