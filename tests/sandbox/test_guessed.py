"""The endpoints that the interface names without showing them: off, or guesses that say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator
from tests.sandbox.asking import Client
from tests.sandbox.described import DOCUMENT, GUESSED

import dialsim
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

WORLD = (
    Sketch(lines=2)
    .campaign("January", "answered 5s 60s", "busy 1s", "noAnswer 25s")
    .campaign("Big", *["busy 1s"] * 150)
    .organization("Beta", 1)
    .campaign("Other", "busy 1s")
)
PATHS = {
    "/api/campaign/{id}/resume": "post",
    "/api/campaign/{id}/cancel": "post",
    "/api/campaign/{id}/calls": "get",
    "/api/call/{callId}/record-url": "get",
}


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(WORLD.text, ["service.guessed=true"]) as sandbox:
        yield sandbox


def ask(sandbox: dialsim.Sandbox, method: str, template: str, query: str = "", **ids: str) -> Any:
    """The answer, which is as described."""
    headers = {"X-API-Key": sandbox.api_keys["Acme"]}
    url = f"{sandbox.url}{template.format(**ids)}{query}"
    answer = httpx.request(method, url, headers=headers, timeout=60, verify=False)
    described = GUESSED["paths"][template][method.lower()]["responses"][str(answer.status_code)]
    schema = described["content"]["application/json"]["schema"]
    whole = {"components": GUESSED["components"], "allOf": [schema]}
    Draft202012Validator(whole, validate_formats=True).validate(answer.json())
    return answer.json()


def test_without_being_asked_for_they_are_not_there() -> None:
    client = Client(SandboxCore(WORLD.scenario()))
    campaign = client.core.accounts[0].views[0].identifier
    headers = {"X-API-Key": client.core.api_key(0)}
    for path, method in PATHS.items():
        asked = path.replace("{id}", campaign).replace("{callId}", campaign)
        answer = client.ask(method.upper(), asked, headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert not PATHS.keys() & DOCUMENT["paths"].keys()
    assert client.ask("GET", "/openapi.json").json() == DOCUMENT


def test_they_are_marked_as_guesses_in_the_description(sandbox: dialsim.Sandbox) -> None:
    assert httpx.get(f"{sandbox.url}/openapi.json").json() == GUESSED
    marked = {
        path: method
        for path, methods in GUESSED["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] == ["guessed"]
    }
    assert marked == PATHS
    for path, method in PATHS.items():
        assert GUESSED["paths"][path][method]["description"].endswith("(A guess.)")
    assert [tag["name"] for tag in GUESSED["tags"]] == ["interface", "sandbox", "guessed"]


def test_a_campaign_is_resumed_and_cancelled(sandbox: dialsim.Sandbox) -> None:
    january = sandbox.campaign("January").id
    resume, cancel = (f"/api/campaign/{{id}}/{kind}" for kind in ("resume", "cancel"))
    refused = ask(sandbox, "POST", resume, id=january)
    assert (refused["statusCode"], refused["code"]) == (409, "INVALID_CAMPAIGN_STATE")
    assert refused["message"] == "Cannot resume a RUNNING campaign"
    sandbox.pause("January")
    assert ask(sandbox, "POST", resume, id=january) == {
        "success": True,
        "message": "Campaign status updated to RUNNING successfully",
        "data": {"id": january, "status": "RUNNING"},
    }
    done = ask(sandbox, "POST", cancel, id=january)
    assert done["data"] == {"id": january, "status": "CANCELLED"}
    assert sandbox.campaign("January").status == "CANCELLED"
    assert ask(sandbox, "POST", cancel, id=january)["message"] == (
        "Cannot cancel a CANCELLED campaign"
    )


def test_calls_are_listed_newest_first_as_the_call_endpoint_shows_them(
    sandbox: dialsim.Sandbox,
) -> None:
    sandbox.clock.advance(minutes=30)
    calls = "/api/campaign/{id}/calls"
    data = ask(sandbox, "GET", calls, id=sandbox.campaign("January").id)["data"]
    assert (data["totalCalls"], data["totalPages"], data["page"]) == (3, 1, 1)
    assert [call["callStatus"] for call in data["calls"]] == ["NO_ANSWER", "BUSY", "COMPLETED"]
    headers = {"X-API-Key": sandbox.api_keys["Acme"]}
    one = httpx.get(f"{sandbox.url}/api/call/{data['calls'][2]['id']}", headers=headers)
    assert one.json()["data"] == data["calls"][2]
    big = sandbox.campaign("Big").id
    pages = [ask(sandbox, "GET", calls, f"?page={page}", id=big)["data"] for page in (1, 2, 3)]
    assert [len(page["calls"]) for page in pages] == [100, 50, 0]
    assert len({call["id"] for page in pages for call in page["calls"]}) == 150
    assert ask(sandbox, "GET", calls, "?page=0", id=big)["code"] == "VALIDATION_FAILED"


def test_a_fresh_link_leads_to_the_recording_for_an_hour(sandbox: dialsim.Sandbox) -> None:
    sandbox.clock.advance(hours=5)
    link = "/api/call/{callId}/record-url"
    reached, _, missed = sandbox.result().calls.query("campaign == 'January'").itertuples()
    url = ask(sandbox, "GET", link, callId=reached.call_id)["data"]["recordUrl"]
    assert httpx.get(url).headers["content-type"] == "audio/wav"
    sandbox.clock.advance(hours=1)
    assert httpx.get(url).json()["code"] == "LINK_EXPIRED"
    refused = ask(sandbox, "GET", link, callId=missed.call_id)
    assert (refused["statusCode"], refused["code"]) == (404, "RECORDING_NOT_FOUND")
    sandbox.delete("January")
    assert ask(sandbox, "GET", link, callId=reached.call_id)["code"] == "RECORDING_NOT_FOUND"


@pytest.mark.parametrize("path", PATHS)
def test_malformed_and_foreign_ids_are_as_everywhere(sandbox: dialsim.Sandbox, path: str) -> None:
    method = PATHS[path].upper()
    other = sandbox.campaign("Other").id
    name = "callId" if "callId" in path else "id"
    assert ask(sandbox, method, path, **{name: "x"})["message"] == f"{name} must be a valid UUID"
    missing = "CALL_NOT_FOUND" if name == "callId" else "CAMPAIGN_NOT_FOUND"
    assert ask(sandbox, method, path, **{name: other})["code"] == missing
