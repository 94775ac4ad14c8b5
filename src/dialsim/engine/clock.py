"""The clock: SimPy's environment on integer milliseconds, and the order of work in one instant.

The steps of one instant (T4) are priorities of SimPy events: SimPy's own timeouts, for which the
processes of calls wait, and events `At`, which run an action. Order never depends on when an event
was created, nor on small offsets of time. `Move` describes how far to advance a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from heapq import heappop
from typing import Literal, Self, cast

import simpy
from simpy.events import NORMAL, Event, EventPriority

from dialsim.errors import DialsimError
from dialsim.interface.instants import LAST_INSTANT, ms_of, parse_instant
from dialsim.scenario.units import era_fault

Action = Callable[[Event], None]


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


# SimPy's timeouts have the priority NORMAL, so a process that waits for one makes PROGRESS. The
# earlier steps get smaller priorities, which SimPy's heap orders like any other integers.
_PRIORITY = tuple(EventPriority(NORMAL - Step.PROGRESS + step) for step in range(max(Step) + 1))


class At(Event):
    """Event that runs `action` in a step of an instant (ms since the epoch), unless cancelled.

    A `moot` event runs like any other, but a run does not wait for it (T6).
    """

    # SimPy's Timeout takes no priority, and so no step. Like a Timeout, this event counts as
    # triggered from its creation.
    _ok = True
    _value = None
    moot = False

    def __init__(self, clock: Clock, instant: int, step: Step, action: Action) -> None:
        self.env = clock
        self.callbacks = [action]
        self.instant = instant
        clock.schedule(self, _PRIORITY[step], instant - clock.now)

    def cancel(self) -> None:
        """Remove the action; an event that has happened stays as it is."""
        if self.callbacks:
            self.callbacks.clear()


class Clock(simpy.Environment):
    """SimPy environment whose time is an integer count of milliseconds, UTC (T1).

    SimPy cannot cancel an event: an event without callbacks stays in the queue, keeps `run` going,
    and moves the time to its instant. This clock drops such events as soon as they come first.
    """

    # `_queue` is SimPy's heap of (time, priority, number, event). SimPy's public `peek` returns the
    # time of the first event only, not whether anything waits for it.

    now: int

    def __init__(self, start: int) -> None:
        super().__init__(initial_time=start)

    def next_instant(self) -> int | None:
        """Return the instant of the next event that something waits for, up to the year 9999.

        Return None if there is none, or if every event left is moot (T6).
        """
        self._drop_cancelled()
        if not self._queue or self._only_moot():
            return None
        ahead = cast(int, self._queue[0][0])
        return ahead if ahead <= LAST_INSTANT else None

    def work_off(self, until: int | None, *, idle: bool = False) -> None:
        """Run all events up to and including `until` (None: up to the year 9999).

        With `idle`, stop when only moot events are left (T6).
        """
        last = LAST_INSTANT if until is None else min(until, LAST_INSTANT)
        queue, step = self._queue, self.step
        while queue and queue[0][0] <= last:
            event = queue[0][3]
            if not event.callbacks:
                self._drop_cancelled()
            elif idle and isinstance(event, At) and event.moot and self._only_moot():
                return
            else:
                step()

    def _drop_cancelled(self) -> None:
        """Drop the events without callbacks that come before any other."""
        queue = self._queue
        while queue and not queue[0][3].callbacks:
            heappop(queue)[3].callbacks = None  # type: ignore[assignment]  # SimPy: processed

    def _only_moot(self) -> bool:
        """Return True if no event with callbacks is left but moot ones."""
        return all(
            not event.callbacks or getattr(event, "moot", False) for *_, event in self._queue
        )


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
        if at is not None and at.instant == instant and not at.processed:
            at.callbacks = [self._action]  # the timer may have been dropped
            return
        self.drop()
        self._at = At(self._clock, instant, self._step, self._action)

    def set_no_later(self, instant: int) -> None:
        """Run the action at `instant`, or at the earlier instant already set."""
        # For actions that check again when they run: an early wake-up costs less than a new event.
        at = self._at
        if at is not None and at.instant <= instant and not at.processed:
            at.callbacks = [self._action]
            return
        self.set(instant)

    def drop(self) -> None:
        """Cancel the action."""
        if self._at is not None:
            self._at.cancel()


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
    def read(cls, to: Instant | None, until: Until | None, **amounts: float) -> Self:
        """Parse the arguments of `advance`; `amounts` are those of a timedelta.

        Raises DialsimError if they contradict one another.
        """
        try:
            span = timedelta(**amounts)
        except OverflowError:
            raise DialsimError("advance: the clock stays within the years 1970 to 9999") from None
        if (to is not None) + (until is not None) + bool(span) > 1:
            raise DialsimError("advance: give one of `to`, `until` or a span such as `hours=2`")
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
