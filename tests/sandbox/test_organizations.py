"""Organizations under /_dialsim: how they stand, and changes of their settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key

import dialsim
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Receiver, Sketch

ACME = {
    "name": "Acme",
    "maxConcurrentCalls": 5,
    "linesInUse": 1,
    "queueLength": 0,
    "callingAllowed": True,
    "webhookUrl": None,
    "results": "kept",
}

KNOWN = "maxConcurrentCalls, callingAllowed, webhookUrl, regenerateApiKey"
URL = "be a URL that begins with http:// or https://"


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


def test_organizations_are_shown_without_their_keys(client: Client) -> None:
    listed = control(client, "GET", "/organizations")
    assert listed.status_code == 200
    assert [state["name"] for state in listed.json()] == ["Acme", "Beta", "Gamma"]
    assert b"0123456789abcdef" not in listed.content
    first = listed.json()[0]
    assert first == ACME | {"id": first["id"]}


def test_an_organization_is_found_by_id_in_either_case_and_by_name(client: Client) -> None:
    known = control(client, "GET", "/organizations/Acme").json()
    for named in (known["id"], known["id"].upper()):
        assert control(client, "GET", f"/organizations/{named}").json() == known
    unknown = control(client, "GET", "/organizations/acme")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "ORGANIZATION_NOT_FOUND")
    assert unknown.json()["message"] == "Organization not found"
    assert control(client, "POST", "/organizations/Acme").headers["allow"] == "GET, HEAD, PATCH"


def test_settings_are_changed_together(client: Client) -> None:
    changes = {
        "maxConcurrentCalls": 3,
        "callingAllowed": False,
        "webhookUrl": "http://127.0.0.1:9000/hook",
    }
    state = control(client, "PATCH", "/organizations/Acme", changes).json()
    now = ACME | changes | {"id": state["id"], "results": "sent"}
    assert state == now | {"apiKey": None}
    assert control(client, "GET", "/organizations/Acme").json() == now
    assert control(client, "PATCH", "/organizations/Acme", {"webhookUrl": None}).json() == (
        now | {"webhookUrl": None, "results": "kept", "apiKey": None}
    )


def test_a_limit_binds_at_once() -> None:
    client = Client(SandboxCore(Sketch(lines=1).campaign("A", *["answered 5s 90s"] * 3).scenario()))
    counts = [
        ("GET", None),
        ("PATCH", {"maxConcurrentCalls": 2}),
        ("PATCH", {"maxConcurrentCalls": 0}),
    ]
    found = []
    for method, body in counts:
        state = control(client, method, "/organizations/Acme", body).json()
        found.append((state["linesInUse"], state["queueLength"]))
    assert found == [(1, 1), (2, 1), (2, 1)]


def test_null_leaves_everything_but_the_url_as_it_is(client: Client) -> None:
    changes = {"maxConcurrentCalls": None, "callingAllowed": False}
    state = control(client, "PATCH", "/organizations/Beta", changes).json()
    assert (state["maxConcurrentCalls"], state["callingAllowed"]) == (1, False)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, [f"at least one of {KNOWN} must be given"]),
        ([], ["body must be an object"]),
        ({"maxConcurrentCalls": -1}, ["maxConcurrentCalls must not be less than 0"]),
        ({"maxConcurrentCalls": 10**7}, ["maxConcurrentCalls must not be greater than 1000000"]),
        ({"maxConcurrentCalls": "3"}, ["maxConcurrentCalls must be a whole number"]),
        ({"callingAllowed": 1}, ["callingAllowed must be true or false"]),
        ({"webhookUrl": "ftp://host/"}, [f"webhookUrl must {URL}"]),
        ({"webhookUrl": ""}, ["webhookUrl must not be empty"]),
        ({"regenerateApiKey": "yes"}, ["regenerateApiKey must be true or false"]),
        (
            {"name": "Other", "callingAllowed": "no", "maxConcurrentCalls": 5},
            ["property name should not exist", "callingAllowed must be true or false"],
        ),
    ],
)  # fmt: skip
def test_a_change_that_makes_no_sense_changes_nothing(
    client: Client, body: Any, errors: list[str]
) -> None:
    before = control(client, "GET", "/organizations").json()
    response = control(client, "PATCH", "/organizations/Acme", body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors
    assert control(client, "GET", "/organizations").json() == before


def test_a_regenerated_key_is_told_once_and_the_old_one_is_wrong_at_once(client: Client) -> None:
    old, other = key("Acme"), key("Beta")
    made = control(client, "PATCH", "/organizations/Acme", {"regenerateApiKey": True}).json()
    new = made["apiKey"]
    assert new.startswith("acme_")
    assert len(new) == len(old)
    answers = {
        sent: client.ask("GET", "/api/agent/list", {"X-API-Key": sent})
        for sent in (old, new, other)
    }
    assert answers[old].status_code == 401
    assert answers[old].json()["code"] == "INVALID_API_KEY"
    assert answers[new].status_code == answers[other].status_code == 200
    again = control(client, "PATCH", "/organizations/Acme", {"regenerateApiKey": True}).json()
    assert again["apiKey"] not in (old, new)
    assert client.ask("GET", "/api/agent/list", {"X-API-Key": new}).status_code == 401
    # the same run makes the same keys
    elsewhere = Client(exchange_of_the_corpus())
    path = "/organizations/Acme"
    assert control(elsewhere, "PATCH", path, {"regenerateApiKey": True}).json()["apiKey"] == new


# -- added at run time -----------------------------------------------------------------------------

WORLD = Sketch(lines=3).campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
CALLED = {"tel": "0812345678", "script": "answered 5s 60s"}
NOW = {"startDateTime": "2026-01-05T02:00:00Z"}


def test_a_tenant_has_its_own_key_agents_campaigns_and_results() -> None:
    with Receiver() as receiver, dialsim.Sandbox(WORLD.scenario()) as sandbox:
        sandbox.clock.advance(minutes=3)
        made = sandbox.add_organization(
            {"name": "Tenant 1", "webhook": {"url": receiver.url}}, like="Acme"
        )
        assert (made.name, made.max_concurrent_calls, made.webhook_url) == (
            "Tenant 1",
            3,
            receiver.url,
        )
        assert made == sandbox.organization("Tenant 1")
        assert sandbox.api_keys["Tenant 1"] == made.api_key != sandbox.api_keys["Acme"]
        sandbox.add_agent({"name": "Newest"}, "Tenant 1")
        listed = httpx.get(f"{sandbox.url}/api/agent/list", headers={"X-API-Key": made.api_key})
        assert [agent["name"] for agent in listed.json()["data"]] == ["Newest", "Agent"]
        campaign = {"name": "May", "agent": "Newest", "recipients": [CALLED], "schedule": NOW}
        sandbox.add_campaign(campaign, "Tenant 1")
        sandbox.clock.advance(until="idle")
        [result] = receiver.requests
        assert result.json["payload"]["agentName"] == "Newest"
        assert {post.organization for post in sandbox.webhooks} == {"Acme", "Tenant 1"}
        assert [part.name for part in sandbox.result().summary.organizations] == [
            "Acme",
            "Tenant 1",
        ]


@pytest.mark.slow
def test_an_added_organization_is_in_the_export(tmp_path: Path) -> None:
    with dialsim.Sandbox(WORLD.scenario()) as sandbox:
        sandbox.add_organization({"name": "Tenant 1"}, like="Acme")
        campaign = {"name": "May", "agent": "Agent", "recipients": [CALLED], "schedule": NOW}
        sandbox.add_campaign(campaign, "Tenant 1")
        sandbox.clock.advance(until="idle")
        file = sandbox.export(tmp_path / "run.zip")
    with ZipFile(file) as archive:
        assert any(b"Tenant 1" in archive.read(name) for name in archive.namelist())


def test_added_organizations_and_agents_are_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    client = Client(begin(file, WORLD.scenario()))
    added = control(client, "POST", "/organizations", {"name": "T", "like": "Acme"}).json()
    agent = control(client, "POST", "/agents", {"organization": "T", "name": "Newest"}).json()
    campaign = {"organization": "T", "name": "May", "agent": "Newest", "recipients": [CALLED]}
    assert control(client, "POST", "/campaigns", campaign | {"schedule": NOW}).status_code == 201
    control(client, "PATCH", "/organizations/T", {"maxConcurrentCalls": 7})
    asked = [("GET", f"/_dialsim{path}") for path in ("/organizations", "/campaigns", "/clock")]
    asked.append(("GET", "/api/agent/list"))
    headers = {"X-API-Key": added["apiKey"], "Host": "127.0.0.1"}
    before = [client.ask(*one, headers).content for one in asked]
    assert agent["id"].encode() in before[-1]
    assert client.core.journal is not None
    client.core.journal.close()
    again = Client(resume(file))
    assert [again.ask(*one, headers).content for one in asked] == before
    assert again.core.journal is not None
    again.core.journal.close()


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/organizations", {"name": "T"}, "maxConcurrentCalls is required"),
        ("/organizations", [], "body must be an object"),
        (
            "/organizations",
            {"name": "Acme", "like": "Acme"},
            'name "Acme" must be unique, but organizations.0',
        ),
        (
            "/organizations",
            {"name": "T", "like": "Nobody"},
            'organization "Nobody" is not known; known here',
        ),
        (
            "/organizations",
            {"name": "T", "maxConcurrentCalls": 1, "x": 1},
            "x is not a known key; known here",
        ),
        (
            "/organizations",
            {"name": "T", "like": "Acme", "campaigns": [{}]},
            "campaigns must be empty in an added organization",
        ),
        (
            "/organizations",
            {"name": "T", "like": "Acme", "apiKey": "x"},
            "apiKey must be a prefix that ends",
        ),
        (
            "/organizations",
            {"name": "T", "like": "Acme", "apiKey": key("Beta")},
            '"beta_',
        ),
        ("/agents", {"organization": "Acme", "name": "Survey"}, 'name "Survey" must be unique'),
        (
            "/agents",
            {"organization": "Acme", "name": "A", "voiceKey": "nobody"},
            'voiceKey "nobody" is no voice; known here: ',
        ),
        (
            "/agents",
            {"organization": "Acme", "name": "A", "behaviour": "x"},
            'behaviour "x" is no behaviour',
        ),
    ],
)
def test_what_can_not_be_added_changes_nothing(
    client: Client, path: str, body: Any, message: str
) -> None:
    before = control(client, "GET", "/organizations").content
    response = control(client, "POST", path, body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert message in response.json()["message"]
    assert control(client, "GET", "/organizations").content == before


def test_a_key_that_was_made_for_another_organization_is_refused() -> None:
    client = Client(SandboxCore(WORLD.scenario()))
    taken = {"name": "T", "maxConcurrentCalls": 1, "apiKey": client.core.api_key(0)}
    response = control(client, "POST", "/organizations", taken)
    assert response.json()["message"] == "apiKey must be unique, but another organization has it"
    assert len(client.core.accounts) == 1


def test_the_page_shows_an_organization_that_was_added(client: Client) -> None:
    home = {"Host": "127.0.0.1"}
    client.ask("GET", "/_dialsim/", home)
    control(client, "POST", "/organizations", {"name": "Tenant <1>", "like": "Acme"})
    assert "Tenant &lt;1&gt;" in client.ask("GET", "/_dialsim/", home).text
