"""The clock: SimPy's environment on integer milliseconds, and the order of work in one instant.

The steps of one instant (T4) are SimPy event priorities; `At` is the one event class that carries
them. Nothing here uses an epsilon, and nothing depends on the order in which events were made.
`Move` says how far a clock is to be moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from heapq import heappop, heappush
from typing import Literal, Self, cast

import simpy
from simpy.events import Event, EventPriority

from dialsim.errors import DialsimError
from dialsim.interface.instants import LAST_INSTANT, ms_of, parse_instant
from dialsim.scenario.units import era_fault

Action = Callable[["At"], None]


class Step(IntEnum):
    """The order of work in one instant (T4)."""

    ACTIONS = 1
    END_DATE_TIME = 2
    WINDOW_CLOSING = 3
    PROGRESS = 4
    QUEUE_TIMEOUT = 5
    DUE = 6
    DIALLING = 7
    FINAL = 8
    DELIVERY = 9
    REST = 10


_PRIORITY = tuple(EventPriority(step) for step in range(max(Step) + 1))


class At(Event):
    """`action` at an instant (ms since the epoch) and a step of it; may be cancelled until then.

    One that is `moot` is carried out like any other, but is nothing to wait for (T6).
    """

    _ok = True
    _value = None
    cancelled = False
    moot = False

    def __init__(self, clock: Clock, instant: int, step: int, action: Action) -> None:
        self.env = clock
        self.callbacks = [action]
        self.instant = instant
        heappush(clock._queue, (instant, _PRIORITY[step], next(clock._eid), self))


class Clock(simpy.Environment):
    """A SimPy environment whose time is an integer count of milliseconds, UTC (T1)."""

    now: int

    def __init__(self, start: int) -> None:
        super().__init__(initial_time=start)

    def next_instant(self) -> int | None:
        """The instant of the next event, if any is worth waiting for; None when none up to 9999 is.

        Where all that is left is moot, nothing is ahead (T6).
        """
        queue = cast(list[tuple[int, int, int, At]], self._queue)
        while queue:
            instant, _, _, event = queue[0]
            if not event.cancelled:
                if event.moot and all(each.cancelled or each.moot for *_, each in queue):
                    return None
                return instant if instant <= LAST_INSTANT else None
            heappop(queue)
            event.callbacks = None  # type: ignore[assignment]
        return None

    def work_off(self, until: int | None, *, idle: bool = False) -> None:
        """Carry out all events up to and including `until` (None: all up to the year 9999).

        With `idle` it stops where nothing is ahead that is worth waiting for (T6).

        This is SimPy's `step` without what failing events need, of which there are none; and an
        event that was cancelled doesn't move the clock.
        """
        queue = cast(list[tuple[int, int, int, At]], self._queue)
        last = LAST_INSTANT if until is None else min(until, LAST_INSTANT)
        while queue and queue[0][0] <= last:
            if idle and queue[0][3].moot and self.next_instant() is None:
                return
            instant, _, _, event = heappop(queue)
            callbacks = event.callbacks
            event.callbacks = None  # type: ignore[assignment]  # SimPy's mark of `processed`
            if not event.cancelled:
                self._now = instant
                for callback in callbacks:
                    callback(event)


class Timer:
    """One action whose instant may be set, moved and dropped; one event counts at the most."""

    __slots__ = ("_action", "_at", "_clock", "_step")

    def __init__(self, clock: Clock, step: Step, action: Action) -> None:
        self._clock = clock
        self._step = step
        self._action = action
        self._at: At | None = None

    def set(self, instant: int) -> None:
        """Act at `instant`, and at no other."""
        at = self._at
        if at is not None and not at.processed and at.instant == instant:
            at.cancelled = False
            return
        self.drop()
        self._at = At(self._clock, instant, self._step, self._action)

    def set_no_later(self, instant: int) -> None:
        """Act at `instant`, or earlier if the timer stands earlier: for actions that look again."""
        at = self._at
        if at is not None and not at.processed and at.instant <= instant:
            at.cancelled = False
            return
        self.set(instant)

    def drop(self) -> None:
        """Don't act."""
        if self._at is not None:
            self._at.cancelled = True


Instant = str | datetime
"""Text in ISO 8601 or an aware datetime."""

Until = Literal["nextEvent", "idle"]


@dataclass(frozen=True, slots=True)
class Move:
    """To an instant (`to`, ms since 1970), until something is so, or else by a span (`by`, ms)."""

    to: int | None
    until: Until | None
    by: int

    @classmethod
    def read(cls, to: Instant | None, until: Until | None, span: timedelta) -> Self:
        """Read the arguments of `advance`; raises DialsimError if they make no sense together."""
        if (to is not None) + (until is not None) + bool(span) > 1:
            raise DialsimError("advance: give one of `to`, `until` or a span such as `hours=2`")
        if until not in (None, "nextEvent", "idle"):
            raise DialsimError(f'advance: until={until!r} is not "nextEvent" or "idle"')
        return cls(
            None if to is None else _milliseconds(to),
            until,
            round(span / timedelta(milliseconds=1)),
        )


def _milliseconds(instant: Instant) -> int:
    fault = era_fault(str(instant))
    if fault is not None:
        raise DialsimError(f"advance: to {fault}")
    if isinstance(instant, str):
        try:
            return parse_instant(instant)
        except ValueError as error:
            raise DialsimError(f"advance: {error}") from None
    if instant.tzinfo is None:
        raise DialsimError(f"advance: {instant} has no time zone; give an aware datetime or text")
    return ms_of(instant)
