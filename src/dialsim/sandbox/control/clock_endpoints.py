"""The clock over HTTP: where it stands, and how it is moved."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.instants import format_instant
from dialsim.interface.wire import InstantText, WireModel, given
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import bare
from dialsim.sandbox.manual_clock import ManualClock
from dialsim.sandbox.request_body import read_json
from dialsim.sandbox.running import Running
from dialsim.sandbox.shapes import read_shape
from dialsim.scenario.fields import broken
from dialsim.scenario.units import Duration, Instant


class ClockState(WireModel):
    """The clock as it stands."""

    now: InstantText = Field(description="The instant up to which everything has happened.")
    mode: Literal["manual"] = "manual"
    speed: None = None
    next_event_at: InstantText | None = Field(description="null when nothing is left to happen.")
    status: Literal["ready", "advancing"]

    @classmethod
    def of(cls, simulation: Running, clock: ManualClock) -> ClockState:
        """The state of the clock of a simulation."""
        ahead = simulation.next_instant()
        return cls(
            now=format_instant(simulation.at),
            next_event_at=None if ahead is None else format_instant(ahead),
            status="advancing" if clock.advancing else "ready",
        )


class Move(WireModel):
    """How the clock is to be moved: one of `to`, `by` and `until`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [given("to"), given("by"), given("until")]}
    )

    to: Instant | None = Field(default=None, examples=["2026-01-05T04:00:00Z"])
    by: Duration | None = Field(default=None, examples=["2h"])
    until: Literal["nextEvent", "idle"] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Move:
        if sum(way is not None for way in (self.to, self.by, self.until)) != 1:
            raise broken("one of to, by and until must be given")
        return self

    async def carry_out(self, clock: ManualClock) -> None:
        """Move the clock; returns when everything up to there has happened."""
        if self.to is not None:
            await clock.advance_to(self.to)
        elif self.by is not None:
            await clock.advance_by(self.by)
        elif self.until == "nextEvent":
            await clock.advance_to_next_event()
        else:
            await clock.advance_to_idle()


class ClockEndpoints:
    """Reads and moves the clock."""

    def __init__(self, simulation: Running, clock: ManualClock) -> None:
        self._simulation = simulation
        self._clock = clock

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [
            route(f"{PREFIX}/clock", get=self._show),
            route(f"{PREFIX}/clock/advance", post=self._advance),
        ]

    async def _show(self, _request: Request) -> Response:
        return bare(ClockState.of(self._simulation, self._clock))

    async def _advance(self, request: Request) -> Response:
        await read_shape(Move, await read_json(request, MOST_BYTES)).carry_out(self._clock)
        return await self._show(request)
