"""One call analyzed again under /_dialsim (A5)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control

from dialsim.results.result import Result
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

PEOPLE = (
    "answered 5s 90s",
    "noAnswer 20s",
    "answered 5s 90s agentError",
    "answered 5s 90s analysisFailed",
)


@pytest.fixture
def client() -> Client:
    sketch = Sketch(lines=4, webhook_delay="5s").campaign("January", *PEOPLE)
    return Client(SandboxCore(sketch.scenario()))


def rows(client: Client) -> list[dict[str, Any]]:
    identifier = client.core.accounts[0].views[0].identifier
    found: list[dict[str, Any]] = control(client, "GET", f"/campaigns/{identifier}/calls").json()[
        "calls"
    ]
    return found


def reanalyze(client: Client, identifier: str) -> httpx.Response:
    return control(client, "POST", f"/calls/{identifier}/reanalyze")


def test_a5_a_delivered_call_is_analyzed_again_and_no_other_is(client: Client) -> None:
    client.core.simulation.advance(minutes=5)
    first = rows(client)[0]
    response = reanalyze(client, first["callId"].upper())
    assert (response.status_code, response.json()) == (200, first)
    client.core.simulation.advance(until="idle")
    client.core.simulation.advance(minutes=1)
    posts = Result(client.core.simulation.trace).webhooks
    again = [post["payload"] for post in posts.body if post["payload"]["isReAnalysis"]]
    assert [payload["call"]["id"] for payload in again] == [first["callId"]]


def test_a5_only_completed_calls_whose_first_post_is_out_can_be(client: Client) -> None:
    simulation, told = client.core.simulation, {}
    # set up 2 s, ringing 5 s, talking 90 s; the analysis takes 20 s, the POST leaves 5 s later
    for second in (96, 97, 117, 121, 122):
        simulation.advance(to=f"2026-01-05T02:{second // 60:02}:{second % 60:02}Z")
        told[second] = [reanalyze(client, row["callId"]) for row in rows(client)]
    going_on = "Cannot re-analyze a INITIATED call"
    early = "Cannot re-analyze a call whose result has not been delivered yet"
    lost = "Cannot re-analyze a NO_ANSWER call"
    spoilt = "Cannot re-analyze a call that is not analyzed"
    failed = "Cannot re-analyze a ANALYSIS_FAILED call"
    assert {at: [answer.json().get("message") for answer in told[at]] for at in told} == {
        96: [going_on, lost, going_on, going_on],
        97: [early, lost, spoilt, early],
        117: [early, lost, spoilt, failed],
        121: [early, lost, spoilt, failed],
        122: [None, lost, spoilt, failed],
    }
    refused = {(answer.status_code, answer.json()["code"]) for answer in told[97]}
    assert refused == {(409, "INVALID_CALL_STATE")}


@pytest.mark.parametrize(
    ("identifier", "status", "text"),
    [
        ("x", 400, "id must be a valid UUID"),
        ("cccccccc-0000-4000-8000-000000000001", 404, "Call not found"),
    ],
)
def test_a_call_that_is_not_there_is_refused(
    client: Client, identifier: str, status: int, text: str
) -> None:
    response = reanalyze(client, identifier)
    assert (response.status_code, response.json()["message"]) == (status, text)
    assert client.core.simulation.trace.reanalyses == []


def test_c8_calls_of_a_deleted_campaign_are_not_analyzed_again(client: Client) -> None:
    client.core.simulation.advance(minutes=5)
    first = rows(client)[0]
    client.core.simulation.delete("January")
    response = reanalyze(client, first["callId"])
    assert (response.status_code, response.json()["code"]) == (404, "CAMPAIGN_NOT_FOUND")
