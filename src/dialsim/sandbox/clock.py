"""The clock of the sandbox: it stands still until it is moved, or runs at a speed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from dialsim.errors import NotKept, Refused
from dialsim.interface.instants import LAST_INSTANT, format_instant
from dialsim.sandbox import failures as fail
from dialsim.sandbox.commands import SetSpeed

if TYPE_CHECKING:
    from dialsim.sandbox.core import SandboxCore


LONGEST_TO_IDLE = 366 * 86_400_000
"""Longest virtual time (ms) of an advance until idle, so that it always ends."""
MOST_SPEED = 1_000_000
"""Highest speed of a running clock, relative to real time."""

Ended = Literal["there", "stopped", "limit", "idle", "clockEnd", "never"]
"""Reason for the end of an advance: goal reached, interrupted, or goal unreachable."""


class Condition(ABC):
    """Condition that ends an advance."""

    @abstractmethod
    def is_met(self) -> bool:
        """True if the condition holds now, or has held since the last check."""

    def is_hopeless(self) -> bool:
        """True if the condition can't be met any more; by default, later events may meet it."""
        return False


TICK = 0.02  # seconds between two moves of a running clock
_LONGEST_TICK = 0.1  # seconds caught up in one move: long pauses cause no jump
_LOOKED_BACK = 5  # seconds over which the speed of the clock is measured


