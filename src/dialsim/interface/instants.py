"""Instants as the interface writes them: ISO 8601 text on the wire, integer milliseconds inside."""

from __future__ import annotations

import re
from datetime import date

_TIME = (
    r"(?:[Tt ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]+))?)?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
INSTANT_PATTERN = (
    r"^(?:(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|[12][0-9]))){_TIME}$"
)
"""The accepted form for JSON Schema: a date, or a date and a time with or without offset.

It can't tell leap years, nor whether an offset leads out of the year 9999.
"""

_INSTANT = re.compile(f"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_TIME}")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
THAI_OFFSET = 7 * 3_600_000
"""Thai time is so many ms ahead of UTC, all year (T2)."""
LAST_INSTANT = (date.max.toordinal() - _EPOCH_DAY + 1) * _DAY_MS - 1
"""9999-12-31T23:59:59.999Z: nothing happens after it (T5)."""


def parse_instant(text: str) -> int:
    """Read an ISO 8601 date or date-time as milliseconds since the Unix epoch, UTC (T1).

    A text without an offset is UTC, a date alone is its midnight UTC (C9). Between date and time
    stands `T`, `t` or a space; seconds may have any number of decimals, and those beyond the
    millisecond are cut off; the offset is `Z`, `z`, `+hh:mm`, `+hhmm` or `+hh`. Week dates,
    ordinal dates, the basic form, `24:00` and leap seconds are not accepted.

    Raises ValueError if the text has another form, names a day that doesn't exist, or lies
    outside the years 1970 to 9999 (UTC).
    """
    instant = _parse(text)
    if instant < 0:
        raise _outside(text)
    return instant


def parse_instant_or_epoch(text: str) -> int:
    """Read a text as `parse_instant`; what lies before 1970 counts as its beginning.

    For what is past either way (interface, section 4.6: `startDateTime`).
    """
    return max(0, _parse(text))


def _parse(text: str) -> int:
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not an ISO 8601 date or date-time such as 2026-01-05T02:00:00Z"
        )
    year, month, day, hour, minute, second, decimals, offset = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        raise ValueError(f"{text!r} names a day that does not exist") from None
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    instant = days * _DAY_MS + seconds * 1000 + int((decimals or "")[:3].ljust(3, "0"))
    instant -= _offset_ms(offset or "Z")
    if instant > LAST_INSTANT:
        raise _outside(text)
    return instant


def _outside(text: str) -> ValueError:
    return ValueError(f"{text!r} lies outside the years 1970 to 9999")


def format_instant(instant: int) -> str:
    """Write milliseconds since the Unix epoch as the interface does: `2026-01-05T02:00:00.000Z`.

    Raises ValueError outside the years 1970 to 9999.
    """
    if not 0 <= instant <= LAST_INSTANT:
        raise ValueError(f"{instant} ms since 1970 lies outside the years 1970 to 9999")
    days, rest = divmod(instant, _DAY_MS)
    minutes, milliseconds = divmod(rest, 60_000)
    return (
        f"{date.fromordinal(_EPOCH_DAY + days).isoformat()}T{minutes // 60:02}:{minutes % 60:02}"
        f":{milliseconds // 1000:02}.{milliseconds % 1000:03}Z"
    )


def _offset_ms(offset: str) -> int:
    if offset in "Zz":
        return 0
    minutes = int(offset[1:3]) * 60 + int(offset[-2:] if len(offset) > 3 else 0)
    return (-minutes if offset[0] == "-" else minutes) * 60_000
