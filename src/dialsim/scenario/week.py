"""Days, instants and calling windows in a planner's notation: `Fri 18:00`, `Mon-Fri 09:00-19:00`.

All are in Thai time (T2). They are accepted in commands and in Python, not in files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from dialsim.scenario.calendar import Range, range_text, union
from dialsim.scenario.units import BUDDHIST_ERA, BUDDHIST_YEARS, era_fault

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
    if iso[4] is None:
        raise ValueError(f'needs a time: "{text} 18:00", for instance, Thai time')
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
        if found["time"] is None:
            raise ValueError(f'needs a time: "{text} 18:00", for instance, Thai time')
        return _instant(start + timedelta(days=(weekday - start.weekday()) % 7),
                        found["time"], text)  # fmt: skip
    day = _dated(found, text, start)
    if weekday is not None and day.weekday() != weekday:
        raise ValueError(
            f'must name one day, but "{text}" does not: {day.day} {MONTHS[day.month - 1]} '
            f"{day.year} is a {DAY_NAMES[day.weekday()]}"
        )
    if found["time"] is None:
        raise ValueError(f'needs a time: "{text} 18:00", for instance, Thai time')
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


def _instant(day: date, time: str, text: str) -> int:
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


Week = dict[int, tuple[Range, ...]]
"""Open minutes of each day, 1 = Monday: half-open spans, sorted and disjoint."""

_SEVERAL = {"daily": range(7), "weekdays": range(5), "weekends": range(5, 7)}
_SPAN = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")
_FORM = "such as Mon-Fri 09:00-19:00"


def read_windows(text: str, *, spans_needed: bool = True) -> Week:
    """Parse windows such as `Mon-Fri 09:00-12:00 13:00-17:00; Sat 10:00-14:00`.

    Days are names, ranges of names, `daily`, `weekdays` and `weekends`. Without `spans_needed`,
    days without spans are whole days. Raises ValueError like `instant_in_words`.
    """
    week: Week = {}
    for part in text.split(";"):
        days: list[int] = []
        spans: list[Range] = []
        for word in re.sub(r"\s*-\s*", "-", part).replace(",", " ").split():
            if word[0].isdigit():
                spans.append(_span(word))
            elif spans:
                raise ValueError(f'must have a semicolon before the days "{word}"')
            else:
                days += _days(word)
        if not days:
            raise ValueError(f'must be days and times {_FORM}, not "{part.strip()}"')
        if not spans and spans_needed:
            raise ValueError(f'needs times behind the days "{part.strip()}", {_FORM}')
        for day in days:
            week[day] = union([*week.get(day, ()), *(spans or [(0, 1440)])])
    return week


def _days(word: str) -> list[int]:
    if word.lower() in _SEVERAL:
        return [day + 1 for day in _SEVERAL[word.lower()]]
    first, dash, last = word.partition("-")
    start = _weekday(first, word)
    stop = _weekday(last, word) if dash else start
    return [(start + more) % 7 + 1 for more in range((stop - start) % 7 + 1)]


def _span(word: str) -> Range:
    found = _SPAN.fullmatch(word)
    if found is None:
        raise ValueError(f'must have times as HH:MM-HH:MM, such as 09:00-19:00, not "{word}"')
    hours = [int(part) for part in found.groups()]
    start, end = 60 * hours[0] + hours[1], 60 * hours[2] + hours[3]
    if max(hours[1], hours[3]) > 59 or max(start, end) > 23 * 60 + 59:
        raise ValueError(f'must have times from 00:00 to 23:59, which "{word}" has not')
    if end <= start:
        raise ValueError(f'must have spans that end after they begin, which "{word}" does not')
    return start, end


def windows_of(week: Week) -> list[dict[str, object]]:
    """Return a week as `timeWindows`."""
    return [
        {
            "dayOfWeek": day,
            "time": [{"start": clock_text(a), "end": clock_text(b)} for a, b in week[day]],
        }
        for day in sorted(week)
        if week[day]
    ]


def week_text(week: Week) -> str:
    """Format a week: `Mon-Fri 09:00-19:00; Sat 10:00-14:00`."""
    groups: list[tuple[list[int], tuple[Range, ...]]] = []
    for day in sorted(day for day in week if week[day]):
        if groups and groups[-1][1] == week[day] and groups[-1][0][-1] == day - 1:
            groups[-1][0].append(day)
        else:
            groups.append(([day], week[day]))
    return "; ".join(
        " ".join([
            "-".join(dict.fromkeys((WEEKDAYS[days[0] - 1], WEEKDAYS[days[-1] - 1]))),
            *(map(range_text, spans)),
        ])
        for days, spans in groups
    )  # fmt: skip
