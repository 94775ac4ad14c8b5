"""Durations and instants in a planner's notation, and their types for the models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic.config import JsonDict

from dialsim.errors import DialsimError
from dialsim.interface.instants import DAY, HOUR, MINUTE, format_instant, parse_instant
from dialsim.interface.model import broken, wrong

LONGEST_MS = 3650 * DAY
"""Upper limit of durations: ten years. A longer one is certainly a typing error."""

_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1000, "ms": 1}
_SIZES = _UNITS | {"w": 7 * DAY}  # weeks are read in ISO 8601 only, and never written
# `m(?!s)`: the minutes must not take the m of `ms`.
_SHORT_FORM = r"(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m(?!s))?(?:[0-9]+s)?(?:[0-9]+ms)?"
_ONE_PART = r"[0-9]+\.[0-9]+(?:d|h|ms?|s)"
# The lookaheads refuse a P or a T that nothing follows.
_ISO_FORM = (
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
)
DURATION_PATTERN = rf"^(?:0|(?=[0-9]){_SHORT_FORM}|{_ONE_PART}|{_ISO_FORM})$"
"""Pattern of a duration, also for JSON Schema."""

DURATION_SCHEMA: JsonDict = {
    "type": ["string", "integer"],
    "pattern": DURATION_PATTERN,
    "patternErrorMessage": "A duration such as 250ms, 45s, 10m, 1h30m or 2d",
    # Of the numbers only 0 is unambiguous without a unit.
    "minimum": 0,
    "maximum": 0,
}
"""JSON Schema of a duration: text with a unit, or the number 0."""

OFFSET_INSTANT_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)$"
)
"""Pattern of an instant outside `schedule`: date, time and offset, also for JSON Schema."""

BUDDHIST_ERA = 543
"""Years that the Buddhist era is ahead of the common era."""
BUDDHIST_YEARS = range(2513, 2701)
"""Buddhist years of 1970 to 2157; no scenario reaches into these years of the common era."""

# Without `^` and `$`: `fullmatch` needs none, and `$` would accept a line break at the end.
_DURATION = re.compile(DURATION_PATTERN[1:-1])
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[wdhms])")
_BARE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_OFFSET_INSTANT = re.compile(OFFSET_INSTANT_PATTERN[1:-1])
_ISO_DATE = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}")
_DATE_BEGINS = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]")
_DATE = re.compile(
    r"(?:(?P<y>[0-9]{4})(?P<a>[-/.])(?P<m>[0-9]{1,2})(?P=a)(?P<d>[0-9]{1,2})"
    r"|(?P<first>[0-9]{1,2})(?P<b>[-/.])(?P<second>[0-9]{1,2})(?P=b)(?P<year>[0-9]{4}))"
    r"(?:(?:[Tt]|,? +)(?P<hour>[0-9]{1,2})[:.](?P<minute>[0-9]{2})"
    r"(?P<seconds>:[0-9]{2}(?:[.,][0-9]+)?)? ?(?P<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


NEXT_CALLING_DAY = "next calling day"
"""Retry interval in words: the smallest one without two calls of a recipient on one day."""


def is_next_day(value: object) -> bool:
    """Return True for the words `next calling day`."""
    return isinstance(value, str) and " ".join(value.lower().split()) == NEXT_CALLING_DAY


def parse_duration(text: str) -> int:
    """Parse a duration into milliseconds: `250ms`, `45s`, `1h30m`, `1.5h`, `2d`, `PT10M`, `0`.

    Units run from the largest to the smallest, each at most once. Decimals are only allowed in a
    single part (or the seconds of the ISO 8601 form) and must yield whole milliseconds. Raises
    ValueError, with a text that follows the name of the value, for another form, a missing unit, a
    negative duration, or more than ten years.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(_what_is_wrong(text))
    # Decimal, because in floating point 1.001s would be 1000.9999999999999 ms.
    parts = _PART.findall(text.removeprefix("P").replace("T", "").lower())
    total = sum((Decimal(number) * _SIZES[unit] for number, unit in parts), Decimal(0))
    if total > LONGEST_MS:
        raise ValueError(f'must not be longer than 3650d (ten years), as "{_short(text)}" is')
    if total % 1:
        raise ValueError(f'must come to whole milliseconds, which "{_short(text)}" does not')
    return int(total)


def _what_is_wrong(text: str) -> str:
    if _BARE.fullmatch(text) and not text.startswith("-"):
        return f"needs a unit: {text}s or {text}ms, for instance"
    if text.startswith("-"):
        return f'must not be negative, as "{_short(text)}" is'
    if re.match(r"P[0-9]*[.0-9]*[YM]", text):
        return f'must not count in years or months, as "{_short(text)}" does: write days'
    return f'must be a duration such as 250ms, 45s, 10m, 1h30m or 2d, not "{_short(text)}"'


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def format_duration(milliseconds: int) -> str:
    """Format milliseconds in the short form, largest unit first: 5_400_000 is `1h30m`, 0 is
    `0s`.
    """
    parts = []
    for unit, size in _UNITS.items():
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_offset_instant(text: str) -> int:
    """Parse an ISO 8601 date-time with an offset or Z into milliseconds since 1970, UTC (T1).

    Raises ValueError with a text that follows the name of the value, also for a Buddhist year.
    """
    fault = era_fault(text)
    if fault is not None:
        raise ValueError(fault)
    if has_offset(text):
        try:
            return parse_instant(text)
        except ValueError as error:
            message = str(error).replace("'", '"')
            raise ValueError(f"must be an instant, but {message}") from None
    try:
        instant = format_instant(parse_instant(text))
    except ValueError:
        raise ValueError(_no_instant(text)) from None
    local = instant.removesuffix(".000Z").removesuffix("Z")
    raise ValueError(f"must say its offset: {local}Z is UTC, {local}+07:00 is Thai time")


