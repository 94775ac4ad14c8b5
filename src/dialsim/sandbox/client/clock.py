"""The sandbox's own client: what `Sandbox` asks of its server, and refusals as errors.

The clock of a sandbox, moved from Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx

from dialsim.engine.clock import Instant, Move, Until, instant_as_datetime
from dialsim.interface.errors import DialsimError, Refused
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.sandbox.control.guard import PREFIX


class ControlClient:
    """Asks a server over HTTP, as any client would; threads may share one."""

    def __init__(self, url: str) -> None:
        # the next request may be long after this one: no connection is kept for it
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(
            base_url=url, timeout=None, limits=limits, trust_env=False, verify=False
        )

    def close(self) -> None:
        """Give everything back."""
        self._http.close()

    def ask(self, method: str, path: str, body: object = None, api_key: str | None = None) -> Any:
        """The decoded answer; `body` is sent as JSON unless it is None.

        Raises `Refused` with the status, code and texts of an error envelope, DialsimError if no
        answer comes.
        """
        headers = {} if api_key is None else {"X-API-Key": api_key}
        return self._answer(method, path, json=body, headers=headers)

    def upload(self, path: str, csv: bytes, query: Mapping[str, str]) -> Any:
        """The decoded answer to a CSV; errors as of `ask`."""
        headers = {"Content-Type": "text/csv"}
        return self._answer("POST", path, content=csv, params=query, headers=headers)

    def download(self, path: str) -> bytes:
        """The answer to a GET as it is; errors as of `ask`."""
        return self._response("GET", path).content

    def _answer(self, method: str, path: str, **more: Any) -> Any:
        return self._response(method, path, **more).json()

    def _response(self, method: str, path: str, **more: Any) -> httpx.Response:
        if self._http.is_closed:
            raise DialsimError("the sandbox was stopped")
        try:
            response = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise DialsimError(f"the sandbox doesn't answer: {error}") from error
        if response.is_error:
            answer = response.json()
            raise Refused(answer["statusCode"], answer["code"], answer["errors"])
        return response


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
