"""Calling windows as a test writes them: `Mon-Fri 09:00-12:00 13:00-17:00, Sat 10:00-12:00`."""

from __future__ import annotations

from dialsim.interface.errors import DialsimError
from dialsim.testing.thai_clock import DAYS


def time_windows(text: str) -> list[dict[str, object]]:
    """The `timeWindows` of a schedule request, an item per day and part of the text.

    Parts are divided by commas; each has its days (`Mon`, `Mon-Fri`; none: every day) and its
    ranges of Thai time. Raises DialsimError for what is neither; hours are checked by the loader.
    """
    return [item for part in text.split(",") for item in _items(part.split(), text)]


def _items(words: list[str], text: str) -> list[dict[str, object]]:
    days = list(range(1, 8))
    if words and words[0][0].isalpha():
        days = _days(words[0], text)
        words = words[1:]
    ranges = [word.split("-") for word in words]
    if not ranges or any(len(ends) != 2 for ends in ranges):
        raise DialsimError(f"{text!r} are no windows such as 'Mon-Fri 09:00-12:00 13:00-17:00'")
    times = [{"start": start, "end": end} for start, end in ranges]
    return [{"dayOfWeek": day, "time": times} for day in days]


def _days(word: str, text: str) -> list[int]:
    first, _, last = word.partition("-")
    if first not in DAYS or (last or first) not in DAYS:
        raise DialsimError(f"{text!r}: {word} are no days; write Mon or Mon-Fri")
    begin, end = DAYS.index(first), DAYS.index(last or first)
    return [(begin + i) % 7 + 1 for i in range((end - begin) % 7 + 1)]
