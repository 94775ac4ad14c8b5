"""Session of one sandbox from start to stop, and its requests to its server over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, overload
from urllib.parse import urlencode, urlsplit

import httpx

from dialsim.engine.clock import Instant, Move, Until
from dialsim.engine.trace import Trace
from dialsim.errors import DialsimError, Refused
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant, parse_instant, utc
from dialsim.sandbox.access import PREFIX, Destinations, hostname, is_loopback, with_public_url
from dialsim.sandbox.control.organizations import CampaignState
from dialsim.sandbox.control.traffic import FaultState, RequestRow
from dialsim.sandbox.core import SandboxCore, Snapshot
from dialsim.sandbox.live_engine import remaining_run
from dialsim.sandbox.server import ServerThread, address, listening
from dialsim.sandbox.tables import WebhookRow
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import ApiFault, ErrorStatus, WebhookFault
from dialsim.scenario.units import file_value

_FAULTS = f"{PREFIX}/faults"


class ControlClient:
    """HTTP client of a server, like any other client; threads may share it."""

    def __init__(self, url: str, webhook_urls: Callable[[], Iterable[str | None]]) -> None:
        """`webhook_urls` returns the URLs that results are sent to now."""
        self._webhook_urls = webhook_urls
        # no connection is kept: the next request may come much later
        limits = httpx.Limits(max_keepalive_connections=0)
        # No timeout, because an advance may take minutes, and no proxy of the environment: the
        # server is in this process.
        self._http = httpx.Client(
            base_url=url, timeout=None, limits=limits, trust_env=False, verify=False
        )

    def close(self) -> None:
        """Close the client."""
        self._http.close()

    def ask(self, method: str, path: str, body: object = None, api_key: str | None = None) -> Any:
        """Return the decoded answer; `body` is sent as JSON unless it is None."""
        headers = {} if api_key is None else {"X-API-Key": api_key}
        return self._answer(method, path, json=file_value(body), headers=headers)

    def wait(self, path: str, body: object = None) -> Any:
        """Return the decoded answer to a POST that waits for webhooks; errors as for `ask`.

        Raises DialsimError at once where the receiver is served by the event loop that runs in this
        thread: the receiver could not answer before the request is answered.
        """
        blocked = _ports_of_running_loop()
        for url in self._webhook_urls() if blocked else ():
            if url is not None and is_loopback(hostname(url)) and _port(url) in blocked:
                raise DialsimError(
                    f"the receiver at {url} runs in the event loop of this thread, which this call "
                    "would block: call it by asyncio.to_thread(…), or run the receiver in another "
                    "thread"
                )
        return self.ask("POST", path, body)

    def upload(self, path: str, csv: bytes, query: Mapping[str, str]) -> Any:
        """Return the decoded answer to the POST of a CSV; errors as for `ask`."""
        headers = {"Content-Type": "text/csv"}
        return self._answer("POST", path, content=csv, params=query, headers=headers)

    def download(self, path: str) -> bytes:
        """Return the undecoded answer to a GET; errors as for `ask`."""
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


def _ports_of_running_loop() -> set[int]:
    """Return the ports on which the event loop of this thread listens; empty without a loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return set()
    # asyncio does not list its servers; loops without a selector (uvloop, Windows) hide them
    selector = getattr(loop, "_selector", None)
    ports = set[int]()
    # The sockets themselves are read: copies of other descriptors, such as the pipes to a browser
    # that drives a test, would disturb their owners.
    for key in selector.get_map().values() if selector is not None else ():
        reader: Any = key.data[0] if isinstance(key.data, tuple) else None
        if getattr(getattr(reader, "_callback", None), "__name__", "") == "_accept_connection":
            ports.add(reader._args[1].getsockname()[1])
    return ports


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