def _no_instant(text: str) -> str:
    meant = instant_meant(text)
    if meant is not None:
        return f'must be an instant with an offset or Z, not "{_short(text)}": write {meant}'
    return (
        "must be an instant with an offset or Z, such as 2026-01-05T01:00:00Z or "
        f'2026-01-05T08:00:00+07:00, not "{_short(text)}"'
    )


def has_offset(text: str) -> bool:
    """Return True for the form of a date and time with an offset or Z."""
    return _OFFSET_INSTANT.fullmatch(text) is not None


def looks_like_date(text: str) -> bool:
    """Return True if a text begins like a date: three numbers with separators."""
    return _DATE_BEGINS.match(text) is not None


def era_fault(text: str) -> str | None:
    """Return the error text for a date with a Buddhist year; None for other dates.

    For input from people only: the service accepts such years (interface, section 4.6), so a
    sandbox must accept them over HTTP.
    """
    found = _ISO_DATE.match(text)
    year = int(found[1]) if found else 0
    if year not in BUDDHIST_YEARS:
        return None
    meant = instant_meant(text)
    so = f", so write {meant}" if meant is not None else ""
    return f"must not count years in the Buddhist era: {year} is {year - BUDDHIST_ERA}{so}"


def instant_meant(text: str) -> str | None:
    """Return the instant in ISO 8601 that a date means; None if unclear.

    `5/1/2569 9:00` means 2026-01-05T09:00:00+07:00: the day precedes the month, unless the month
    would not exist. Years may be Buddhist. Without an offset the time is Thai.
    """
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    part = found.groupdict(default="")
    year = int(part["y"] or part["year"])
    month, day = int(part["m"] or part["second"]), int(part["d"] or part["first"])
    if part["year"] and month > 12:
        month, day = day, month
    if year in BUDDHIST_YEARS:
        year -= BUDDHIST_ERA
    clock = f"{int(part['hour'] or 0):02}:{part['minute'] or '00'}{part['seconds'] or ':00'}"
    meant = f"{year:04}-{month:02}-{day:02}T{clock}{part['offset'] or '+07:00'}"
    try:
        parse_instant(meant)
    except ValueError:
        return None
    return meant


def duration_of(value: object) -> int:
    """Return the milliseconds of a duration as written in a file or a request."""
    # In Python a bool is an int. Numbers go on to `parse_duration`, which accepts 0, and asks for a
    # unit where 30 is written.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong("must be a duration such as 45s, 10m or 1h30m")
    try:
        return parse_duration(value if isinstance(value, str) else f"{value}")
    except ValueError as error:
        raise broken(str(error)) from None


def _instant(value: object) -> int:
    if not isinstance(value, str):
        raise wrong('must be an instant in quotes, such as "2026-01-05T01:00:00Z"')
    try:
        return parse_offset_instant(value)
    except ValueError as error:
        raise broken(str(error)) from None


Duration = Annotated[
    int,
    BeforeValidator(duration_of),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema(DURATION_SCHEMA),
]
"""Duration in milliseconds (T1), written with its unit."""


def positive(duration: int) -> int:
    """Validate that a duration is longer than 0."""
    if duration == 0:
        raise broken("must be greater than 0")
    return duration


PositiveDuration = Annotated[Duration, AfterValidator(positive)]
"""Duration of 1 ms or more."""

Instant = Annotated[
    int,
    BeforeValidator(_instant),
    PlainSerializer(format_instant, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": OFFSET_INSTANT_PATTERN,
            "patternErrorMessage": "An instant with an offset or Z such as 2026-01-05T01:00:00Z",
        }
    ),
]
"""Instant in milliseconds since 1970, UTC (T1), written with an offset or Z."""


def value_text(value: object) -> str:
    """Format a Python value as in a scenario file; text is returned unchanged.

    Raises DialsimError for a value that a file cannot have.
    """
    made = file_value(value)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def file_value(value: object) -> object:
    """Convert a Python value into values of a scenario file: durations and instants into texts.

    Raises DialsimError for a value that a file cannot have.
    """
    if isinstance(value, Mapping):
        return {str(key): _value_at(str(key), part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [*map(file_value, value)]
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise DialsimError(f"{value} has no time zone; give an aware datetime or text")
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_duration(round(value / timedelta(milliseconds=1)))
    # numpy's numbers and arrays; importing numpy only to test for them would be slow
    if hasattr(value, "tolist"):
        return file_value(value.tolist())
    if value is None or isinstance(value, str | int | float):
        return value
    raise DialsimError(f"{value!r} can't stand in a file or a request")


def _value_at(key: str, value: object) -> object:
    try:
        return file_value(value)
    except DialsimError as error:
        raise DialsimError(f"{key}: {error}") from None
