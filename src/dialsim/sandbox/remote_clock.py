"""The clock of a sandbox, moved from Python."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from dialsim.engine.move import Instant, Move, Until, instant_as_datetime
from dialsim.interface.errors import DialsimError
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.sandbox.control_client import ControlClient
from dialsim.sandbox.control_guard import PREFIX


class RemoteClock:
    """The virtual clock: it stands still until it is moved or set running."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    @property
    def now(self) -> datetime:
        """The instant up to which, itself included, everything has happened."""
        return _datetime(self._state()["now"])

    @property
    def next_event_at(self) -> datetime | None:
        """The next instant at which the engine has work to do; None when it is idle."""
        instant = self._state()["nextEventAt"]
        return None if instant is None else _datetime(instant)

    @property
    def speed(self) -> float | None:
        """How many times faster than real time the clock runs; None while it stands still."""
        speed: float | None = self._state()["speed"]
        return speed

    def advance(
        self,
        *,
        to: Instant | None = None,
        until: Until | None = None,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> datetime:
        """Move the clock, as `Simulation.advance` does; returns the new `now`.

        When it returns, everything up to there has happened, and every webhook due was delivered
        or given up. Raises DialsimError with the server's text where it can't be done, and where
        somebody stops the clock on the way: `now` is where it stands then.
        """
        span = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        move = Move.read(to, until, span)
        body: dict[str, str] = {"by": f"{move.by}ms"}
        if move.until is not None:
            body = {"until": move.until}
        elif move.to is not None:
            body = {"to": format_instant(move.to)}
        state = self._client.ask("POST", f"{PREFIX}/clock/advance", body)
        if state["stopped"]:
            raise DialsimError(f"advance: the clock was stopped on the way, at {state['now']}")
        return _datetime(state["now"])

    def run(self, speed: float = 1) -> None:
        """Have the clock run by itself, `speed` times as fast as real time."""
        self._client.ask("PUT", f"{PREFIX}/clock", {"mode": "running", "speed": speed})

    def stop(self) -> datetime:
        """Have the clock stand still, and end an advance under way; returns where it stands."""
        return _datetime(self._client.ask("PUT", f"{PREFIX}/clock", {"mode": "manual"})["now"])

    def __repr__(self) -> str:
        state = self._state()
        runs = f", running at {state['speed']}x" if state["mode"] == "running" else ""
        return f"<dialsim clock at {state['now']}{runs}>"

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._client.ask("GET", f"{PREFIX}/clock")
        return state


def _datetime(text: str) -> datetime:
    return instant_as_datetime(parse_instant(text))
