"""The clock over HTTP: where it stands, and how it is moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dialsim.interface.instants import format_instant
from dialsim.interface.model import Combined, InstantText, WireModel, given
from dialsim.sandbox.clock import MOST_SPEED, VirtualClock
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http import failures as fail
from dialsim.sandbox.http.operation import Operations, operation
from dialsim.scenario.fields import Number
from dialsim.scenario.units import Duration, Instant


class ClockState(WireModel):
    """The clock as it stands."""

    now: InstantText = Field(description="The instant up to which everything has happened.")
    mode: Literal["manual", "running"]
    speed: float | None = Field(description="Times as fast as real time; null unless it runs.")
    speed_reached: float | None = Field(
        description="Times as fast as real time that it really went, over the last seconds; null "
        "unless it runs."
    )
    next_event_at: InstantText | None = Field(description="null when nothing is left to happen.")
    status: Literal["ready", "advancing"]
    held_by_journal: str | None = Field(
        description="Why the clock stands still, whatever its mode: what has happened can't be "
        "written to the journal. null as a rule."
    )

    @classmethod
    def of(cls, core: SandboxCore) -> ClockState:
        """The state of the clock of a sandbox."""
        clock, ahead = core.clock, core.next_event_at()
        return cls(
            now=format_instant(core.at),
            mode="manual" if clock.speed is None else "running",
            speed=clock.speed,
            speed_reached=clock.speed_reached,
            next_event_at=None if ahead is None else format_instant(ahead),
            status="ready" if clock.speed is None and not clock.advancing else "advancing",
            held_by_journal=None if core.journal is None else core.journal.error,
        )


class AdvancedClock(ClockState):
    """The clock after an advance."""

    stopped: bool = Field(
        description="Whether PUT /_dialsim/clock ended the advance on the way; now says how far it "
        "came."
    )


class MoveJson(Combined):
    """How the clock is to be moved: one of `to`, `by` and `until`."""

    model_config = ConfigDict(
        title="Move", json_schema_extra={"oneOf": [given("to"), given("by"), given("until")]}
    )

    to: Instant | None = Field(default=None, examples=["2026-01-05T04:00:00Z"])
    by: Duration | None = Field(default=None, examples=["2h"])
    until: Literal["nextEvent", "idle"] | None = None

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """There is exactly one way to go."""
        if sum(given.get(way) is not None for way in ("to", "by", "until")) != 1:
            yield "one of to, by and until must be given"

    async def carry_out(self, clock: VirtualClock) -> bool:
        """Move the clock; returns when everything up to there has happened.

        That is, unless it is stopped on the way: returns whether it came there.
        """
        if self.to is not None:
            return await clock.advance_to(self.to)
        if self.by is not None:
            return await clock.advance_by(self.by)
        if self.until == "nextEvent":
            return await clock.advance_to_next_event()
        return await clock.advance_to_idle()


class Mode(Combined):
    """How the clock goes: moved by hand, or by itself at a speed."""

    mode: Literal["manual", "running"]
    speed: Annotated[Number, Field(gt=0, le=MOST_SPEED)] | None = Field(
        default=None, description="Times as fast as real time; 1 if left out.", examples=[600]
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """What stands still has no speed."""
        if given.get("mode") == "manual" and given.get("speed") is not None:
            yield "speed must be left out where mode is manual"

    def carry_out(self, clock: VirtualClock) -> None:
        """Have the clock go so from now on."""
        if self.mode == "running":
            clock.run(1 if self.speed is None else self.speed)
        else:
            clock.stop()


class ClockOperations(Operations):
    """Reads and moves the clock, and sets how it goes."""

    @operation("GET", f"{PREFIX}/clock")
    def get_clock(self) -> ClockState:
        """See where the clock stands.

        It is answered also while the clock moves.
        """
        return ClockState.of(self.core)

    @operation("PUT", f"{PREFIX}/clock", fail.CLOCK_BUSY)
    def set_clock(self, body: Mode) -> ClockState:
        """Have the clock run, or stand still.

        A running clock waits for webhooks where it is too far ahead of them, and stops at
        clock.end; speedReached says how fast it really is. With mode manual it stands still at
        once: an advance that is under way ends there, too.
        """
        body.carry_out(self.core.clock)
        return ClockState.of(self.core)

    @operation(
        "POST",
        f"{PREFIX}/clock/advance",
        fail.BEFORE_NOW,
        fail.CLOCK_BUSY,
        fail.CLOCK_RUNNING,
        fail.NOT_IDLE,
    )
    async def advance_clock(self, body: MoveJson) -> AdvancedClock:
        """Move the clock.

        Answers when everything up to there has happened, webhooks delivered or lost included,
        however long that takes. Until idle it goes on for 366 days of virtual time at the most.
        PUT /_dialsim/clock with mode manual ends it on the way, which it says in stopped.
        """
        arrived = await body.carry_out(self.core.clock)
        return AdvancedClock(**dict(ClockState.of(self.core)), stopped=not arrived)