@checked(DialsimError)
class RemoteClock:
    """The virtual clock: it stands still until it is moved or set running."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    @property
    def now(self) -> datetime:
        """Current instant; all events up to and including it have happened."""
        return _datetime(self._state()["now"])

    @property
    def next_event_at(self) -> datetime | None:
        """Next instant with work for the engine; None when the engine is idle."""
        instant = self._state()["nextEventAt"]
        return None if instant is None else _datetime(instant)

    @property
    def speed(self) -> float | None:
        """Speed of the clock relative to real time; None while the clock stands still."""
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
        """Move the clock, as `Simulation.advance` does; return the new `now`.

        On return, everything up to `now` has happened, and every due webhook was delivered or given
        up. Raises DialsimError with the server's text if the clock cannot move, or if another
        client stops the clock on the way: `now` is then the instant of the stop.
        """
        move = Move.read(
            to, until, days=days, hours=hours, minutes=minutes, seconds=seconds,
            milliseconds=milliseconds,
        )  # fmt: skip
        body: dict[str, str] = {"by": f"{move.by}ms"}
        if move.until is not None:
            body = {"until": move.until}
        elif move.to is not None:
            body = {"to": format_instant(move.to)}
        state = self._client.wait(f"{PREFIX}/clock/advance", body)
        if state["ended"] == "stopped":
            raise DialsimError(f"advance: the clock was stopped on the way, at {state['now']}")
        return _datetime(state["now"])

    def advance_until(self, condition: Mapping[str, object], within: timedelta | None) -> datetime:
        """Move the clock until a condition of the control plane holds, and return the new instant.

        Raises DialsimError, with the reason and the position of the clock, if it never holds.
        """
        span = {} if within is None else {"within": _span_text(within)}
        state = self._client.wait(f"{PREFIX}/clock/advance", {**condition, **span})
        if state["ended"] != "there":
            raise DialsimError(f"advance_until: {_WHY[state['ended']]}, at {state['now']}")
        return _datetime(state["now"])

    def advance_while(self, is_missing: Callable[[], bool], within: timedelta | None) -> datetime:
        """Move the clock event by event while a condition is missing; errors as for
        `advance_until`.
        """
        last = None if within is None else self.now + within
        while is_missing():
            state = self._state()
            ahead = state["nextEventAt"]
            if ahead is None:
                raise DialsimError(f"advance_until: {_WHY['idle']}, at {state['now']}")
            if last is not None and _datetime(ahead) > last:
                self.advance(to=last)
                state = self._state()
                raise DialsimError(f"advance_until: {_WHY['limit']}, at {state['now']}")
            self.advance(until="nextEvent")
        return self.now

    def run(self, speed: float = 1) -> None:
        """Run the clock at `speed` times real time."""
        self._client.ask("PUT", f"{PREFIX}/clock", {"mode": "running", "speed": speed})

    def stop(self) -> datetime:
        """Stop the clock and any advance under way; return the current instant."""
        return _datetime(self._client.ask("PUT", f"{PREFIX}/clock", {"mode": "manual"})["now"])

    def __repr__(self) -> str:
        state = self._state()
        runs = f", running at {state['speed']}x" if state["mode"] == "running" else ""
        return f"<dialsim clock at {state['now']}{runs}>"

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._client.ask("GET", f"{PREFIX}/clock")
        return state


_WHY = {
    "stopped": "the clock was stopped on the way",
    "limit": "the condition was not met within the limit",
    "idle": "the condition was not met, and nothing is left to happen",
    "clockEnd": "the condition was not met, and the clock is at its end",
    "never": "the condition can't be met any more: the campaign is over with another status",
}


def _span_text(span: timedelta) -> str:
    return f"{span // timedelta(milliseconds=1)}ms"


def _datetime(text: str) -> datetime:
    return utc(parse_instant(text))


@checked(DialsimError)
class RemoteFaults:
    """Collection of injected faults: add faults here and read how often they struck.

    Iteration lists all faults that were not cleared, oldest first; `faults[3]` is the fault with id
    3.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def strike_webhooks(
        self,
        how: WebhookFault,
        times: int | None = None,
        *,
        lasts: str | None = None,
        delay: str | Mapping[str, object] | None = None,
        share: float = 1,
        organization: str | None = None,
        campaign: str | None = None,
    ) -> FaultState:
        """Inject a fault into the next POSTs of the webhook, `times` of them.

        `timeout`: nothing arrives, and the service waits 10 s; `refuse`: the connection is refused;
        `late`: the POST arrives, but its answer counts as too late; `twice`: the POST arrives
        twice; `delayed`: the POST leaves after a `delay` of virtual time, unchanged, and others
        overtake it; `stale`: the POST arrives, and then the previous result of the same person
        again. The fault applies to `times` POSTs, by default one, or as long as it `lasts` in
        virtual time. With a `share` below 1, each POST is struck at random with that probability. A
        `delay` is a duration or a distribution.
        """
        return self._add(
            webhooks=how,
            next=_times(times, lasts),
            lasts=lasts,
            delay=delay,
            share=share,
            organization=organization,
            campaign=None if campaign is None else self._campaign(campaign),
        )

    def strike_api(
        self,
        how: ApiFault,
        times: int | None = None,
        *,
        lasts: str | None = None,
        status: ErrorStatus | None = None,
        retry_after: str | None = None,
        executed: bool | None = None,
        delay: str | Mapping[str, object] | None = None,
        share: float = 1,
        organization: str | None = None,
        path: str | None = None,
        requests_per_second: float | None = None,
        burst: int | None = None,
    ) -> FaultState:
        """Inject a fault into the answers to the next requests, `times` of them.

        `error`: the answer is an error, with `status` 503 by default, and with a `Retry-After` on
        429 or 503 if one is given; `drop`: the connection is dropped. The request is then not
        executed, unless `executed` is true. `slow`: the answer comes after a `delay` of real time,
        such as `2s`; `slowBody`: its body comes in pieces over that time. `limit`: 429 beyond
        `requests_per_second` of virtual time, after a `burst`. `path` is the beginning of the
        affected paths; `times`, `lasts` and `share` are as for webhooks.
        """
        return self._add(
            api=how,
            next=_times(times, lasts),
            lasts=lasts,
            status=status,
            retryAfter=retry_after,
            executed=executed,
            delay=delay,
            share=share,
            organization=organization,
            path=path,
            requestsPerSecond=requests_per_second,
            burst=burst,
        )

    def clear(self, fault: FaultState | int | None = None) -> None:
        """Clear a fault, given as record or id; without an argument, clear all."""
        if fault is None:
            self._client.ask("DELETE", _FAULTS)
        else:
            number = fault.id if isinstance(fault, FaultState) else fault
            self._client.ask("DELETE", f"{_FAULTS}/{number}")

    def __iter__(self) -> Iterator[FaultState]:
        return map(FaultState.model_validate, self._client.ask("GET", _FAULTS))

    def __getitem__(self, number: int) -> FaultState:
        return FaultState.model_validate(self._client.ask("GET", f"{_FAULTS}/{number}"))

    def __repr__(self) -> str:
        return f"<dialsim faults: {[*self]}>"

    def _add(self, **order: object) -> FaultState:
        return FaultState.model_validate(self._client.ask("POST", _FAULTS, order))

    def _campaign(self, name: str) -> str:
        listed = self._client.ask("GET", f"{PREFIX}/campaigns")
        return find([CampaignState.model_validate(state) for state in listed], name).id


