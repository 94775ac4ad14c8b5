"""The clock over HTTP: its current state, and operations that move it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, WithJsonSchema

from dialsim.engine.log_reader import CALL_STATUSES, TO_STATUS
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.instants import format_instant
from dialsim.interface.model import Combined, InstantText, UuidText, WireModel, given, invalid
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.clock import LONGEST_TO_IDLE, MOST_SPEED, Condition, Ended, VirtualClock
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import Operations, operation
from dialsim.scenario.fields import Number, Text, Whole
from dialsim.scenario.units import Duration, Instant, PositiveDuration


class ClockState(WireModel):
    """The clock as it stands."""

    now: InstantText = Field(description="The instant up to which everything has happened.")
    mode: Literal["manual", "running"]
    speed: float | None = Field(description="Relative to real time; null unless the clock runs.")
    speed_reached: float | None = Field(
        description="Speed measured over the last seconds, relative to real time; null unless the "
        "clock runs."
    )
    next_event_at: InstantText | None = Field(description="null if no further event is known.")
    status: Literal["ready", "advancing"]
    held_by_journal: str | None = Field(
        description="Error that makes the clock stand still in either mode: the journal can't be "
        "written. Usually null."
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

    ended: Ended = Field(
        description="there: the target is reached, the condition is met; stopped: PUT "
        "/_dialsim/clock ended the move; limit: the time within is over, and the condition is not "
        "met; idle: nothing is left to happen; clockEnd: the clock is at clock.end; never: the "
        "campaign is over with another status."
    )


_STATUSES = sorted({*CampaignStatus, *CallStatus})


class MoveJson(Combined):
    """Move of the clock: one of `to`, `by` and `until`."""

    model_config = ConfigDict(
        title="Move", json_schema_extra={"oneOf": [given("to"), given("by"), given("until")]}
    )

    to: Instant | None = Field(default=None, examples=["2026-01-05T04:00:00Z"])
    by: Duration | None = Field(default=None, examples=["2h"])
    until: Literal["nextEvent", "idle", "status", "webhooks"] | None = Field(
        default=None,
        description="What to wait for: the next event, an idle sandbox, a status of a campaign or "
        "a call, or a number of webhooks.",
    )
    campaign: UuidText | None = Field(
        default=None, description="Id of the campaign whose status or webhooks are waited for."
    )
    call: UuidText | None = Field(
        default=None, description="Id of the call whose status is waited for."
    )
    status: Annotated[Text, WithJsonSchema({"enum": _STATUSES})] | None = Field(
        default=None,
        description="Status of the campaign or the call to wait for.",
        examples=["COMPLETED"],
    )
    count: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None,
        description="Number of further webhooks to wait for; POSTs and kept payloads both count.",
        examples=[3],
    )
    within: PositiveDuration | None = Field(
        default=None,
        description="How long to wait for the status or the webhooks, in virtual time; 366 days if "
        "left out.",
        examples=["8h"],
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error unless exactly one kind of move is given, with fitting settings."""
        named = {name for name, value in given.items() if value is not None}
        if len(named & {"to", "by", "until"}) != 1:
            yield "one of to, by and until must be given"
        takes = _TAKES.get(str(given.get("until")), frozenset())
        for name in ("campaign", "call", "status", "count", "within"):
            if name in named and name not in takes:
                goes = [f'"{until}"' for until, names in _TAKES.items() if name in names]
                yield f"{name} can only be given where until is {' or '.join(goes)}"
        if given.get("until") == "status":
            if len(named & {"campaign", "call"}) != 1:
                yield "one of campaign and call must be given"
            if "status" not in named:
                yield 'status is required where until is "status"'
        if given.get("until") == "webhooks" and "count" not in named:
            yield 'count is required where until is "webhooks"'

    async def carry_out(self, core: SandboxCore) -> Ended:
        """Move the clock, and return the reason for its stop after all events on the way."""
        clock = core.clock
        if self.until in _TAKES:
            span = LONGEST_TO_IDLE if self.within is None else self.within
            return await clock.advance_until(self._condition(core), span)
        if self.to is not None:
            arrived = await clock.advance_to(self.to)
        elif self.by is not None:
            arrived = await clock.advance_by(self.by)
        elif self.until == "nextEvent":
            arrived = await clock.advance_to_next_event()
        else:
            arrived = await clock.advance_to_idle()
        return "there" if arrived else "stopped"

    def _condition(self, core: SandboxCore) -> Condition:
        if self.until == "webhooks":
            position = None
            if self.campaign is not None:
                _, view = core.campaign(self.campaign)
                position = view.position
            return WebhookCount(core, self.count or 1, position)
        if self.call is not None:
            return CallStands(core, self.call, _one_of(CallStatus, self.status))
        return CampaignStands(core, self.campaign or "", _one_of(CampaignStatus, self.status))


