"""Instants: integer milliseconds in memory, ISO 8601 on the wire, Thai time in texts for people.

Thai time is UTC+7 all year (T2).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from math import isfinite

MINUTE = 60_000  # ms, like the constants below
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_TIME = (
    r"(?:[Tt ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]+))?)?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
INSTANT_PATTERN = (
    r"^(?:(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|[12][0-9]))){_TIME}$"
)
"""JSON Schema pattern of an instant: a date, or a date and time with or without an offset.

The pattern accepts 29 February of every year, and offsets that lead out of the year 9999.
"""

_INSTANT = re.compile(f"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_TIME}")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
THAI_OFFSET = 7 * HOUR
"""Offset of Thai time from UTC, in ms."""
LAST_INSTANT = (date.max.toordinal() - _EPOCH_DAY + 1) * DAY - 1
"""9999-12-31T23:59:59.999Z, the last possible instant (T5)."""


def parse_instant(text: str) -> int:
    """Parse an ISO 8601 date or date-time into milliseconds since the Unix epoch, UTC (T1).

    A text without an offset is UTC, and a date alone is its midnight UTC (C9). The separator of
    date and time is `T`, `t` or a space. Decimals of a second beyond the millisecond are cut off.
    The offset is `Z`, `z`, `+hh:mm`, `+hhmm` or `+hh`. Week dates, ordinal dates, the basic form,
    `24:00` and leap seconds are rejected.

    Raises ValueError if the text has another form, names a day that does not exist, or lies outside
    the years 1970 to 9999 (UTC).
    """
    instant = _parse(text)
    if instant < 0:
        raise _outside(text)
    return instant


def parse_instant_or_epoch(text: str) -> int:
    """Parse a text like `parse_instant`, but return 0 for any instant before 1970."""
    # A startDateTime in the past is valid and means now (C10), also one before 1970.
    return max(0, _parse(text))


def _parse(text: str) -> int:
    # Not datetime.fromisoformat: it accepts week dates and the basic form, which are no instants of
    # the interface.
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
    instant = days * DAY + seconds * 1000 + int((decimals or "")[:3].ljust(3, "0"))
    instant -= _offset_ms(offset or "Z")
    if instant > LAST_INSTANT:
        raise _outside(text)
    return instant


def _outside(text: str) -> ValueError:
    return ValueError(f"{text!r} lies outside the years 1970 to 9999")


def format_instant(instant: int) -> str:
    """Format milliseconds since the Unix epoch in the form of the interface:
    `2026-01-05T02:00:00.000Z`.

    Raises ValueError outside the years 1970 to 9999.
    """
    if not 0 <= instant <= LAST_INSTANT:
        raise ValueError(f"{instant} ms since 1970 lies outside the years 1970 to 9999")
    # Not datetime.isoformat: it writes +00:00 where the interface has Z.
    days, rest = divmod(instant, DAY)
    minutes, milliseconds = divmod(rest, MINUTE)
    return (
        f"{date.fromordinal(_EPOCH_DAY + days).isoformat()}T{minutes // 60:02}:{minutes % 60:02}"
        f":{milliseconds // 1000:02}.{milliseconds % 1000:03}Z"
    )


def _offset_ms(offset: str) -> int:
    if offset in "Zz":
        return 0
    minutes = int(offset[1:3]) * 60 + int(offset[-2:] if len(offset) > 3 else 0)
    return (-minutes if offset[0] == "-" else minutes) * MINUTE


# -- datetimes -------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(instant: int) -> datetime:
    """Return an instant (ms) as a datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=instant)


def ms_of(moment: datetime) -> int:
    """Return an aware datetime as an instant in ms; fractions of a millisecond are cut off."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


# -- Thai time -------------------------------------------------------------------------------------

# A fixed offset: no time zone database is needed, and none can change results.
THAI = timezone(timedelta(milliseconds=THAI_OFFSET), "Thai time")  # T2
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = tuple(name[:3] for name in DAY_NAMES)
MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August",
               "September", "October", "November", "December")  # fmt: skip
MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_THAI_EPOCH = _EPOCH.astimezone(THAI)
_LAST = datetime.max.replace(tzinfo=THAI) - _THAI_EPOCH
_FIRST_DATE = date(1970, 1, 1)
_LAST_DAY = (date.max - _FIRST_DATE).days
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1_000, "s"))


def thai(instant: int) -> datetime:
    """Return an instant (ms, UTC) as a datetime in Thai time."""
    # The last seven hours of 9999 (UTC) are in the year 10000 in Thailand, which datetime cannot
    # represent.
    return _THAI_EPOCH + min(timedelta(milliseconds=instant), _LAST)


def in_thai_time(moment: datetime) -> datetime:
    """Convert an aware datetime to Thai time, to the millisecond."""
    return thai(ms_of(moment))


def thai_date(instant: int) -> date:
    """Return the date in Thailand at an instant (ms), at most 9999-12-31."""
    return _FIRST_DATE + timedelta(days=min((instant + THAI_OFFSET) // DAY, _LAST_DAY))


def midnight(day: date) -> int:
    """Return the instant (ms) at which a date begins in Thailand."""
    return day_number(day) * DAY - THAI_OFFSET


def day_start(instant: int) -> int:
    """Return the instant (ms) at which the Thai day of an instant (ms) begins."""
    return midnight(thai_date(instant))


def day_number(day: date) -> int:
    """Return the number of days since 1 January 1970."""
    return (day - _FIRST_DATE).days


def date_text(instant: int) -> str:
    """Format the Thai date of an instant: `Mon 5 Jan 2026`."""
    # strftime would use the names of days and months of the process's locale.
    day = thai(instant)
    return f"{WEEKDAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]} {day.year}"


def time_text(instant: int) -> str:
    """Format the Thai time of an instant: `09:00:01.250`, or `09:00:01` for a whole second."""
    moment = thai(instant)
    return moment.strftime("%H:%M:%S") + (f".{instant % 1000:03}" if instant % 1000 else "")


def minute_text(instant: int) -> str:
    """Format an instant in Thai time, cut off to the minute: `Mon 5 Jan 2026 09:00`."""
    return f"{date_text(instant)} {thai(instant):%H:%M}"


def short_text(instant: int) -> str:
    """Format an instant in Thai time without the year: `Mon 5 Jan 09:00`."""
    return minute_text(instant).replace(f" {thai(instant).year} ", " ")


def at_text(instant: float) -> str:
    """Format an instant like `short_text`; an infinite one is `never`."""
    return short_text(round(instant)) if isfinite(instant) else "never"


def clock_text(minute: int) -> str:
    """Format a minute of the day: `09:00`."""
    return f"{minute // 60:02}:{minute % 60:02}"


def hour_text(hour: int) -> str:
    """Format an hour of the day as a range: `09:00 to 10:00`."""
    return f"{clock_text(hour * 60)} to {clock_text(hour * 60 + 60)}"


def duration_text(ms: float) -> str:
    """Format a duration in its two largest units: `2 d 3 h`, `1 min 30 s`, `1.25 s`, `0 s`."""
    if ms < MINUTE:
        return f"{round(ms / 1000, 3):g} s"
    rounded = round(ms / 1000) * 1000
    largest = next(index for index, (unit, _) in enumerate(_UNITS) if rounded >= unit)
    (unit, name), (smaller, smaller_name) = _UNITS[largest : largest + 2]
    whole, rest = divmod(rounded, unit)
    more = rest // smaller
    return f"{whole} {name} {more} {smaller_name}" if more else f"{whole} {name}"
