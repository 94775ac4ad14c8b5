"""Calling windows of a schedule request on the Thai week (T2, T3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import rules
from dialsim.engine.rules import week_position
from dialsim.interface.instants import DAY, MINUTE, WEEK

if TYPE_CHECKING:
    from dialsim.interface.schedule import DayWindows


class Windows:
    """Open ranges of a week, merged and sorted; each range excludes its end (T3)."""

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
        # The open span of the last query: successive queries mostly fall into the same one.
        self._opened = self._closes = 0

    @classmethod
    def of(cls, time_windows: Iterable[DayWindows]) -> Windows:
        """Build the windows of a schedule request."""
        return cls(
            (
                (item.day_of_week - 1) * DAY + span.start_minute * MINUTE,
                (item.day_of_week - 1) * DAY + span.end_minute * MINUTE,
            )
            for item in time_windows
            for span in item.time
        )

    @property
    def ranges(self) -> tuple[list[int], list[int]]:
        """Starts and ends of the open ranges."""
        return self._starts, self._ends

    def is_open(self, instant: int) -> bool:
        """Return True if a call may start at `instant`."""
        if self._opened <= instant < self._closes:
            return True
        position = week_position(instant)
        index = rules.range_at(self._starts, self._ends, position)
        if index < 0:
            return False
        self._opened = instant + self._starts[index] - position
        self._closes = instant + self._ends[index] - position
        return True

    def next_open(self, instant: int) -> int:
        """Return the first open instant from `instant` on."""
        return (
            instant if self.is_open(instant) else rules.next_open(self._starts, self._ends, instant)
        )

    def next_close(self, instant: int) -> int:
        """Return the first closed instant from `instant` on."""
        return self._closes if self.is_open(instant) else instant

    def next_open_on_grid(self, instant: int, origin: int, interval: int) -> int | None:
        """Return the first open instant from `instant` on among origin + k × interval (Q2), or
        None.
        """
        found = rules.next_open_on_grid(self._starts, self._ends, instant, origin, interval)
        return None if found < 0 else found

    def open_spans(self, start: int, end: int) -> NDArray[np.int64]:
        """Return the open spans [from, to) inside [start, end): int64 of shape (n, 2), ms UTC."""
        if end <= start:
            return np.empty((0, 2), dtype=np.int64)
        monday = start - week_position(start)
        weeks = monday + WEEK * np.arange((end - monday) // WEEK + 1, dtype=np.int64)[:, None]
        spans = np.stack(
            [(weeks + np.array(self._starts)).ravel(), (weeks + np.array(self._ends)).ravel()],
            axis=1,
        ).clip(start, end)
        return spans[spans[:, 0] < spans[:, 1]]