def _times(times: int | None, lasts: str | None) -> int | None:
    """Return the number of strikes: 1 if neither a number nor a duration is given."""
    return 1 if times is None and lasts is None else times


_REQUESTS = f"{PREFIX}/requests"
_SHOWN = 10  # requests listed in an error message without a match


@checked(DialsimError)
class RemoteRequests(Sequence[RequestRow]):
    """The log of requests, oldest first; every access asks the server again."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def filter(
        self,
        method: str | None = None,
        path: str | None = None,
        *,
        status: int | str | None = None,
        organization: str | None = None,
        body: object = None,
    ) -> list[RequestRow]:
        """Return the requests that match; an omitted argument matches everything."""
        wanted = {
            "method": method,
            "path": path,
            "status": status,
            "organization": organization,
        }
        found = self._read({name: value for name, value in wanted.items() if value is not None})
        return [one for one in found if body is None or not [*differences(body, one.body)]]

    def clear(self) -> None:
        """Clear all requests, so that later requests are counted alone."""
        self._client.ask("DELETE", _REQUESTS)

    def __len__(self) -> int:
        return int(self._client.ask("GET", _REQUESTS)["total"])

    def __iter__(self) -> Iterator[RequestRow]:
        return iter(self._read({}))

    @overload
    def __getitem__(self, index: int) -> RequestRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[RequestRow]: ...
    def __getitem__(self, index: int | slice) -> RequestRow | list[RequestRow]:
        return self._read({})[index]

    def __repr__(self) -> str:
        return f"<dialsim requests: {[str(one) for one in self]}>"

    def assert_called(
        self,
        method: str,
        path: str,
        filters: Mapping[str, int | str | None],
        body: object,
        times: int | None,
    ) -> None:
        """Raise AssertionError, with the logged requests, unless the number of matching requests
        fits.
        """
        file_value({"body": body})  # raises DialsimError for values without a JSON form
        wanted = {"method": method.upper(), "path": path, **filters}
        asked = self._read({name: value for name, value in wanted.items() if value is not None})
        misses = {one.n: [] if body is None else [*differences(body, one.body)] for one in asked}
        found = [one for one in asked if not misses[one.n]]
        if len(found) == times or (times is None and found):
            return
        named = {**wanted, "body": body}
        expected = ", ".join(
            f"{name}: {value}" for name, value in named.items() if value is not None
        )
        number = "requests" if times is None else times
        lines = [f"expected {number}, found {len(found)} of {expected}"]
        for one in asked or [*self][-_SHOWN:]:
            cut = " (only its beginning is kept)" if one.body_cut else ""
            lines += [f"    {one}", *(f"        {miss}{cut}" for miss in misses.get(one.n, ()))]
        if len(lines) == 1:
            lines.append("There are no requests in the log.")
        raise AssertionError("\n".join(lines))

    def _read(self, query: Mapping[str, object]) -> list[RequestRow]:
        rows: list[RequestRow] = []
        page = last = 1
        while page <= last:
            asked = urlencode({**query, "page": page})
            shown = self._client.ask("GET", f"{_REQUESTS}?{asked}")
            rows += map(RequestRow.model_validate, shown["requests"])
            page, last = page + 1, shown["totalPages"]
        return rows


_MISSING = object()


def differences(wanted: object, found: object, path: str = "body") -> Iterator[str]:
    """Yield the differences of a value, as texts; a required mapping may be a subset."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            yield f"{path} is {_shown(found)}, not an object"
            return
        for name, value in wanted.items():
            own = found.get(name, _MISSING)
            if own is _MISSING:
                yield f"{path}.{name} is missing"
            else:
                yield from differences(value, own, f"{path}.{name}")
    elif isinstance(wanted, list | tuple) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{path} has {len(found)} items, not {len(wanted)}"
        for number, (value, own) in enumerate(zip(wanted, found, strict=False)):
            yield from differences(value, own, f"{path}.{number}")
    # in JSON, unlike in Python, true is no number
    elif wanted != found or isinstance(wanted, bool) is not isinstance(found, bool):
        yield f"{path} is {_shown(found)}, not {wanted!r}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def find(campaigns: Sequence[CampaignState], name: str) -> CampaignState:
    """Return the only campaign with a name or full name; else raises DialsimError."""
    found = [one for one in campaigns if one.full_name == name]
    found = found or [one for one in campaigns if one.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.full_name for one in found or campaigns)
    if found:
        raise DialsimError(f"more than one campaign {name!r}; say which: {known}")
    raise DialsimError(f"no campaign {name!r}; there are: {known}")


