"""The clock: SimPy's environment on integer milliseconds, and the order of work in one instant.

The steps of one instant (T4) are SimPy event priorities, carried by the event class `At`. Order
never depends on when an event was created, nor on small offsets of time. `Move` describes how far
to advance a clock.
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
    """Order of work in one instant (T4)."""

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
    """Event that runs `action` in a step of an instant (ms since the epoch), unless cancelled.

    A `moot` event runs like any other, but a run does not wait for it (T6).
    """

    _ok = True
    _value = None
    cancelled = False
    moot = False

    def __init__(self, clock: Clock, instant: int, step: int, action: Action) -> None:
        self.env = clock
        self.callbacks = [action]
        self.instant = instant
        # env.schedule takes a delay relative to now, and Timeout cannot be cancelled: SimPy would
        # keep a run alive until the instant of a cancelled event.
        heappush(clock._queue, (instant, _PRIORITY[step], next(clock._eid), self))


class Clock(simpy.Environment):
    """SimPy environment whose time is an integer number of milliseconds, UTC (T1)."""

    now: int

    def __init__(self, start: int) -> None:
        super().__init__(initial_time=start)

    def next_instant(self) -> int | None:
        """Return the instant of the next event up to the year 9999, or None.

        Cancelled events do not count, and moot ones only if another event is left (T6).
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
        """Run all events up to and including `until` (None: up to the year 9999).

        With `idle`, stop when only moot events are left (T6).
        """
        queue = cast(list[tuple[int, int, int, At]], self._queue)
        # This is SimPy's `step` without failing events, of which there are none. A cancelled event
        # must not move the clock, which `step` would do.
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
    """One action at an instant that can be set, moved and dropped."""

    __slots__ = ("_action", "_at", "_clock", "_step")

    def __init__(self, clock: Clock, step: Step, action: Action) -> None:
        self._clock = clock
        self._step = step
        self._action = action
        # Only the last event that was set is in force; a heap cannot remove the others, so they
        # stay in it as cancelled.
        self._at: At | None = None

    def set(self, instant: int) -> None:
        """Run the action at `instant`, and at no other."""
        at = self._at
        if at is not None and not at.processed and at.instant == instant:
            at.cancelled = False
            return
        self.drop()
        self._at = At(self._clock, instant, self._step, self._action)

    def set_no_later(self, instant: int) -> None:
        """Run the action at `instant`, or at the earlier instant already set."""
        # For actions that check again when they run: an early wake-up costs less than a new event.
        at = self._at
        if at is not None and not at.processed and at.instant <= instant:
            at.cancelled = False
            return
        self.set(instant)

    def drop(self) -> None:
        """Cancel the action."""
        if self._at is not None:
            self._at.cancelled = True


Instant = str | datetime
"""ISO 8601 text or an aware datetime."""

Until = Literal["nextEvent", "idle"]


@dataclass(frozen=True, slots=True)
class Move:
    """Target of a clock: an instant (`to`, ms since 1970), a condition (`until`), or a span
    (`by`, ms).
    """

    to: int | None
    until: Until | None
    by: int

    @classmethod
    def read(cls, to: Instant | None, until: Until | None, span: timedelta) -> Self:
        """Parse the arguments of `advance`. Raises DialsimError if they contradict one another."""
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
