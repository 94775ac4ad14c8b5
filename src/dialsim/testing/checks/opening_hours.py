"""Opening hours of a campaign, asked of many instants at once (T2, T3)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.schedule import DayWindows

Instants = NDArray[np.int64]

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
WEEK = 7 * DAY
_THURSDAY_TO_MONDAY = 3 * DAY + 7 * 60 * MINUTE  # 1 January 1970 was a Thursday; Thai time is UTC+7


class OpeningHours:
    """When calls may start. All arguments and results are instants in ms UTC, int64."""

    def __init__(self, windows: Iterable[DayWindows]) -> None:
        open_minutes = np.zeros(WEEK // MINUTE + 1, dtype=np.int8)
        for item in windows:
            for span in item.time:
                midnight = (item.day_of_week - 1) * DAY // MINUTE
                open_minutes[midnight + span.start_minute : midnight + span.end_minute] = 1
        edges = np.diff(open_minutes, prepend=np.int8(0))
        self._starts = np.flatnonzero(edges == 1) * MINUTE
        self._ends = np.flatnonzero(edges == -1) * MINUTE

    def are_open(self, at: Instants) -> NDArray[np.bool_]:
        """Whether calls may start, at each instant."""
        position = _week_position(at)
        after = np.searchsorted(self._starts, position, side="right")
        return after > np.searchsorted(self._ends, position, side="right")

    def next_close(self, at: Instants) -> Instants:
        """The first closed instant from each instant on."""
        position = _week_position(at)
        ends = np.append(self._ends, WEEK)
        closes = at + ends[np.searchsorted(self._ends, position, side="right")] - position
        return np.where(self.are_open(at), closes, at)

    def next_open(self, at: Instants) -> Instants:
        """The first open instant from each instant on; there must be some open minute."""
        position = _week_position(at)
        starts = np.append(self._starts, self._starts[0] + WEEK)
        opens = at + starts[np.searchsorted(self._starts, position, side="left")] - position
        return np.where(self.are_open(at), at, opens)

    def next_release(self, at: Instants, until: Instants, origin: int, interval: int) -> Instants:
        """The first open instant from each of `at` on among origin + k × interval (Q2).

        Where there is none before `until`, an instant from `until` on.
        """
        found = _on_grid(at, origin, interval)
        searched = np.flatnonzero((found < until) & ~self.are_open(found))
        while len(searched):
            found[searched] = _on_grid(self.next_open(found[searched]), origin, interval)
            ahead = found[searched] < until[searched]
            searched = searched[ahead & ~self.are_open(found[searched])]
        return found


def _week_position(at: Instants) -> Instants:
    """Milliseconds since Monday 00:00, Thai time."""
    return (at + _THURSDAY_TO_MONDAY) % WEEK


def _on_grid(at: Instants, origin: int, interval: int) -> Instants:
    """The first instant from each of `at` on that is origin + k × interval, k ≥ 0."""
    steps = -((origin - at) // interval)
    return origin + np.maximum(steps, 0) * interval