class RemoteWebhooks(Sequence[WebhookRow]):
    """Webhooks listed when this object was created; pages are requested when needed."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._pages: dict[int, list[WebhookRow]] = {}
        self._total = int(self._read(1)["total"])

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, index: int) -> WebhookRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[WebhookRow]: ...
    def __getitem__(self, index: int | slice) -> WebhookRow | list[WebhookRow]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(self._total))]
        row = range(self._total)[index]
        # Page 1 is full wherever there is a page 2, so its length is the size of a page.
        page = row // len(self._pages[1]) + 1
        if page not in self._pages:
            self._read(page)
        return self._pages[page][row % len(self._pages[1])]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr([*self])

    def _read(self, page: int) -> dict[str, Any]:
        shown: dict[str, Any] = self._client.ask("GET", f"{PREFIX}/webhooks?page={page}")
        self._pages[page] = [WebhookRow.model_validate(row) for row in shown["webhooks"]]
        return shown


class Session:
    """Server thread of a sandbox, and its HTTP client."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int | None,
        port: int,
        destinations: Destinations,
        state: Snapshot | None = None,
    ) -> None:
        """Start the server; raises DialsimError if that fails.

        With the `state` of another sandbox, the session is a fork: it begins in that state and
        sends no webhooks.
        """
        # The socket comes before the core: its port is part of the links to files.
        listener = listening("127.0.0.1", port)
        try:
            self.url = address(listener)
            served = with_public_url(scenario, self.url)
            if state is None:
                self._core = SandboxCore(served, seed, destinations)
            else:
                self._core = SandboxCore.replayed(served, seed, state, silent=True)
                self._core.clock.speed = None
            self._thread = ServerThread(self._core, listener)
            self._thread.start()
        except BaseException:
            listener.close()
            raise
        self.client = ControlClient(self.url, self._webhook_urls)
        self.clock = RemoteClock(self.client)
        self.faults = RemoteFaults(self.client)
        self.requests = RemoteRequests(self.client)

    @property
    def at(self) -> int:
        """The virtual instant (ms)."""
        return self._core.simulation.at

    @property
    def api_keys(self) -> dict[str, str]:
        """The API key of every organization, by its name."""
        return {
            account.block.name: self._core.api_key(account.block.position)
            for account in self._core.accounts
        }

    def _webhook_urls(self) -> list[str | None]:
        core = self._core
        return [core.webhook_url(position) for position in range(len(core.accounts))]

    def state(self) -> Snapshot:
        """Current state, for a fork."""
        return self._thread.ask(lambda: self._core.state)

    def remaining(self) -> Scenario:
        """Return the rest of the run, as a scenario that begins now."""
        return self._thread.ask(lambda: remaining_run(self._core.simulation))()

    def snapshot(self) -> Trace:
        """Return a permanent copy of the trace so far."""

        def take() -> Trace:
            return self._core.simulation.trace.snapshot()

        return self._thread.ask(take)

    def close(self) -> None:
        """Stop the server; raises DialsimError for unexpected errors of the server."""
        self._thread.stop()
        self.client.close()
        if self._thread.failure is not None:
            raise DialsimError(
                f"the sandbox ended by itself: {self._thread.failure!r}"
            ) from self._thread.failure
        for fault in self._thread.faults:
            raise DialsimError(
                f"the sandbox had a fault of its own, please report it: {fault!r}"
            ) from fault
