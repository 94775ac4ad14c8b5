"""Instants and durations as people read them: Thai time (UTC+7 all year, T2), round figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import isfinite

from dialsim.scenario.calendar import THAI, WEEKDAYS, clock_text

_EPOCH = datetime(1970, 1, 1, tzinfo=THAI) + timedelta(hours=7)
_LAST = datetime.max.replace(tzinfo=THAI) - _EPOCH
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def thai(instant: int) -> datetime:
    """An instant in ms, UTC, as a datetime of Thai time.

    Python's dates end with 9999, so what is in the year 10000 of Thai time is shown as its end.
    """
    return _EPOCH + min(timedelta(milliseconds=instant), _LAST)


def in_thai_time(moment: datetime) -> datetime:
    """An aware datetime as `thai` has it."""
    return thai((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


def ms_of(moment: datetime) -> int:
    """An aware datetime as an instant in ms."""
    return round(moment.timestamp() * 1000)


def date_text(instant: int) -> str:
    """`Mon 5 Jan 2026`, whatever the locale."""
    day = thai(instant)
    return f"{WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def time_text(instant: int) -> str:
    """`09:00:01.250`; without the milliseconds where there are none."""
    moment = thai(instant)
    return moment.strftime("%H:%M:%S") + (f".{instant % 1000:03}" if instant % 1000 else "")


def minute_text(instant: int) -> str:
    """`Mon 5 Jan 2026 09:00`: to the minute, cut off."""
    return f"{date_text(instant)} {thai(instant):%H:%M}"


def short_text(instant: int) -> str:
    """`Mon 5 Jan 09:00`: as `minute_text`, without the year."""
    return minute_text(instant).replace(f" {thai(instant).year} ", " ")


def at_text(instant: float) -> str:
    """As `short_text`; an infinite instant is never."""
    return short_text(round(instant)) if isfinite(instant) else "never"


def hour_text(hour: int) -> str:
    """An hour of the day: `09:00 to 10:00`."""
    return f"{clock_text(hour * 60)} to {clock_text(hour * 60 + 60)}"


def duration_text(ms: float) -> str:
    """A length of time in its two largest units: `2 d 3 h`, `1 min 30 s`, `1.25 s`, `0 s`."""
    if ms < 60_000:
        return f"{round(ms / 1000, 3):g} s"
    rounded = round(ms / 1000) * 1000
    largest = next(place for place, (unit, _) in enumerate(_UNITS) if rounded >= unit)
    (unit, name), (smaller, smaller_name) = _UNITS[largest : largest + 2]
    whole, rest = divmod(rounded, unit)
    more = rest // smaller
    return f"{whole} {name} {more} {smaller_name}" if more else f"{whole} {name}"
