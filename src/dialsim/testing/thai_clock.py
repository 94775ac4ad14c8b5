"""Instants as a test writes them: `Mon 09:00` in Thai time, or seconds after the start."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from dialsim.interface.errors import DialsimError
from dialsim.interface.instants import parse_instant
from dialsim.results.thai_time import THAI, date_text
from dialsim.scenario.units import BUDDHIST_ERA, BUDDHIST_YEARS, era_fault

When = str | datetime | float
"""`Mon 09:00` (Thai time), ISO 8601 text, an aware datetime, or seconds after the start."""

MONDAY = datetime(2026, 1, 5, tzinfo=THAI)
"""The Monday of the week that `Mon 09:00` is in: 5 January 2026, 00:00 in Thailand."""

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=THAI) + timedelta(hours=7)
_TEXT = re.compile(
    rf"(?:({'|'.join(DAYS)}) ?)?(?:\b([0-9]{{1,2}}) ({'|'.join(_MONTHS)}) ([0-9]{{4}}) )?"
    r"\b([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?"
)


def at(text: str) -> datetime:
    """An instant of Thai time, as an aware datetime.

    `Mon 09:00`, `Tue 18:59:59.999`: in the week of Monday 5 January 2026, where sketches begin.
    Any other day needs its date: `Mon 12 Jan 2026 09:00`, the way dialsim prints instants.
    Raises DialsimError if the text has another form, or names a day or time that doesn't exist.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        raise DialsimError(
            f'{text!r} is no instant of Thai time such as "Mon 09:00" or "Mon 12 Jan 2026 09:00"'
        )
    weekday, day, month, year, hour, minute, second, decimals = match.groups()
    if year is not None and int(year) in BUDDHIST_YEARS:
        raise DialsimError(f"{text!r}: write {int(year) - BUDDHIST_ERA} for the Buddhist year")
    try:
        if day is None:
            date = MONDAY + timedelta(days=DAYS.index(weekday))
        else:
            date = datetime(int(year), _MONTHS.index(month) + 1, int(day), tzinfo=THAI)
        moment = date.replace(hour=int(hour), minute=int(minute), second=int(second or 0))
    except ValueError as error:
        raise DialsimError(f"{text!r}: {error}") from None
    if weekday is not None and DAYS[moment.weekday()] != weekday:
        raise DialsimError(f"{text!r} is a {DAYS[moment.weekday()]}, not a {weekday}")
    return moment + timedelta(milliseconds=int((decimals or "0").ljust(3, "0")))


def instant_of(when: When, start: int) -> int:
    """An instant in ms since 1970, UTC; a number is seconds after `start` (ms)."""
    fault = era_fault(str(when))
    if fault is not None:
        raise DialsimError(f"{when} {fault}")
    if isinstance(when, str):
        return parse_instant(when) if when[:4].isdigit() else _ms(at(when))
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise DialsimError(f'{when} has no time zone; at("Mon 09:00") makes an instant')
        return _ms(when)
    return start + round(when * 1000)


def stamp(instant: int) -> str:
    """`Mon 5 Jan 2026 09:00:02.000`: an instant in ms, UTC, as `at` reads it."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    return f"{date_text(instant)} {moment:%H:%M:%S}.{instant % 1000:03}"


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