_TAKES = {
    "status": frozenset({"campaign", "call", "status", "within"}),
    "webhooks": frozenset({"campaign", "count", "within"}),
}
"""Settings of each condition."""

_Status = TypeVar("_Status", CampaignStatus, CallStatus)


def _one_of(statuses: type[_Status], named: str | None) -> _Status:
    try:
        return statuses(named or "")
    except ValueError:
        raise invalid(f"status must be one of {', '.join(statuses)}") from None


class CampaignStands(Condition):
    """Condition that a campaign is, or was since the last check, in a status."""

    def __init__(self, core: SandboxCore, identifier: str, status: CampaignStatus) -> None:
        _, self._view = core.campaign(identifier)
        self._changes, self._seen = core.simulation.log.campaigns, 0
        self._status = status
        self._seen = len(self._changes)

    def is_met(self) -> bool:
        """True if the status holds now, or has held since the last check."""
        # A status may hold for no time at all, so the changes since the last check count as well.
        since = self._seen
        self._seen = len(self._changes)
        return self._view.campaign.status is self._status or any(
            change.to_status is self._status
            for change in self._changes[since:]
            if (change.organization, change.campaign) == self._view.position
        )

    def is_hopeless(self) -> bool:
        """True if the campaign has a different final status."""
        return self._view.campaign.status.final


class CallStands(Condition):
    """Condition that a call is, or was since the last check, in a status."""

    def __init__(self, core: SandboxCore, identifier: str, status: CallStatus) -> None:
        self._view, self._call = core.call(identifier)
        self._core = core
        self._status = CALL_STATUSES.index(status)
        self._log = self._view.campaign.log
        self._seen = len(self._log)

    def is_met(self) -> bool:
        """True if the status holds now, or has held since the last check."""
        self._view.catch_up()
        one = np.array([self._call])
        if self._view.analyses.standing(one, self._core.at).status[0] == self._status:
            return True
        rows, calls = self._log.rows(self._seen), self._view.calls
        self._seen += len(rows)
        own = rows.recipient == calls.recipient[self._call]
        own &= rows.call == calls.call[self._call]
        return bool((TO_STATUS[rows.kind[own]] == self._status).any())


class WebhookCount(Condition):
    """Condition on the number of further webhooks sent or kept, of one campaign or of all."""

    def __init__(self, core: SandboxCore, count: int, position: tuple[int, int] | None) -> None:
        self._outbox, self._position = core.outbox, position
        self._goal = self._now() + count

    def is_met(self) -> bool:
        """True once the number of webhooks is reached."""
        return self._now() >= self._goal

    def _now(self) -> int:
        # Kept payloads count, too: results of organizations without a URL are read only on request,
        # as here.
        self._outbox.look_ahead()
        counts, position = self._outbox.webhook_counts, self._position
        return counts.total() if position is None else counts[position]


class Mode(Combined):
    """Mode of the clock: moved by requests, or running at a speed."""

    mode: Literal["manual", "running"]
    speed: Annotated[Number, Field(gt=0, le=MOST_SPEED)] | None = Field(
        default=None, description="Relative to real time; 1 if left out.", examples=[600]
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error if a speed is given for a clock that stands still."""
        if given.get("mode") == "manual" and given.get("speed") is not None:
            yield "speed must be left out where mode is manual"

    def carry_out(self, clock: VirtualClock) -> None:
        """Set the mode of the clock."""
        if self.mode == "running":
            clock.run(1 if self.speed is None else self.speed)
        else:
            clock.stop()


class ClockOperations(Operations):
    """Operations that read, move, run and stop the clock."""

    @operation("GET", f"{PREFIX}/clock")
    def get_clock(self) -> ClockState:
        """See where the clock stands.

        Answered also while the clock moves.
        """
        return ClockState.of(self.core)

    @operation("PUT", f"{PREFIX}/clock", fail.CLOCK_BUSY)
    def set_clock(self, body: Mode) -> ClockState:
        """Run or stop the clock.

        A running clock waits for webhooks where it is too far ahead of them, and stops at
        clock.end; speedReached is its measured speed. With mode manual the clock stops at once,
        which also ends an advance under way.
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
        fail.STATE_REPLACED,
        fail.NO_CAMPAIGN,
        fail.NO_CALL,
    )
    async def advance_clock(self, body: MoveJson) -> AdvancedClock:
        """Move the clock.

        The answer comes when everything up to the new instant has happened, webhooks delivered or
        lost included, however long that takes. Until idle, the clock moves at most 366 days of
        virtual time. PUT /_dialsim/clock with mode manual ends the move early; ended is
        then stopped, and now says how far it came. A condition that is never met also gets 200,
        with the reason in ended.
        """
        ended = await body.carry_out(self.core)
        return AdvancedClock(**dict(ClockState.of(self.core)), ended=ended)
