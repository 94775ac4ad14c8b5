"""The clock of the sandbox: it stands still until it is told to move."""

from __future__ import annotations

import asyncio
from time import monotonic

from dialsim.engine.windows import LAST_INSTANT
from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.sandbox.running import Running

LONGEST_TO_IDLE = 366 * 86_400_000
"""The most virtual time (ms) that waiting for idleness takes: it never runs for ever."""

_STRIDE = 60_000  # virtual ms worked off without looking at the time of the day
_PATIENCE = 0.02  # seconds for which others wait at the most, strides being short


class ManualClock:
    """Moves a simulation; requests are answered in between, at instants that are worked off.

    One advance at a time: another one meanwhile is refused with 409 `CLOCK_BUSY`.
    """

    def __init__(self, simulation: Running) -> None:
        self._simulation = simulation
        self.advancing = False

    async def advance_to(self, instant: int) -> None:
        """Move to an instant (ms), inclusive; 400 for one in the past or after clock.end."""
        self._check(instant)
        with _Move(self):
            await self._work_off(instant)
            self._simulation.move_to(instant)

    async def advance_by(self, span: int) -> None:
        """Move on by a span (ms)."""
        await self.advance_to(self._simulation.at + span)

    async def advance_to_next_event(self) -> None:
        """Move to the next instant at which a call, a campaign or a limit changes, if there is one.

        Where nothing changes any more the clock ends up where it is idle.
        """
        simulation, last = self._simulation, self._last()
        before = simulation.log.size()
        with _Move(self):
            while (ahead := simulation.next_instant()) is not None and ahead <= last:
                simulation.work_off(ahead)
                if simulation.log.size() != before:
                    return
                await asyncio.sleep(0)
        self._refuse_if_busy_still(last)

    async def advance_to_idle(self) -> None:
        """Move until nothing is left to happen, or clock.end; 409 where that takes over a year."""
        last = self._last()
        with _Move(self):
            await self._work_off(last)
        self._refuse_if_busy_still(last)

    async def _work_off(self, last: int) -> None:
        """Carry out all events up to an instant, and let others have their turn now and then."""
        simulation, turn_ends = self._simulation, monotonic() + _PATIENCE
        while (ahead := simulation.next_instant()) is not None and ahead <= last:
            simulation.work_off(min(ahead + _STRIDE, last))
            if monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = monotonic() + _PATIENCE

    def _last(self) -> int:
        longest = min(self._simulation.at + LONGEST_TO_IDLE, LAST_INSTANT)
        end = self._simulation.end
        return longest if end is None else min(end, longest)

    def _check(self, instant: int) -> None:
        now, end = self._simulation.at, self._simulation.end
        if instant < now:
            text = f"to must not be before now, {format_instant(now)}"
        elif end is not None and instant > end:
            text = f"to must not be after clock.end, {format_instant(end)}"
        elif instant > LAST_INSTANT:
            text = "to must not be after the year 9999"
        else:
            return
        raise Refused(400, "VALIDATION_FAILED", [text])

    def _refuse_if_busy_still(self, last: int) -> None:
        ahead = self._simulation.next_instant()
        if last != self._simulation.end and ahead is not None:
            text = f"After a year there is still something to happen, at {format_instant(ahead)}"
            raise Refused(409, "NOT_IDLE", [text])


class _Move:
    """Holds the clock while it moves."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        if self._clock.advancing:
            raise Refused(409, "CLOCK_BUSY", ["The clock is being moved already"])
        self._clock.advancing = True

    def __exit__(self, *_failure: object) -> None:
        self._clock.advancing = False
