"""Durations and instants as a planner writes them, and their types for the models."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic.config import JsonDict

from dialsim.interface.instants import DAY, HOUR, MINUTE, format_instant, parse_instant
from dialsim.interface.model import broken, wrong

LONGEST_MS = 3650 * DAY
"""No duration is longer than ten years: a longer one is a slip of the pen."""

_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1000, "ms": 1}
_SHORT_FORM = r"(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m(?!s))?(?:[0-9]+s)?(?:[0-9]+ms)?"
_ONE_PART = r"[0-9]+\.[0-9]+(?:d|h|ms?|s)"
_ISO_FORM = (
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
)
DURATION_PATTERN = rf"^(?:0|(?=[0-9]){_SHORT_FORM}|{_ONE_PART}|{_ISO_FORM})$"
"""The accepted forms of a duration, also for JSON Schema."""

DURATION_SCHEMA: JsonDict = {
    "type": ["string", "integer"],
    "pattern": DURATION_PATTERN,
    "patternErrorMessage": "A duration such as 250ms, 45s, 10m, 1h30m or 2d",
    "minimum": 0,
    "maximum": 0,
}
"""A duration in JSON Schema: text with a unit, or the number 0."""

OFFSET_INSTANT_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)$"
)
"""The form of an instant outside `schedule`: date, time and offset, also for JSON Schema."""

BUDDHIST_ERA = 543
"""How many years the Buddhist era is ahead of the common one."""
BUDDHIST_YEARS = range(2513, 2701)
"""What people in Thailand write for the years 1970 to 2157; nobody plans for so late a year."""

_DURATION = re.compile(DURATION_PATTERN[1:-1])
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")
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


def parse_duration(text: str) -> int:
    """Read a duration as milliseconds: `250ms`, `45s`, `1h30m`, `1.5h`, `2d`, `PT10M`, `0`.

    Units run from the largest to the smallest, each at most once; decimals stand only in a
    single part (or the seconds of the ISO 8601 form) and must come to whole milliseconds.

    Raises ValueError, worded to stand behind the name of what was read, if the text has another
    form, lacks its unit, is negative, or is longer than ten years.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(_what_is_wrong(text))
    if text.startswith("P"):
        days, _, clock = text[1:].partition("T")
        total = _total(days.replace("W", "*7d").lower()) + _total(clock.lower())
    else:
        total = _total(text)
    if total > LONGEST_MS:
        raise ValueError(f'must not be longer than 3650d (ten years), as "{_short(text)}" is')
    if total % 1:
        raise ValueError(f'must come to whole milliseconds, which "{_short(text)}" does not')
    return int(total)


def _total(parts: str) -> Decimal:
    """Milliseconds of parts such as `1h30m`; weeks come as `2*7d`."""
    weeks, star, rest = parts.partition("*7")
    if star:
        return 7 * _total(weeks + rest)
    found = _PART.findall(parts)
    return sum((Decimal(number) * _UNITS[unit] for number, unit in found), Decimal(0))


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
    """Write milliseconds in the short form, largest unit first: 5_400_000 is `1h30m`, 0 is `0s`."""
    parts = []
    for unit, size in _UNITS.items():
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_offset_instant(text: str) -> int:
    """Read an ISO 8601 date-time that has an offset or Z as milliseconds since 1970, UTC (T1).

    Raises ValueError, worded to stand behind the name of what was read, also for a Buddhist year.
    """
    fault = era_fault(text)
    if fault is not None:
        raise ValueError(fault)
    if has_offset(text):
        try:
            return parse_instant(text)
        except ValueError as error:
            says = str(error).replace("'", '"')
            raise ValueError(f"must be an instant, but {says}") from None
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
    """Whether a text has the form of a date and a time with an offset or Z."""
    return _OFFSET_INSTANT.fullmatch(text) is not None


def looks_like_date(text: str) -> bool:
    """Whether a text, right or wrong, begins as dates do: three numbers with signs between."""
    return _DATE_BEGINS.match(text) is not None


def era_fault(text: str) -> str | None:
    """What a date is told whose year is a Buddhist one: the year that is meant; None for others.

    For whatever people write. The service takes such a year as it stands (interface, section 4.6),
    and programs that call it over HTTP are to find the same.
    """
    found = _ISO_DATE.match(text)
    year = int(found[1]) if found else 0
    if year not in BUDDHIST_YEARS:
        return None
    meant = instant_meant(text)
    so = f", so write {meant}" if meant is not None else ""
    return f"must not count years in the Buddhist era: {year} is {year - BUDDHIST_ERA}{so}"


def instant_meant(text: str) -> str | None:
    """The spelling of an instant in ISO 8601 that a date means; None if that can't be told.

    `5/1/2569 9:00` means 2026-01-05T09:00:00+07:00: the day stands before the month, unless there
    is no such month; years may be Buddhist, and what has no offset is Thai time.
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


def _duration(value: object) -> int:
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
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema(DURATION_SCHEMA),
]
"""A duration in milliseconds (T1), written with its unit."""


def _positive(duration: int) -> int:
    if duration == 0:
        raise broken("must be greater than 0")
    return duration


PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
"""A duration of 1 ms or more."""

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
"""An instant in milliseconds since 1970, UTC (T1), written with an offset or Z."""
