"""The sandbox from Python: the service on a port of this machine, for as long as it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import orjson

from dialsim.errors import DialsimError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant
from dialsim.results.result import Result
from dialsim.sandbox.access import KEEP, PREFIX, Destinations, require_extra, with_webhook_url
from dialsim.scenario.loading import is_text, load, loads
from dialsim.scenario.scenario import Overrides, Scenario, override_texts

# Methods import these modules, because `import dialsim` must work without the packages of the
# sandbox.
if TYPE_CHECKING:
    from dialsim.experiments.forecast import Forecast
    from dialsim.sandbox.control.organizations import CampaignState, CreatedOrganization
    from dialsim.sandbox.control.traffic import TriggeredResult
    from dialsim.sandbox.core import Snapshot
    from dialsim.sandbox.session import RemoteClock, RemoteFaults, RemoteRequests, Session
    from dialsim.sandbox.tables import WebhookRow


Source = Scenario | Mapping[str, object] | os.PathLike[str] | str
"""A scenario, its file, its text, or its content as a mapping."""

_CAMPAIGNS = f"{PREFIX}/campaigns"
_ORGANIZATIONS = f"{PREFIX}/organizations"
_PEOPLE = f"{PREFIX}/people"
_SNAPSHOTS = f"{PREFIX}/snapshots"
_WEBHOOKS = f"{PREFIX}/webhooks"


@checked(DialsimError)
class Sandbox:
    """The service's interface, served over HTTP by a thread of this process.

    ```python
    with dialsim.Sandbox("scenarios/first-campaign.yaml") as sandbox:
        client = MyClient(sandbox.url, sandbox.api_key)
        sandbox.clock.advance(hours=3)
    ```

    Without `with`, for example in a notebook, call `start` and `stop`. The commands of `Simulation`
    have the same names here: campaigns are named `January`, or `Acme/January` if the name alone is
    ambiguous, and `Refused` is raised with the service's text if a rule forbids the command.
    Threads may share a sandbox. In an event loop that must not block, call waiting methods through
    `asyncio.to_thread`.

    >>> with dialsim.Sandbox(scenario) as sandbox:
    ...     now = sandbox.clock.advance(minutes=30)
    ...     print(sandbox.campaign("January").status)
    RUNNING
    """

    def __init__(
        self,
        scenario: Source,
        overrides: Overrides = (),
        *,
        seed: int | None = None,
        port: int = 0,
        webhook_url: str | None = None,
    ) -> None:
        """Prepare a sandbox. `overrides` are texts `PATH=VALUE`, as for `load`.

        `seed` defaults to the scenario's seed. Port 0 takes a free port. With a `webhook_url`, the
        results of all organizations go to that URL instead of the scenario's URLs; "keep" sends
        none. Without a `webhook_url`, results for the scenario's URLs are sent to loopback
        addresses and kept otherwise. Raises ScenarioError as `load` does, DialsimError for missing
        packages.
        """
        require_extra("Sandbox")
        self._scenario = _read(scenario, overrides)
        if webhook_url is not None and webhook_url != KEEP:
            self._scenario = with_webhook_url(self._scenario, webhook_url)
        self._webhook_url = webhook_url
        self._seed = seed
        self._port = port
        self._session: Session | None = None
        self._over = False
        self._state: Snapshot | None = None  # where a fork begins

    # -- from start to stop -----------------------------------------------------------------------

    def start(self) -> Self:
        """Start to serve, with the clock at clock.start; `with` calls this method.

        Raises DialsimError if the port is not available or the sandbox has been started before.
        """
        from dialsim.sandbox.session import Session

        if self._session is not None or self._over:
            raise DialsimError("a sandbox can only be started once: create another one")
        destinations = Destinations(self._webhook_url)
        self._session = Session(self._scenario, self._seed, self._port, destinations, self._state)
        return self

    def stop(self) -> None:
        """Cancel requests under way and release port and thread; may be called more than once."""
        self._over = True
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except DialsimError as fault:
            if error is None:
                raise
            # The exception of the block takes precedence: a fault of the server is often its
            # consequence.
            error.add_note(str(fault))

    # -- reading ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """URL of the served interface: `http://127.0.0.1:PORT`."""
        return self._running.url

    @property
    def api_key(self) -> str:
        """API key of the only organization; with several, use `api_keys`."""
        return self._running.api_keys[self._organization(None)]

    @property
    def api_keys(self) -> Mapping[str, str]:
        """The API key of every organization, by its name."""
        return self._running.api_keys

    @property
    def clock(self) -> RemoteClock:
        """The virtual clock: `clock.now`, `clock.advance(hours=3)`, `clock.run(speed=600)`."""
        return self._running.clock

    @property
    def faults(self) -> RemoteFaults:
        """Injected faults: `faults.strike_webhooks("timeout", 3)`, `faults.clear()`."""
        return self._running.faults

    @property
    def scripts(self) -> dict[str, str]:
        """Remaining steps of the scripts set by `script`, by number, in the same notation."""
        return {left["tel"]: left["script"] for left in self._ask("GET", _PEOPLE)}

    @property
    def campaigns(self) -> list[CampaignState]:
        """Return the state of every campaign, also deleted ones, in the order of the scenario."""
        from dialsim.sandbox.control.organizations import CampaignState

        return [CampaignState.model_validate(state) for state in self._ask("GET", _CAMPAIGNS)]

    def campaign(self, name: str) -> CampaignState:
        """Return the state of a campaign; raises DialsimError unless exactly one has the name."""
        from dialsim.sandbox.session import find

        return find(self.campaigns, name)

    def organization(self, name: str | None = None) -> CreatedOrganization:
        """Return the state of an organization; the name of the only one may be omitted."""
        from dialsim.sandbox.control.organizations import CreatedOrganization

        known = self._organization(name)
        state = self._ask("GET", self._path(known))
        return CreatedOrganization(**state, api_key=self.api_keys[known])

    @property
    def webhooks(self) -> Sequence[WebhookRow]:
        """POSTs made so far and payloads kept, in the order in which they left.

        Only the required pages of a long list are requested: its length, `webhooks[-1]` and
        `webhooks[:10]` take as long as for a short list.
        """
        from dialsim.sandbox.session import RemoteWebhooks

        return RemoteWebhooks(self._running.client)

    @property
    def requests(self) -> RemoteRequests:
        """Requests of clients, oldest first: `requests[-1]`, `requests.filter("POST")`.

        Contains the latest 2,000 requests, including the requests made by `schedule` and `pause`.
        """
        return self._running.requests

    def assert_called(
        self,
        method: str,
        path: str,
        *,
        times: int | None = None,
        body: object = None,
        status: int | str | None = None,
        organization: str | None = None,
    ) -> None:
        """Raise AssertionError unless clients made matching requests, `times` times or at least
        once. The arguments match requests as in `requests.filter`. The error lists the requests
        that were made, and the differences of requests that match in all but the body.
        """
        filters = {"status": status, "organization": organization}
        self._running.requests.assert_called(method, path, filters, body, times)

    def result(self) -> Result:
        """Return the result of the run so far, which later events do not change."""
        return Result(self._running.snapshot())

    def export(self, file: str | os.PathLike[str], *, api_keys: bool = False) -> Path:
        """Save the run so far as a new zip file: the folder of `dialsim run --out` (`result`).

        Masks API keys given in the scenario unless `api_keys` is true. Raises DialsimError if the
        file exists or cannot be written.
        """
        path = Path(file)
        draft = path.with_name(f".{path.name}.part")
        if path.exists():
            raise DialsimError(f"{path} is there already: give another path, or remove the file")
        query = "?apiKeys=true" if api_keys else ""
        packed = self._running.client.download(f"{PREFIX}/export{query}")
        try:
            draft.write_bytes(packed)
            # Renamed once it is complete: no reader finds an incomplete file under the final name.
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise DialsimError(f"{path} can't be written: {error.strerror}") from None
        return path

    # -- commands ---------------------------------------------------------------------------------

    def add_organization(
        self, organization: Mapping[str, object], like: str | None = None
    ) -> CreatedOrganization:
        """Add an organization, a separate tenant with a new key, until this sandbox stops.

        `organization` is a block as in a scenario file, without campaigns. Omitted settings are
        taken from the organization `like`, if given: agents, numbers, limit.
        """
        from dialsim.sandbox.control.organizations import CreatedOrganization

        block = {**organization, **({} if like is None else {"like": like})}
        return CreatedOrganization.model_validate(self._ask("POST", _ORGANIZATIONS, block))

    def add_agent(self, agent: Mapping[str, object], organization: str | None = None) -> str:
        """Add an agent, a block as in a scenario file, to an organization; returns its id."""
        block = {"organization": self._organization(organization), **agent}
        return str(self._ask("POST", f"{PREFIX}/agents", block)["id"])

    def add_campaign(
        self,
        campaign: Mapping[str, object],
        organization: str | None = None,
        *,
        csv: bytes | str | None = None,
    ) -> str:
        """Add a campaign after the campaigns of an organization; return its id (C11).

        `campaign` is a block as in a scenario file; `csv`, the content of a CSV, may replace its
        `recipients`. Without `schedule` the campaign is a DRAFT.
        """
        block = {"organization": self._organization(organization), **campaign}
        if csv is None:
            added = self._ask("POST", _CAMPAIGNS, block)
        else:
            content = csv.encode() if isinstance(csv, str) else csv
            query = {key: _in_query(value) for key, value in block.items()}
            added = self._running.client.upload(_CAMPAIGNS, content, query)
        return str(added["id"])

    def schedule(self, campaign: str, body: Mapping[str, object]) -> None:
        """Start a campaign with the body of a schedule request, as a client would (C1, C9)."""
        self._request(campaign, "schedule", body)

    def pause(self, campaign: str) -> None:
        """Pause a campaign, as a client would (C4)."""
        self._request(campaign, "pause")

    def resume(self, campaign: str) -> None:
        """Resume a campaign (C5)."""
        self._ask("POST", f"{_CAMPAIGNS}/{self.campaign(campaign).id}/resume")

    def cancel(self, campaign: str) -> None:
        """Cancel a campaign (C6)."""
        self._ask("POST", f"{_CAMPAIGNS}/{self.campaign(campaign).id}/cancel")

    def delete(self, campaign: str) -> None:
        """Delete a campaign (C8)."""
        self._ask("DELETE", f"{_CAMPAIGNS}/{self.campaign(campaign).id}")

    def reanalyze_call(self, call: str) -> None:
        """Analyze a delivered call again, named by its id (A5)."""
        self._ask("POST", f"{PREFIX}/calls/{call}/reanalyze")

    def resend_webhook(self, n: int) -> WebhookRow:
        """Send a webhook again, given its number (`webhooks[…].n`), and return its record."""
        from dialsim.sandbox.tables import WebhookRow

        return WebhookRow.model_validate(self._running.client.wait(f"{_WEBHOOKS}/{n}/resend"))

    def trigger(
        self,
        status: str | None = None,
        organization: str | None = None,
        *,
        script: str | None = None,
        agent: str | None = None,
        recipient: Mapping[str, object] | None = None,
        re_analysis: bool = False,
        url: str | None = None,
    ) -> TriggeredResult:
        """Send one result now, to the organization's URL or another, and return its record.

        `status` ("NO_ANSWER") sets how its call ended; the first step of a `script` ("answered 5s
        60s silent") sets it in more detail. The call is outside the simulation: the interface shows
        the call by its id, but nowhere else.
        """
        from dialsim.sandbox.control.traffic import TriggeredResult

        order = {
            "status": status,
            "script": script,
            "organization": self._organization(organization),
            "agent": agent,
            "recipient": recipient,
            "isReAnalysis": re_analysis or None,
            "url": url,
        }
        return TriggeredResult.model_validate(self._running.client.wait(f"{PREFIX}/trigger", order))

    def set_concurrency(self, value: int, organization: str | None = None) -> None:
        """Set maxConcurrentCalls of an organization; the name of the only one may be omitted."""
        self._change(organization, {"maxConcurrentCalls": value})

    def set_calling_allowed(self, allowed: bool, organization: str | None = None) -> None:
        """Allow or forbid an organization to start campaigns (403 at the schedule request)."""
        self._change(organization, {"callingAllowed": allowed})

    def set_webhook_url(self, url: str | None, organization: str | None = None) -> None:
        """Change the URL that an organization's results are sent to from the next one on (W6)."""
        self._change(organization, {"webhookUrl": url})

    def regenerate_api_key(self, organization: str | None = None) -> str:
        """Give an organization a new API key and return it; the old key is invalid at once."""
        return str(self._change(organization, {"regenerateApiKey": True})["apiKey"])

    def script(self, tel: str, script: str | None) -> None:
        """Assign a script to the next calls of a number, in any campaign, step by step (P6).

        The script replaces the rest of an earlier script. None removes the script.
        """
        self._ask("POST", _PEOPLE, {"tel": tel, "script": script})

    # -- the clock --------------------------------------------------------------------------------

    def advance_until(
        self,
        condition: Callable[[Sandbox], object] | None = None,
        *,
        campaign: str | None = None,
        call: str | None = None,
        status: str | None = None,
        webhooks: int | None = None,
        within: timedelta | None = None,
    ) -> datetime:
        """Move the clock until a condition holds, and return the new instant."""
        kinds = [condition is not None, status is not None, webhooks is not None]
        if sum(kinds) != 1 or (status is not None and (campaign is None) == (call is None)):
            raise DialsimError(
                "advance_until: give a condition, or the status of a campaign or a call, or a "
                "count of webhooks"
            )
        if condition is not None:
            return self.clock.advance_while(lambda: not condition(self), within)
        asked: dict[str, object] = {
            "until": "webhooks" if status is None else "status",
            "call": call,
        }
        asked |= {"campaign": None if campaign is None else self.campaign(campaign).id}
        return self.clock.advance_until(asked | {"status": status, "count": webhooks}, within)

    # -- states -----------------------------------------------------------------------------------

    def snapshot(self, name: str | None = None) -> str:
        """Store the current state under a name, by default `snapshot-1` and so on; return the name.

        Raises `Refused` for a taken name, or if there are a hundred snapshots.
        """
        return str(self._ask("POST", _SNAPSHOTS, {"name": name})["name"])

    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots, in the order in which they were taken."""
        return [state["name"] for state in self._ask("GET", _SNAPSHOTS)]

    def restore(self, name: str) -> None:
        """Restore the state of a snapshot; raises `Refused` for an unknown name.

        Afterwards the clock stands still. POSTs under way are broken off, and an advance by another
        thread raises `Refused`. POSTs that were under way at the snapshot leave again.
        """
        self._ask("POST", f"{_SNAPSHOTS}/{quote(name, safe='')}/restore")

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; raises `Refused` for an unknown name."""
        self._ask("DELETE", f"{_SNAPSHOTS}/{quote(name, safe='')}")

    def reset(self) -> None:
        """Return to the initial state, as `restore` does; snapshots stay."""
        self._ask("POST", f"{PREFIX}/reset")

    def fork(self) -> Sandbox:
        """Return another sandbox that starts in the current state, for trials without effect here.

        ```python
        with sandbox.fork() as other:
            other.set_concurrency(30)
            other.clock.advance(until="idle")
        ```

        The new sandbox has a separate port, and links to its files lead there. Its webhooks are not
        sent: each counts as answered with 200. It has no snapshots, and its clock stands still.
        """
        # Destinations are not passed on, as a fork sends nothing.
        other = Sandbox(self._scenario, seed=self._seed)
        other._state = self._running.state()
        return other

    def forecast(
        self, replications: int = 100, *, seed: int | None = None, jobs: int | None = None
    ) -> Forecast:
        """Forecast the campaigns from now on, by many runs, without changing the sandbox.

        Arguments and errors are the same as for `dialsim.forecast`.
        """
        from dialsim.experiments.forecast import forecast

        return forecast(self._running.remaining(), replications, seed=seed, jobs=jobs)

    # -- the rest ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self._session is None:
            state = "stopped" if self._over else "not started"
        else:
            state = f"at {self._session.url}, {format_instant(self._session.at)}"
        return f"<dialsim.Sandbox {self._scenario.name!r} {state}>"

    @property
    def _running(self) -> Session:
        if self._session is None:
            state = "was stopped" if self._over else "is not started: use it in a `with` block"
            raise DialsimError(f"the sandbox {state}")
        return self._session

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self._running.client.ask(method, path, body)

    def _request(self, name: str, action: str, body: object = None) -> None:
        """A request of the interface for a campaign, with its organization's key."""
        campaign = self.campaign(name)
        key = self._running.api_keys[campaign.organization]
        path = f"/api/campaign/{campaign.id}/{action}"
        self._running.client.ask("POST", path, body, api_key=key)

    def _change(self, organization: str | None, changes: dict[str, object]) -> Any:
        return self._ask("PATCH", self._path(self._organization(organization)), changes)

    def _path(self, organization: str) -> str:
        return f"{_ORGANIZATIONS}/{quote(organization, safe='')}"

    def _organization(self, name: str | None) -> str:
        names = [*self._running.api_keys]
        if name is None and len(names) == 1:
            return names[0]
        if name is None:
            raise DialsimError(f"name the organization: {', '.join(names)}")
        if name not in names:
            raise DialsimError(f"no organization {name!r}; there are: {', '.join(names)}")
        return name


def _in_query(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _read(source: Source, overrides: Overrides) -> Scenario:
    match source:
        case Scenario():
            return source.with_(*override_texts(overrides)) if overrides else source
        case str() if is_text(source):
            return loads(source, overrides=overrides)
    return load(source, overrides=overrides)
