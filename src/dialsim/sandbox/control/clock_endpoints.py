"""The clock over HTTP: where it stands, and how it is moved."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.instants import format_instant
from dialsim.interface.wire import WireModel
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import bare
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.manual_clock import ManualClock
from dialsim.sandbox.request_body import read_json
from dialsim.sandbox.shapes import read_shape
from dialsim.scenario.fields import broken
from dialsim.scenario.units import Duration, Instant


class ClockState(WireModel):
    """The clock as it stands."""

    now: str = Field(description="The instant up to which everything has happened.")
    mode: Literal["manual"] = "manual"
    speed: None = None
    next_event_at: str | None = Field(description="null when nothing is left to happen.")
    status: Literal["ready", "advancing"]


class Move(WireModel):
    """How the clock is to be moved: one of `to`, `by` and `until`."""

    to: Instant | None = Field(default=None, examples=["2026-01-05T04:00:00Z"])
    by: Duration | None = Field(default=None, examples=["2h"])
    until: Literal["nextEvent", "idle"] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Move:
        if sum(way is not None for way in (self.to, self.by, self.until)) != 1:
            raise broken("one of to, by and until must be given")
        return self


class ClockEndpoints:
    """Reads and moves the clock."""

    def __init__(self, exchange: Exchange) -> None:
        self._simulation = exchange.simulation
        self._clock = ManualClock(exchange.simulation)

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [
            route(f"{PREFIX}/clock", get=self._show),
            route(f"{PREFIX}/clock/advance", post=self._advance),
        ]

    async def _show(self, _request: Request) -> Response:
        ahead = self._simulation.next_instant()
        return bare(
            ClockState(
                now=format_instant(self._simulation.at),
                next_event_at=None if ahead is None else format_instant(ahead),
                status="advancing" if self._clock.advancing else "ready",
            )
        )

    async def _advance(self, request: Request) -> Response:
        move = read_shape(Move, await read_json(request, MOST_BYTES))
        if move.to is not None:
            await self._clock.advance_to(move.to)
        elif move.by is not None:
            await self._clock.advance_by(move.by)
        elif move.until == "nextEvent":
            await self._clock.advance_to_next_event()
        else:
            await self._clock.advance_to_idle()
        return await self._show(request)
