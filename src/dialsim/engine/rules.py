"""Arithmetic of the rules, as pure functions of integers and floats.

Both engines call these functions, the compiled engine after `shared` has compiled them. So do all
other readers of the rules, such as replay and bounds: no rule is worked out in a second place.
Instants are in ms since 1970, durations in ms. Open ranges of a week are given as `starts` and
`ends` in ms since Monday 00:00 Thai time, sorted and disjoint (T3); `Windows` has those of a
schedule request. The test kit's checker and the oracle do not use this module, because they check
the engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, exp, pow
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialsim.interface import CallStatus
from dialsim.interface.instants import DAY, LAST_INSTANT, MINUTE, THAI_OFFSET, WEEK

if TYPE_CHECKING:
    from dialsim.interface.schedule import DayWindows

Ranges = Sequence[int] | NDArray[np.int64]
Instants = TypeVar("Instants", int, NDArray[np.int64])

_MONDAY_BEFORE_EPOCH = 3 * DAY  # 1970-01-01 was a Thursday

# -- T: time ---------------------------------------------------------------------------------------


def week_position(instant: Instants) -> Instants:
    """Return the ms since Monday 00:00, Thai time, of an instant or of a column of instants."""
    return (instant + THAI_OFFSET + _MONDAY_BEFORE_EPOCH) % WEEK


def range_at(starts: Ranges, ends: Ranges, position: int) -> int:
    """Return the index of the open range that contains a position of the week, or -1 (T3)."""
    for index in range(len(starts)):
        if starts[index] <= position < ends[index]:  # T3: `end` itself is closed
            return index
    return -1


def next_open(starts: Ranges, ends: Ranges, instant: int) -> int:
    """Return the first open instant from `instant` on."""
    position = week_position(instant)
    for index in range(len(starts)):
        if position < ends[index]:
            return instant + max(0, starts[index] - position)
    return instant + WEEK - position + starts[0]


def next_open_on_grid(
    starts: Ranges, ends: Ranges, instant: int, origin: int, interval: int
) -> int:
    """Return the first open instant from `instant` on among origin + k × interval (Q2).

    Returns -1 if no such instant up to the year 9999 falls into a window.
    """
    # Grid and week repeat together only after interval ÷ gcd(interval, week) weeks, so walking
    # along the grid could take millions of steps.
    first = origin + max(0, -((origin - instant) // interval)) * interval
    position = week_position(first)
    steps = -1
    for index in range(len(starts)):
        low, high = (starts[index] - position) % WEEK, (ends[index] - 1 - position) % WEEK
        hit = first_multiple(interval, WEEK, low, high)
        if hit >= 0 and (steps < 0 or hit < steps):
            steps = hit
    if steps < 0 or first + steps * interval > LAST_INSTANT:
        return -1
    return first + steps * interval


def first_multiple(factor: int, modulus: int, low: int, high: int) -> int:
    """Return the smallest k ≥ 0 with low ≤ (factor × k) mod modulus ≤ high, or -1.

    `low` > `high` means a range through 0, which contains k = 0. The problem is reduced as in
    Euclid's algorithm: if no multiple below one turn hits the range, the number of turns solves the
    same problem modulo `factor`.
    """
    # Stack of reduced problems: each modulus is at most half of the one before, so 64 are enough
    # for int64. A loop and not a recursion, because numba cannot cache compiled recursions.
    reduced = np.empty((64, 3), dtype=np.int64)
    depth = 0
    while low != 0 and low <= high:
        factor %= modulus
        if factor == 0:
            return -1
        if 2 * factor > modulus:
            factor, low, high = modulus - factor, modulus - high, modulus - low
            continue
        steps = -(-low // factor)
        if steps * factor <= high:
            break
        reduced[depth, 0], reduced[depth, 1], reduced[depth, 2] = factor, modulus, low
        depth += 1
        factor, modulus, low, high = -modulus % factor, factor, low % factor, high % factor
    else:
        steps = 0
    while depth > 0:
        depth -= 1
        factor, modulus, low = reduced[depth, 0], reduced[depth, 1], reduced[depth, 2]
        steps = -(-(low + modulus * steps) // factor)
    return int(steps)


# -- R: retries ------------------------------------------------------------------------------------

ENDINGS = (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)
"""Ends of a dialled call; functions take them as indices."""
REACHED, NO_ANSWER, BUSY, FAILED = range(len(ENDINGS))
LOST_IN_QUEUE = -1
"""Value in place of an ending for a queue timeout (Q5), which is no attempt."""


def calls_again(ending: int, attempts: int, max_attempts: int) -> bool:
    """Return True if another call follows a call with this ending (R1, R3).

    `attempts` are the recipient's counted attempts, this call included.
    """
    return ending != REACHED and attempts < max_attempts


def retry_due(ended_at: int, retry_interval: int, ending: int) -> int:  # noqa: ARG001
    """Return the instant at which the next call of a recipient is due (R2).

    `ending` is the ending of the previous call, an index into `ENDINGS` or `LOST_IN_QUEUE`.
    """
    return ended_at + retry_interval


# -- Q: order, sharing, pace -----------------------------------------------------------------------


def order_classes(order: str) -> tuple[int, int]:
    """Return the classes of recipients without and with a counted attempt (Q3).

    Calls of class 0 are released before those of class 1.
    """
    return int(order == "retriesFirst"), int(order == "freshFirst")


def is_release_instant(instant: int, origin: int, interval: int) -> bool:
    """Return True if calls may be released at an instant, for the release interval (Q2)."""
    return interval == 0 or (instant - origin) % interval == 0


def goes_before_by_weight(lines: int, weight: int, other_lines: int, other_weight: int) -> bool:
    """Return True if a campaign goes before another one under `weighted` (Q8).

    `lines` are the campaign's calls that are QUEUED or INITIATED.
    """
    # Multiplied out, because the quotients of floats could differ in the last digit.
    return (lines + 1) * other_weight < (other_lines + 1) * weight


def lines_held(reserved: int, people: int, settled: int) -> int:
    """Return the number of lines kept for a running campaign in its window (Q11)."""
    return min(reserved, people - settled)


def dial_gap(calls_per_second: float | None) -> int:
    """Return the minimum time in ms between two dials of an organization (Q4); 0 without a
    limit.
    """
    if calls_per_second is None:
        return 0
    # The decimal as written: the binary value of 0.1 is a little larger, and ceil would return
    # another gap.
    return ceil(1000 / Fraction(repr(calls_per_second)))


# -- P: calls and chance ---------------------------------------------------------------------------

DEAD = -1.0
"""Value in place of a probability to answer: a dead number, whose calls always fail (P7)."""
DIAL = 1_000_000_000
"""One dial in the fixed-point unit in which dials are summed."""


def decayed(uses: int, elapsed: int, recovery: int) -> int:
    """Return the rest of a sum of dials (in units of 1 / `DIAL`) after `elapsed` ms of
    exponential decay.
    """
    return uses if elapsed == 0 else round(uses * exp(-elapsed / recovery))


def dials(uses: int) -> float:
    """Return a fixed-point sum of dials as a number: n of `byCallerIdUse`."""
    # Each withdrawal is rounded on its own, so a sum can fall slightly below 0.
    return max(0, uses) / float(DIAL)


def chosen(count: int, avoided: int, draw: float) -> int:
    """Return the index of the caller ID that a dial shows among `count` numbers (P3).

    `avoided` is the index of the number that a retry avoids, or -1. `draw` is a uniform.
    """
    if count == 1:
        return 0
    if avoided < 0:
        return int(draw * count)
    index = int(draw * (count - 1))
    return index + 1 if index >= avoided else index


def with_odds(chance: float, factor: float) -> float:
    """Return the probability whose odds are the odds of `chance` times `factor`."""
    # Odds do not move certainties; only factor 0 turns 1 into 0. Factor 1 returns `chance`
    # unrounded, so that both engines agree to the last bit.
    if factor == 1.0 or chance in (0.0, 1.0):
        return chance if factor else 0.0
    return chance * factor / (1.0 - chance + chance * factor)


def fatigue(per1000: float, uses: float) -> float:
    """Return the factor on the odds of an answer after a number of uses of the caller ID."""
    return pow(per1000, uses / 1000.0)


def ending(own: float, odds: float, draw: float, no_answer: float, busy: float) -> int:
    """Return the end of a dial as an index into `ENDINGS` (P2).

    `own` is the recipient's own probability to answer, `odds` the factor on its odds, `draw` a
    uniform. `no_answer` and `busy` are the cumulative shares of these ends among unanswered dials.
    """
    if own == DEAD:
        return FAILED  # P7
    answered = with_odds(own, odds)
    if draw < answered:
        return REACHED
    # The same draw decides between the other ends: rescaled, it is uniform again.
    rest = (draw - answered) / (1.0 - answered)
    return NO_ANSWER if rest < no_answer else BUSY if rest < busy else FAILED


def on_holiday(holidays: Ranges, factor: float, instant: int) -> float:
    """Return `factor` on holidays and 1 on other days; `holidays` are sorted days since 1970
    (Thai).
    """
    if factor == 1.0:
        return 1.0
    day = (instant + THAI_OFFSET) // DAY
    # A binary search by hand, because numba compiles it for lists and arrays alike.
    low, high = 0, len(holidays)
    while low < high:
        middle = (low + high) // 2
        if holidays[middle] < day:
            low = middle + 1
        else:
            high = middle
    return factor if low < len(holidays) and holidays[low] == day else 1.0


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
        index = range_at(self._starts, self._ends, position)
        if index < 0:
            return False
        self._opened = instant + self._starts[index] - position
        self._closes = instant + self._ends[index] - position
        return True

    def next_open(self, instant: int) -> int:
        """Return the first open instant from `instant` on."""
        return instant if self.is_open(instant) else next_open(self._starts, self._ends, instant)

    def next_close(self, instant: int) -> int:
        """Return the first closed instant from `instant` on."""
        return self._closes if self.is_open(instant) else instant

    def next_open_on_grid(self, instant: int, origin: int, interval: int) -> int | None:
        """Return the first open instant from `instant` on among origin + k × interval (Q2), or
        None.
        """
        found = next_open_on_grid(self._starts, self._ends, instant, origin, interval)
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