class VirtualClock:
    """Clock of a sandbox; requests are answered between instants, never within an instant.

    An advance waits for the POSTs of each stretch of time (see `Outbox`); a running clock waits
    only if it is too far ahead of them. There is one advance at a time: during an advance, another
    is refused with 409 `CLOCK_BUSY`, and while the clock runs, any is refused with 409
    `CLOCK_RUNNING`. An advance returns False if `stop` ended it. `speed` is the speed relative to
    real time, None while the clock stands still.
    """

    def __init__(self, core: SandboxCore) -> None:
        self.speed: float | None = None
        self.advance: _Advance | None = None
        self._core = core
        self._runner: asyncio.Task[None] | None = None
        self._ticks: deque[tuple[float, int]] = deque()  # real time (s), clock (ms)

    @property
    def is_busy(self) -> bool:
        """True if work is pending that long requests could delay."""
        return self.advancing or self.speed is not None or self._core.sender.busy

    @property
    def speed_reached(self) -> float | None:
        """Measured recent speed relative to real time, or None while the clock does not run."""
        if self.speed is None or len(self._ticks) < 2:
            return None
        (began, start), (now, at) = self._ticks[0], self._ticks[-1]
        return (at - start) / 1000 / (now - began) if now > began else None

    @property
    def advancing(self) -> bool:
        """True while a request advances the clock."""
        return self.advance is not None

    # -- moved by hand ----------------------------------------------------------------------------

    async def advance_to(self, instant: int) -> bool:
        """Move to an instant (ms), inclusive; 400 for one in the past or after clock.end."""
        self._check(instant)
        with _Advance(self) as advance:
            await self._work_off(instant)
            self._core.move_to(instant)
        return not advance.stopped

    async def advance_by(self, span: int) -> bool:
        """Move on by a span (ms)."""
        return await self.advance_to(self._core.at + span)

    async def advance_to_next_event(self) -> bool:
        """Move to the next change of a call, campaign or limit, or the next due POST or payload.

        Without further events, the clock stops where it is idle.
        """
        core, last = self._core, self._last()
        with _Advance(self) as advance:
            await self._wait_for_posts()
            before = core.happened()

            def reason() -> Ended | None:
                return None if core.happened() == before else "there"

            if await self._event_by_event(reason, last) != "there":
                self._refuse_if_busy_still(last)
        return not advance.stopped

    async def advance_until(self, condition: Condition, span: int) -> Ended:
        """Move event by event until a condition is met, at most by a span (ms)."""
        core, end = self._core, self._end()
        last = min(core.at + span, end)
        ended: Ended = "stopped"

        def reason() -> Ended | None:
            if condition.is_met():
                return "there"
            return "never" if condition.is_hopeless() else None

        with _Advance(self) as advance:
            ended = await self._event_by_event(reason, last)
            if ended == "limit":
                core.move_to(last)
                ended = "limit" if last < end else "clockEnd"
        return "stopped" if advance.stopped else ended

    async def advance_to_idle(self) -> bool:
        """Move until nothing is left to happen, or to clock.end; 409 if that takes over a year."""
        core, last = self._core, self._last()
        with _Advance(self) as advance:
            await self._work_off(last)
            while (ahead := core.next_event_at()) is not None and ahead <= last:
                core.move_to(ahead)
                await self._work_off(last)
            self._refuse_if_busy_still(last)
        return not advance.stopped

    # -- running by itself ------------------------------------------------------------------------

    def run(self, speed: float) -> None:
        """Run from now on, `speed` times as fast as real time, until `stop` or clock.end."""
        if self.advancing:
            raise fail.CLOCK_BUSY.refused()
        self._require_no_fault()
        self._core.carry_out(SetSpeed(speed=speed))
        self.go_on()

    def stop(self) -> None:
        """Stop the clock and end an advance; POSTs under way continue."""
        self._require_no_fault()
        if self.advance is not None:
            self.advance.stop()
        if self.speed is not None:
            self._core.carry_out(SetSpeed(speed=None))
        self.close()

    def go_on(self) -> None:
        """Start to run if a speed is set and the clock is not running yet."""
        if self.speed is not None and (self._runner is None or self._runner.done()):
            self._runner = asyncio.create_task(self._run())

    def give_up(self) -> None:
        """Stop the clock for a reset or restore: an advance under way is refused (409)."""
        if self.advance is not None:
            self.advance.stop(fail.STATE_REPLACED.refused())
        self.speed = None
        self.close()

    def close(self) -> None:
        """Stop the running clock."""
        self._require_no_fault()
        if self._runner is not None:
            self._runner.cancel()
        self._runner = None

    async def _run(self) -> None:
        core, last = self._core, self._end()
        before, owed = monotonic(), 0.0
        self._ticks.clear()
        try:
            while self.speed is not None and core.at < last:
                await asyncio.sleep(max(TICK - (monotonic() - before), 0))
                now = monotonic()
                owed += min(now - before, _LONGEST_TICK) * 1000 * self.speed
                before = now
                self._tick(now)
                await self._run_to(min(core.at + int(owed), last))
                owed -= int(owed)
        finally:
            if self._runner is asyncio.current_task():
                self.speed = None

    def _tick(self, now: float) -> None:
        self._ticks.append((now, self._core.at))
        while now - self._ticks[0][0] > _LOOKED_BACK:
            self._ticks.popleft()

    async def _run_to(self, instant: int) -> None:
        """Move to an instant; stop earlier if the journal cannot be written."""
        core = self._core
        try:
            await self._let_follow()
            while core.work_on(instant):
                await asyncio.sleep(0)
                await self._let_follow()
            # The clock may not pass the limit of the outbox, beyond which results could be sent too
            # late.
            core.move_to(min(instant, max(core.outbox.limit, core.at)))
        except NotKept:
            await core.journal_written()

    async def _let_follow(self) -> None:
        """Wait until the clock is not too far ahead of results that are on their way."""
        self._core.catch_up()
        while self._core.held and self._core.sender.busy:
            await self._core.sender.progress()

    def _require_no_fault(self) -> None:
        """Raise the unexpected error that ended a run, if there was one."""
        runner = self._runner
        if runner is not None and runner.done():
            self._runner = None
            runner.result()

    # -- the rest ---------------------------------------------------------------------------------

    async def _event_by_event(self, reason: Callable[[], Ended | None], last: int) -> Ended:
        """Move from event to event until there is a `reason` to stop, and return the reason.

        It is `idle` without a further event, and `limit` if the next event is after `last`.
        """
        await self._wait_for_posts()
        while (ended := reason()) is None:
            # Computed anew in each round: returned POSTs may have caused retries.
            ahead = self._core.next_event_at()
            if ahead is None or ahead > last:
                return "idle" if ahead is None else "limit"
            self._core.move_to(ahead)
            # Waiting requests are answered between two instants.
            await asyncio.sleep(0)
            await self._wait_for_posts()
        return ended

    async def _work_off(self, last: int) -> None:
        """Execute all events up to an instant, with pauses for other tasks."""
        await self._wait_for_posts()
        while self._core.work_on(last):
            await asyncio.sleep(0)
            await self._wait_for_posts()

    async def _wait_for_posts(self) -> None:
        """Wait until no POST is under way or due."""
        self._core.catch_up()
        await self._core.sender.settled()

    def _end(self) -> int:
        end = self._core.simulation.end
        return LAST_INSTANT if end is None else end

    def _last(self) -> int:
        return min(self._core.at + LONGEST_TO_IDLE, self._end())

    def _check(self, instant: int) -> None:
        now, end = self._core.at, self._core.simulation.end
        if instant < now:
            text = f"to must not be before now, {format_instant(now)}"
        elif end is not None and instant > end:
            text = f"to must not be after clock.end, {format_instant(end)}"
        elif instant > LAST_INSTANT:
            text = "to must not be after the year 9999"
        else:
            return
        raise fail.BEFORE_NOW.refused(text)

    def _refuse_if_busy_still(self, last: int) -> None:
        ahead = self._core.next_event_at()
        if last != self._core.simulation.end and ahead is not None:
            text = f"After a year there is still something to happen, at {format_instant(ahead)}"
            raise fail.NOT_IDLE.refused(text)


class _Advance:
    """Lock on the clock during an advance, for the task that starts the advance."""

    def __init__(self, clock: VirtualClock) -> None:
        self.stopped = False
        self._refusal: Refused | None = None
        self._clock = clock

    def __enter__(self) -> _Advance:
        if self._clock.advancing:
            raise fail.CLOCK_BUSY.refused()
        if self._clock.speed is not None:
            raise fail.CLOCK_RUNNING.refused()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._clock.advance = self
        return self

    def stop(self, refusal: Refused | None = None) -> None:
        """End the advance at the current instant, also while it waits for POSTs.

        `refusal` is raised in the waiting request. The caller runs between two instants, so nothing
        is left half done. The clock may be moved again at once.
        """
        self.stopped = True
        self._refusal = refusal
        self._clock.advance = None
        self._task.cancel()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        """Return True to suppress a cancellation that `stop` caused (see `asyncio.timeout`)."""
        if self._clock.advance is self:
            self._clock.advance = None
        stops = self.stopped and isinstance(error, asyncio.CancelledError)
        if not stops or self._task.uncancel() > 0:
            return False
        if self._refusal is not None:
            raise self._refusal
        return True
