"""Days and times as people write them: `2026-04-13`, `09:00-18:00`, `Mon-Fri`, `Fri 18:00`.

All are in Thai time (T2). Instants and windows in words are accepted in commands and in Python;
files have the notation of the interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from difflib import get_close_matches

from dialsim.interface.instants import (
    DAY_NAMES,
    MONTH_NAMES,
    MONTHS,
    THAI,
    WEEKDAYS,
    clock_text,
    ms_of,
    utc,
)
from dialsim.interface.schedule import DayWindows, TimeRange
from dialsim.scenario.units import BUDDHIST_ERA, BUDDHIST_YEARS, era_fault, instant_meant

DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
"""Pattern of a date, also for JSON Schema."""


def read_date(text: str) -> date:
    """Parse a date. Raises ValueError with a text that follows the name of the value."""
    if era_fault(text) is not None:
        year = int(text[:4])
        meant = f"{year - 543}{text[4:]}"
        message = (
            f"must not count years in the Buddhist era: {year} is {year - 543}, so write {meant}"
        )
        raise ValueError(message)
    if not re.fullmatch(DATE_PATTERN[1:-1], text):
        meant = (instant_meant(text) or "")[:10]
        so = f": write {meant}" if meant else ""
        raise ValueError(f'must be a date such as 2026-04-13, not "{text}"{so}')
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f'must be a date, and there is no "{text}"') from None


def days_between(first: date, last: date) -> Iterator[date]:
    """Yield every date from the first to the last, both included."""
    # An empty range if `last` is before `first`.
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


# -- times of the day ------------------------------------------------------------------------------

RANGE_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9] ?- ?([01][0-9]|2[0-3]):[0-5][0-9]$"
_LOOSE_RANGE = re.compile(
    r"([0-9]{1,2})(?:[:.]([0-9]{2}))?\s*(?:-|–|to|until)\s*([0-9]{1,2})(?:[:.]([0-9]{2}))?"
)
Range = tuple[int, int]
"""Minutes of the day, from and to; the end is excluded (T3)."""


def range_text(span: Range) -> str:
    """Format a range: `09:00-18:00`."""
    return f"{clock_text(span[0])}-{clock_text(span[1])}"


# Strict: a file has the interface's form of times, so that what is read is what is sent.
def read_range(text: object) -> Range:
    """Parse a range. Raises ValueError with a text that follows the name of the value."""
    if not isinstance(text, str) or not re.fullmatch(RANGE_PATTERN[1:-1], text.strip()):
        raise ValueError(f'must be a time such as 09:00-18:00, not "{text}"{_range_meant(text)}')
    start, end = (int(part[:2]) * 60 + int(part[3:]) for part in map(str.strip, text.split("-")))
    if start >= end:
        swapped = f": write {range_text((end, start))}" if start > end else ""
        raise ValueError(f'must end after it starts, which "{text}" does not{swapped}')
    return start, end


def _range_meant(text: object) -> str:
    """Return a hint such as `: write 09:00-18:00` for `9-18`, or an empty text."""
    found = _LOOSE_RANGE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return ""
    start, end = (int(found[k]) * 60 + int(found[k + 1] or 0) for k in (1, 3))
    # No time of the interface is 24:00 (T3).
    if end == 24 * 60:
        return f": days end at 23:59, so write {range_text((start, end - 1))}"
    return f": write {range_text((start, end))}" if start < end < 24 * 60 else ""


def union(spans: Iterable[Range]) -> tuple[Range, ...]:
    """Merge ranges into the smallest number of sorted ranges."""
    merged: list[Range] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return tuple(merged)


def without(spans: Iterable[Range], taken: Iterable[Range]) -> tuple[Range, ...]:
    """Return the time in `spans` that is not in `taken`."""
    left = list(union(spans))
    for start, end in taken:
        left = [
            part
            for low, high in left
            for part in ((low, min(high, start)), (max(low, end), high))
            if part[0] < part[1]
        ]
    return tuple(sorted(left))


# -- instants --------------------------------------------------------------------------------------

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?: +(\S.*))?")
_NAMED = re.compile(
    r"(?:(?P<day>[A-Za-z]+)\.?,?(?: +|$))?"
    r"(?:(?P<number>[0-9]{1,2}) +(?P<month>[A-Za-z]+)\.?(?: +(?P<year>[0-9]{4}))?(?: +|$))?"
    r"(?P<time>[0-9].*)?"
)
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_TWELVE = re.compile(r"([0-9]{1,2})(?:[:.]([0-9]{2}))? ?([ap])\.?m\.?", re.IGNORECASE)


def instant_in_words(text: str, first_day: int) -> int | None:
    """Parse an instant such as `Fri 18:00`, `Tue 6 Jan 19:00` or `2026-01-09 18:00`.

    A day of the week, or a date without a year, means the first one from `first_day` on (an instant
    in ms since 1970, UTC). Returns None for another form, such as ISO 8601 with an offset. Raises
    ValueError, with a text that follows the name of the value, for a text of this form that is no
    instant.
    """
    text = text.strip()
    iso = _ISO.fullmatch(text)
    if iso is not None:
        if iso[4] is not None and re.search(r"[Zz]|[+-][0-9]", iso[4]):
            return None  # with an offset it is ISO 8601
        return _of_date(iso, text)
    found = _NAMED.fullmatch(text)
    if found is None or not (found["day"] or found["month"] or _TIME.fullmatch(text)):
        return None
    if found["day"] and not _is_day(found["day"], found["time"] or found["month"]):
        return None
    return _of_names(found, text, utc(first_day))


def _is_day(word: str, behind: str | None) -> bool:
    """Return True if a word is a day, or is followed by something like a time."""
    return _named(word, DAY_NAMES, WEEKDAYS) is not None or (behind is not None and ":" in behind)


def _of_date(iso: re.Match[str], text: str) -> int:
    fault = era_fault(text)
    if fault is not None:
        year = int(iso[1]) - BUDDHIST_ERA
        raise ValueError(f"{fault.partition(', so')[0]}, so write {year}{text[4:]}")
    return _instant(_date(int(iso[1]), int(iso[2]), int(iso[3]), text), iso[4], text)


def _of_names(found: re.Match[str], text: str, first: datetime) -> int:
    start = first.astimezone(THAI).date()
    weekday = None if found["day"] is None else _weekday(found["day"], text)
    if found["month"] is None:
        if weekday is None:
            raise ValueError(
                f'needs a day: "{WEEKDAYS[start.weekday()]} {text}" or "{start} {text}", '
                "for instance"
            )
        return _instant(start + timedelta(days=(weekday - start.weekday()) % 7),
                        found["time"], text)  # fmt: skip
    day = _dated(found, text, start)
    if weekday is not None and day.weekday() != weekday:
        raise ValueError(
            f'must name one day, but "{text}" does not: {day.day} {MONTHS[day.month - 1]} '
            f"{day.year} is a {DAY_NAMES[day.weekday()]}"
        )
    return _instant(day, found["time"], text)


def _dated(found: re.Match[str], text: str, start: date) -> date:
    number, month = int(found["number"]), _named(found["month"], MONTH_NAMES, MONTHS)
    if month is None:
        near = get_close_matches(found["month"].capitalize(), (*MONTHS, *MONTH_NAMES), n=1)
        hint = f"; did you mean {near[0]}?" if near else f": months are {', '.join(MONTHS)}"
        raise ValueError(f'must name a month, which "{found["month"]}" is not{hint}')
    if found["year"] is not None:
        year = int(found["year"])
        if year in BUDDHIST_YEARS:
            meant = text.replace(found["year"], str(year - BUDDHIST_ERA), 1)
            raise ValueError(f"must not count years in the Buddhist era: {year} is "
                             f"{year - BUDDHIST_ERA}, so write {meant}")  # fmt: skip
        return _date(year, month + 1, number, text)
    for year in range(start.year, start.year + 9):  # the next 29 Feb may be eight years ahead
        try:
            day = date(year, month + 1, number)
        except ValueError:
            continue
        if day >= start:
            return day
    raise ValueError(f'must name a day that exists, which "{text}" does not')


def _date(year: int, month: int, day: int, text: str) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        raise ValueError(f'must name a day that exists, which "{text}" does not') from None


def _instant(day: date, time: str | None, text: str) -> int:
    if time is None:
        raise ValueError(f'needs a time: "{text} 18:00", for instance, Thai time')
    found = _TIME.fullmatch(time)
    if found is None or len(found[1]) < 2:
        raise ValueError(f'must have its time as HH:MM, which "{text}" has not{_meant(time)}')
    hour, minute, second = (int(part or 0) for part in found.groups())
    if (hour, minute, second) == (24, 0, 0):
        after = WEEKDAYS[(day.weekday() + 1) % 7]
        raise ValueError(f'must have a time from 00:00 to 23:59: write {after} 00:00 for "{text}"')
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f'must have a time from 00:00 to 23:59, which "{text}" has not')
    instant = ms_of(datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=THAI))
    if instant < 0:
        raise ValueError(f'must not be before 1970, as "{text}" is')
    return instant


def _meant(time: str) -> str:
    """Suggest a spelling for other ways to write a time: `: write 18:00`."""
    twelve, dotted = _TWELVE.fullmatch(time), re.fullmatch(r"([0-9]{1,2})[:.]([0-9]{2})", time)
    if twelve is not None and 1 <= int(twelve[1]) <= 12:
        hour = int(twelve[1]) % 12 + 12 * (twelve[3].lower() == "p")
        return f": write {hour:02}:{twelve[2] or '00'}"
    if dotted is not None:
        return f": write {int(dotted[1]):02}:{dotted[2]}"
    if re.fullmatch(r"[0-9]{1,2}", time):
        return f": write {int(time):02}:00"
    return ""


def _named(word: str, names: Sequence[str], short: Sequence[str]) -> int | None:
    """Return the index of a name, written out or abbreviated to three letters or more."""
    word = word.capitalize()
    for index, pair in enumerate(zip(names, short, strict=True)):
        if word in pair or (len(word) > 3 and pair[0].startswith(word)):
            return index
    return None


def _weekday(word: str, text: str) -> int:
    day = _named(word, DAY_NAMES, WEEKDAYS)
    if day is None:
        near = get_close_matches(word.capitalize(), (*WEEKDAYS, *DAY_NAMES), n=1)
        hint = f"; did you mean {near[0]}?" if near else f": days are {', '.join(WEEKDAYS)}"
        where = "" if word == text else f' in "{text}"'
        raise ValueError(f'must name a day, which "{word}"{where} is not{hint}')
    return day


# -- weeks -----------------------------------------------------------------------------------------

Week = dict[int, tuple[Range, ...]]
"""Open minutes of each day, 1 = Monday: half-open ranges, sorted and disjoint."""

_SEVERAL = {"daily": range(1, 8), "weekday": range(1, 6), "weekend": range(6, 8)}
_FORM = "such as Mon-Fri 09:00-19:00"


def read_windows(text: str, *, spans_needed: bool = True) -> Week:
    """Parse windows such as `Mon-Fri 09:00-12:00 13:00-17:00; Sat 10:00-14:00`.

    Days are as for `read_days`. Without `spans_needed`, days without ranges are whole days. Raises
    ValueError like `instant_in_words`.
    """
    week: Week = {}
    for part in text.split(";"):
        days: list[int] = []
        spans: list[Range] = []
        for word in re.sub(r"\s*-\s*", "-", part).replace(",", " ").split():
            if word[0].isdigit():
                # 9:00 is clear in a command, though the interface wants two digits.
                spans.append(read_range(re.sub(r"\b([0-9]):", r"0\1:", word)))
            elif spans:
                raise ValueError(f'must have a semicolon before the days "{word}"')
            else:
                days += read_days(word)
        if not days:
            raise ValueError(f'must be days and times {_FORM}, not "{part.strip()}"')
        if not spans and spans_needed:
            raise ValueError(f'needs times behind the days "{part.strip()}", {_FORM}')
        for day in days:
            week[day] = union([*week.get(day, ()), *(spans or [(0, 1440)])])
    return week


def read_days(text: str) -> list[int]:
    """Parse days of the week: `Mon`, `Sat,Sun`, `Fri-Mon`, `daily`, `weekdays` or `weekends`.

    Raises ValueError with a text that follows the name of the value.
    """
    days: list[int] = []
    for word in text.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        several = _SEVERAL.get(first.lower().removesuffix("s"))
        if several is not None and not dash:
            days += several
            continue
        start = _weekday(first, word)
        stop = _weekday(last, word) if dash else start
        days += [(start + more) % 7 + 1 for more in range((stop - start) % 7 + 1)]
    return days


def week_of(windows: Iterable[DayWindows]) -> Week:
    """Return the week of the `timeWindows` of a schedule request."""
    week: Week = {}
    for day in windows:
        spans = [(span.start_minute, span.end_minute) for span in day.time]
        week[day.day_of_week] = union([*week.get(day.day_of_week, ()), *spans])
    return week


def time_windows(week: Week) -> tuple[DayWindows, ...]:
    """Return a week as the `timeWindows` of a schedule request."""
    return tuple(
        DayWindows(
            day_of_week=day,
            time=tuple(TimeRange(start=clock_text(a), end=clock_text(b)) for a, b in spans),
        )
        for day, spans in sorted(week.items())
        if spans
    )


def windows_of(week: Week) -> list[dict[str, object]]:
    """Return a week as `timeWindows` in plain values, as in files and requests."""
    return [day.model_dump(mode="json", by_alias=True) for day in time_windows(week)]


def week_lines(week: Week) -> Iterator[str]:
    """Yield a week, equal days together: `Mon-Fri 08:00-20:00`, `Sat-Sun closed`."""
    first = 1
    for day in range(1, 8):
        # A run of equal days is printed at its last one.
        if day < 7 and week.get(day) == week.get(day + 1):
            continue
        days = WEEKDAYS[first - 1] + (f"-{WEEKDAYS[day - 1]}" if first < day else "")
        yield f"{days} {' '.join(map(range_text, week.get(day, ()))) or 'closed'}"
        first = day + 1


def week_text(week: Week) -> str:
    """Format the open days of a week: `Mon-Fri 09:00-19:00; Sat 10:00-14:00`."""
    return "; ".join(line for line in week_lines(week) if not line.endswith("closed"))
