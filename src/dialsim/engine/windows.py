"""Calling windows: when calls may start, in integer arithmetic on the Thai week (T2, T3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.instants import LAST_INSTANT

if TYPE_CHECKING:
    from dialsim.interface.schedule import DayWindows

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
THAI_OFFSET = 7 * HOUR  # T2: UTC+7 all year

_MONDAY_BEFORE_EPOCH = 3 * DAY  # 1970-01-01 was a Thursday


def week_position(instant: int) -> int:
    """Milliseconds since Monday 00:00, Thai time."""
    return (instant + THAI_OFFSET + _MONDAY_BEFORE_EPOCH) % WEEK


class Windows:
    """The open ranges of a week, merged and sorted; half open, so `end` itself is closed (T3)."""

    __slots__ = ("_closes", "_ends", "_opened", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """`ranges` are (start, end) in ms since Monday 00:00, Thai time; they may overlap."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]
        self._opened = self._closes = 0  # the open span asked about last

    @classmethod
    def of(cls, time_windows: Iterable[DayWindows]) -> Windows:
        """The windows of a schedule request."""
        return cls(
            (
                (item.day_of_week - 1) * DAY + span.start_minute * MINUTE,
                (item.day_of_week - 1) * DAY + span.end_minute * MINUTE,
            )
            for item in time_windows
            for span in item.time
        )

    def is_open(self, instant: int) -> bool:
        """Whether a call may start at `instant`."""
        if self._opened <= instant < self._closes:
            return True
        position = week_position(instant)
        index = bisect_right(self._starts, position) - 1
        if index < 0 or position >= self._ends[index]:
            return False
        self._opened = instant + self._starts[index] - position
        self._closes = instant + self._ends[index] - position
        return True

    def next_open(self, instant: int) -> int:
        """The first open instant from `instant` on."""
        if self.is_open(instant):
            return instant
        position = week_position(instant)
        index = bisect_right(self._starts, position)
        if index < len(self._starts):
            return instant + self._starts[index] - position
        return instant + WEEK + self._starts[0] - position

    def next_close(self, instant: int) -> int:
        """The first closed instant from `instant` on."""
        return self._closes if self.is_open(instant) else instant

    def next_open_on_grid(self, instant: int, origin: int, interval: int) -> int | None:
        """The first open instant from `instant` on among origin + k × interval (Q2).

        None where no such instant ever falls into a window (up to the year 9999): the grid and the
        week repeat together only after interval ÷ gcd(interval, week) weeks, so the search is
        `_first_multiple`'s and not a walk.
        """
        first = origin + max(0, -((origin - instant) // interval)) * interval
        position = week_position(first)
        hits = [
            _first_multiple(interval, WEEK, (start - position) % WEEK, (end - 1 - position) % WEEK)
            for start, end in zip(self._starts, self._ends, strict=True)
        ]
        steps = min((hit for hit in hits if hit is not None), default=None)
        if steps is None or first + steps * interval > LAST_INSTANT:
            return None
        return first + steps * interval

    def open_spans(self, start: int, end: int) -> NDArray[np.int64]:
        """The open [from, to) spans inside [start, end): int64 of shape (n, 2), ms UTC."""
        if end <= start:
            return np.empty((0, 2), dtype=np.int64)
        monday = start - week_position(start)
        weeks = monday + WEEK * np.arange((end - monday) // WEEK + 1, dtype=np.int64)[:, None]
        spans = np.stack(
            [(weeks + np.array(self._starts)).ravel(), (weeks + np.array(self._ends)).ravel()],
            axis=1,
        ).clip(start, end)
        return spans[spans[:, 0] < spans[:, 1]]


def _first_multiple(factor: int, modulus: int, low: int, high: int) -> int | None:
    """The smallest k ≥ 0 with low ≤ (factor × k) mod modulus ≤ high; None if there is none.

    `low` > `high` means a range through 0, which k = 0 meets. Reduces like Euclid's algorithm:
    where no multiple below one turn hits, the number of turns solves the same problem modulo
    `factor`.
    """
    if low == 0 or low > high:
        return 0
    factor %= modulus
    if factor == 0:
        return None
    if 2 * factor > modulus:
        return _first_multiple(modulus - factor, modulus, modulus - high, modulus - low)
    steps = -(-low // factor)
    if steps * factor <= high:
        return steps
    turns = _first_multiple(-modulus % factor, factor, low % factor, high % factor)
    return None if turns is None else -(-(low + modulus * turns) // factor)
