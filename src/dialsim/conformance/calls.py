"""Rules on calls as functions of columns: Q2, Q4, P3, P5, R1 to R3; calling hours (T2, T3).

Columns have a row per call, sorted by person, and by time for each person. A status is an index
into `STATUSES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.status import CallStatus

STATUSES = tuple(CallStatus)

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.integer[Any]]

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
WEEK = 7 * DAY
# 1 January 1970 was a Thursday; Thai time is UTC+7.
_THURSDAY_TO_MONDAY = 3 * DAY + 7 * 60 * MINUTE

_UNREACHED = np.isin(STATUSES, [CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED])


def retry_due(
    ended_at: Integers,
    retry_interval: Integers | int,
    status: Codes,  # noqa: ARG001 (an interval by status is a common wish)
) -> Integers:
    """Return the instant at which the call after each call is due (R2)."""
    return ended_at + retry_interval


def is_called_again(
    status: Codes, is_timeout: Mask, attempts: Integers, max_attempts: Integers | int
) -> Mask:
    """Return True for calls after which their person is called again (R1, R3).

    `is_timeout` marks calls that timed out in the queue; `attempts` counts those up to the call.
    """
    again: Mask = (_UNREACHED[status] | is_timeout) & (attempts < max_attempts)
    return again


def attempts_so_far(person: Codes, counted: Mask) -> Integers:
    """Return how many calls of a person count as attempts, up to each call (P5)."""
    total = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])
    own: Integers = total[1:] - total[np.searchsorted(person, person)]
    return own


def shows_the_same(person: Codes, number: NDArray[Any]) -> Mask:
    """Return True for dials that show the caller ID of their person's dial before (P3)."""
    again = (person[1:] == person[:-1]) & (number[1:] == number[:-1])
    return np.append(False, again)[: len(person)]


def is_between_releases(at: Integers, origin: Integers | int, interval: int) -> Mask:
    """Return True for releases that are not on a release instant (Q2)."""
    off: Mask = (at - origin) % interval != 0
    return off


def least_gap(calls_per_second: float | None) -> int:
    """Return the minimum time between two dials, in ms (Q4)."""
    # By way of the text: 0.1 as a float is slightly more than a tenth.
    return 0 if calls_per_second is None else ceil(1000 / Fraction(str(calls_per_second)))


class OpeningHours:
    """Calling hours of a campaign, for many instants at once (T2, T3).

    Arguments and results are instants in ms UTC, int64.
    """

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

    def are_open(self, at: Integers) -> Mask:
        """Return True for instants at which calls may start."""
        position = _week_position(at)
        after = np.searchsorted(self._starts, position, side="right")
        return after > np.searchsorted(self._ends, position, side="right")

    def next_close(self, at: Integers) -> Integers:
        """Return the first closed instant from each instant on."""
        position = _week_position(at)
        ends = np.append(self._ends, WEEK)
        closes = at + ends[np.searchsorted(self._ends, position, side="right")] - position
        return np.where(self.are_open(at), closes, at)

    def next_open(self, at: Integers) -> Integers:
        """Return the first open instant from each instant on; the largest int64 if none follows."""
        if not len(self._starts):
            return np.full(len(at), np.iinfo(np.int64).max)
        position = _week_position(at)
        starts = np.append(self._starts, self._starts[0] + WEEK)
        opens = at + starts[np.searchsorted(self._starts, position, side="left")] - position
        return np.where(self.are_open(at), at, opens)

    def next_release(self, at: Integers, until: Integers, origin: int, interval: int) -> Integers:
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


def _week_position(at: Integers) -> Integers:
    """Return the ms since Monday 00:00, Thai time."""
    return (at + _THURSDAY_TO_MONDAY) % WEEK


def _on_grid(at: Integers, origin: int, interval: int) -> Integers:
    """Return the first instant from each of `at` on that is origin + k × interval, k ≥ 0."""
    steps = -((origin - at) // interval)
    return origin + np.maximum(steps, 0) * interval
