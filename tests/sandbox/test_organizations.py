"""Organizations under /_dialsim: how they stand, and changes of their settings."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key

from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

ACME = {
    "name": "Acme",
    "maxConcurrentCalls": 5,
    "slotsInUse": 1,
    "queueLength": 0,
    "callingAllowed": True,
    "webhookUrl": None,
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
    now = ACME | changes | {"id": state["id"]}
    assert state == now | {"apiKey": None}
    assert control(client, "GET", "/organizations/Acme").json() == now
    assert control(client, "PATCH", "/organizations/Acme", {"webhookUrl": None}).json() == (
        now | {"webhookUrl": None, "apiKey": None}
    )


def test_a_limit_binds_at_once() -> None:
    client = Client(SandboxCore(Sketch(slots=1).campaign("A", *["answered 5s 90s"] * 3).scenario()))
    counts = [
        ("GET", None),
        ("PATCH", {"maxConcurrentCalls": 2}),
        ("PATCH", {"maxConcurrentCalls": 0}),
    ]
    found = []
    for method, body in counts:
        state = control(client, method, "/organizations/Acme", body).json()
        found.append((state["slotsInUse"], state["queueLength"]))
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
