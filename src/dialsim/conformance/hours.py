"""Calling hours of a campaign, for many instants at once (T2, T3)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.instants import DAY, MINUTE, WEEK

Instants = NDArray[np.int64]
Mask = NDArray[np.bool_]

# 1 January 1970 was a Thursday; Thai time is UTC+7.
_THURSDAY_TO_MONDAY = 3 * DAY + 7 * 60 * MINUTE


class OpeningHours:
    """Time windows of a week. Arguments and results are instants in ms UTC, int64."""

    def __init__(self, windows: Iterable[tuple[int, int, int]]) -> None:
        """`windows` are days of the week (1 to 7) with the minutes from and to which they last."""
        # A table of minutes is independent of the engine's interval arithmetic; its last entry
        # closes Sunday.
        open_minutes = np.zeros(WEEK // MINUTE + 1, dtype=np.int8)
        for day, start, end in windows:
            midnight = (day - 1) * DAY // MINUTE
            open_minutes[midnight + start : midnight + end] = 1
        edges = np.diff(open_minutes, prepend=np.int8(0))
        self._starts = np.flatnonzero(edges == 1) * MINUTE
        self._ends = np.flatnonzero(edges == -1) * MINUTE

    def are_open(self, at: Instants) -> Mask:
        """Return True for instants at which calls may start."""
        position = _week_position(at)
        after = np.searchsorted(self._starts, position, side="right")
        return after > np.searchsorted(self._ends, position, side="right")

    def next_close(self, at: Instants) -> Instants:
        """Return the first closed instant from each instant on."""
        position = _week_position(at)
        ends = np.append(self._ends, WEEK)
        closes = at + ends[np.searchsorted(self._ends, position, side="right")] - position
        return np.where(self.are_open(at), closes, at)

    def next_open(self, at: Instants) -> Instants:
        """Return the first open instant from each instant on; the largest int64 if none follows."""
        if not len(self._starts):
            return np.full(len(at), np.iinfo(np.int64).max)
        position = _week_position(at)
        starts = np.append(self._starts, self._starts[0] + WEEK)
        opens = at + starts[np.searchsorted(self._starts, position, side="left")] - position
        return np.where(self.are_open(at), at, opens)

    def next_release(self, at: Instants, until: Instants, origin: int, interval: int) -> Instants:
        """Return the first open instant from each of `at` on among origin + k × interval (Q2).

        If there is none before `until`, an instant from `until` on is returned.
        """
        found = _on_grid(at, origin, interval)
        searched = np.flatnonzero((found < until) & ~self.are_open(found))
        while len(searched):
            found[searched] = _on_grid(self.next_open(found[searched]), origin, interval)
            ahead = found[searched] < until[searched]
            searched = searched[ahead & ~self.are_open(found[searched])]
        return found


def _week_position(at: Instants) -> Instants:
    """Return the ms since Monday 00:00, Thai time."""
    return (at + _THURSDAY_TO_MONDAY) % WEEK


def _on_grid(at: Instants, origin: int, interval: int) -> Instants:
    """Return the first instant from each of `at` on that is origin + k × interval, k ≥ 0."""
    steps = -((origin - at) // interval)
    return origin + np.maximum(steps, 0) * interval
