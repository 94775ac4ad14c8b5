"""Numbers and instants at their ends: served, or refused before anything has changed."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control

import dialsim
from dialsim.interface.instants import LAST_INSTANT
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

KEY = "acme_0123456789abcdef0123456789abcdef"
CAMPAIGN = "cccccccc-0000-4000-8000-000000000001"
ACCOUNT, CALLER = "AAAAAAAA-0000-4000-8000-00000000000A", "bbbbbbbb-0000-4000-8000-00000000000b"
MOST = 2**53 - 1
AMOUNT = 123456789012345678901234567890


def scenario(start: str = "Mon 08:00", **keys: Any) -> dialsim.Scenario:
    """A draft with numbers that no double holds; `keys` are of the organization."""
    account = {"id": ACCOUNT, "callerIds": [{"id": CALLER, "number": "021000009"}]}
    person = {
        "tel": "0812345678",
        "agentParams": {"amount": AMOUNT},
        "script": "answered 5s 90s",
    }
    return (
        Sketch(2, start=start, setup_time=None)
        .having(api_key=KEY, caller_ids=[], sip_accounts=[account], **keys)
        .agent(
            params_schema={"amount": {"type": "number", "default": AMOUNT}},
            analysis={"fields": {"size": {"type": "number", "values": {"1e20": 1}}}},
        )
        .campaign("January", person, id=CAMPAIGN, requested=None)
        .scenario()
    )


@pytest.fixture
def client() -> Client:
    return Client(SandboxCore(scenario()))


def ask(client: Client, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
    return client.ask(method, path, headers, None if body is None else json.dumps(body).encode())


def schedule(client: Client, **body: object) -> httpx.Response:
    return ask(client, "POST", f"/api/campaign/{CAMPAIGN}/schedule", body)


def webhooks(client: Client) -> list[dict[str, Any]]:
    return [row["body"] for row in control(client, "GET", "/webhooks").json()["webhooks"]]


def test_numbers_of_more_than_64_bits_are_served_as_json_has_them(client: Client) -> None:
    (agent,) = ask(client, "GET", "/api/agent/list").json()["data"]
    assert agent["paramsSchema"]["amount"]["default"] == 1.2345678901234568e29
    assert schedule(client, startDateTime="2026-01-05T02:00:00Z").status_code == 200
    control(client, "POST", "/clock/advance", {"by": "3h"})
    page = ask(client, "GET", f"/api/campaign/{CAMPAIGN}/recipients").json()
    (person,) = page["data"]["recipients"]
    assert person["agentParams"] == {"amount": 1.2345678901234568e29}
    (result,) = webhooks(client)
    found = result["payload"]["callResult"]["postCallAnalyticsResult"]
    assert found["size"]["value"] == 1e20


def test_as_many_attempts_as_json_has_exactly_are_served_and_no_more(client: Client) -> None:
    much = {"maxAttempts": MOST, "retryInterval": MOST}
    start = "2026-01-05T02:00:00Z"
    refused = schedule(client, startDateTime=start, **dict.fromkeys(much, 1e20))
    assert refused.status_code == 400
    assert refused.json()["errors"] == [f"{name} must not be greater than {MOST}" for name in much]
    assert schedule(client, startDateTime=start, **much).status_code == 200
    control(client, "POST", "/clock/advance", {"by": "3h"})
    (result,) = webhooks(client)
    assert {name: result["payload"]["campaign"][name] for name in much} == much


@pytest.mark.parametrize(
    ("start", "windows"),
    [
        ("9999-12-31T12:00:00Z", None),
        ("9999-12-28T03:00:00Z", [{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "10:00"}]}]),
        ("9999-12-31T23:58:00Z", [{"dayOfWeek": 6, "time": [{"start": "06:00", "end": "09:00"}]}]),
    ],
)
def test_a_campaign_at_the_end_of_time_leaves_the_clock_alone(
    client: Client, start: str, windows: object
) -> None:
    assert schedule(client, startDateTime=start, timeWindows=windows).status_code == 200
    assert control(client, "GET", "/clock").status_code == 200
    moved = control(client, "POST", "/clock/advance", {"to": "9999-12-31T23:59:59.999Z"})
    assert moved.status_code == 200
    clock = control(client, "GET", "/clock").json()
    assert (clock["now"], clock["nextEventAt"]) == ("9999-12-31T23:59:59.999Z", None)
    assert control(client, "GET", f"/campaigns/{CAMPAIGN}").status_code == 200


def test_what_would_come_after_the_year_9999_does_not_happen() -> None:
    late = scenario("9999-12-31T20:00:00Z", webhook={"url": "http://127.0.0.1:9/"})
    client = Client(SandboxCore(late))
    windows = [{"dayOfWeek": 6, "time": [{"start": "06:00", "end": "09:00"}]}]
    schedule(client, startDateTime="9999-12-31T23:59:00Z", timeWindows=windows)
    ends = control(client, "POST", "/clock/advance", {"to": "9999-12-31T23:59:59.999Z"})
    assert (ends.status_code, ends.json()["nextEventAt"]) == (200, None)
    calls = control(client, "GET", f"/campaigns/{CAMPAIGN}/calls").json()["calls"]
    (call,) = calls
    assert (call["status"], call["callEndedAt"]) == ("INITIATED", None)
    assert call["callStartedAt"].startswith("9999-12-31T23:59:0")
    page = client.ask("GET", "/_dialsim/", {"Host": "127.0.0.1:8400"})
    assert (page.status_code, "31 Dec 9999" in page.text) == (200, True)
    trace = client.core.simulation.run()
    assert (trace.idle, trace.end) == (True, LAST_INSTANT)


def test_a_start_before_1970_is_now(client: Client) -> None:
    assert schedule(client, startDateTime="0001-01-01").status_code == 200
    control(client, "POST", "/clock/advance", {"by": "3h"})
    (result,) = webhooks(client)
    assert result["payload"]["campaign"]["scheduleStartAt"] == "2026-01-05T01:00:00.000Z"


def test_a_history_of_more_attempts_than_anybody_is_called_is_refused(client: Client) -> None:
    def upload(count: int) -> httpx.Response:
        history = {
            "callAttempt": count,
            "latestCallStatus": "BUSY",
            "lastEndedAt": "2026-01-01T00:00:00Z",
        }
        person = {"tel": "0812345678", "agentParams": {"amount": 1}, "history": history}
        block = {"organization": "Acme", "agent": "Agent", "name": "N", "recipients": [person]}
        return control(client, "POST", "/campaigns", block)

    for count in (10**6 + 1, 3 * 10**9, 10**30):
        refused = upload(count)
        assert (refused.status_code, len(refused.json()["errors"])) == (400, 1)
        assert "callAttempt must not be greater than 1000000" in refused.json()["message"]
    added = upload(10**6)
    assert added.status_code == 201
    page = ask(client, "GET", f"/api/campaign/{added.json()['id']}/recipients").json()
    (person,) = page["data"]["recipients"]
    assert (person["callAttempt"], person["latestCallStatus"]) == (10**6, "BUSY")


def test_sip_ids_are_found_in_either_case(client: Client) -> None:
    sip = {"sipAccountId": ACCOUNT.lower(), "sipCallerId": CALLER.upper()}
    start = "2026-01-05T02:00:00Z"
    assert schedule(client, startDateTime=start, **sip).status_code == 200
    control(client, "POST", "/clock/advance", {"by": "3h"})
    calls = control(client, "GET", f"/campaigns/{CAMPAIGN}/calls").json()["calls"]
    assert [call["callerId"] for call in calls] == ["021000009"]
    (result,) = webhooks(client)
    assert result["payload"]["campaign"]["sipAccountId"] == ACCOUNT.lower()
