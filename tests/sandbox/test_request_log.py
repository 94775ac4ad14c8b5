"""The log of requests: what is in it, what is masked, how it is filtered, and assertions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key

import dialsim
from dialsim.sandbox.request_log import (
    MOST_LOGGED_BYTES,
    MOST_REQUESTS,
    Captured,
    masked,
    path_pattern,
)
from dialsim.sandbox.session import differences
from dialsim.testing import Sketch

AGENTS = "/api/agent/list"
DRAFT = "cccccccc-0000-4000-8000-000000000001"
RUNNING = "cccccccc-0000-4000-8000-000000000003"
SCHEDULE = f"/api/campaign/{DRAFT}/schedule"
ACME = {"X-API-Key": key("Acme")}
JSON = {"Content-Type": "application/json"}
WORLD = Sketch(lines=1).campaign("January", "busy 1s", requested=None)


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(WORLD.scenario()) as sandbox:
        yield sandbox


def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    response = control(client, "GET", f"/requests{query}")
    assert response.status_code == 200, response.text
    rows: list[dict[str, Any]] = response.json()["requests"]
    return rows


def numbers(client: Client, query: str) -> list[int]:
    return [row["n"] for row in listed(client, query)]


# -- what is in it ---------------------------------------------------------------------------------


def test_a_request_is_logged_with_what_was_sent_and_answered(client: Client) -> None:
    body = {"startDateTime": "2026-01-05T02:00:00Z", "maxAttempts": 0}
    answer = client.ask("POST", f"{SCHEDULE}?a=1&a=2", ACME | JSON, json.dumps(body).encode())
    [row] = listed(client)
    assert (row["n"], row["at"], row["organization"]) == (1, "2026-01-05T04:00:00.000Z", "Acme")
    assert (row["method"], row["path"], row["query"]) == ("POST", SCHEDULE, "a=1&a=2")
    assert (row["status"], row["fault"]) == (400, None)
    assert (row["body"], row["bodyCut"]) == (body, False)
    assert row["answer"] == answer.json()
    assert row["headers"]["content-type"] == "application/json"
    assert row["tookMs"] > 0


def test_whoever_is_refused_is_logged_and_the_control_plane_is_not(client: Client) -> None:
    client.ask("GET", AGENTS)
    client.ask("GET", AGENTS, {"X-API-Key": "wrong"})
    client.ask("GET", "/v1/nowhere", ACME)
    client.ask("DELETE", AGENTS, ACME)
    client.ask("GET", "/voice-demo/catalog")
    for path in ("/openapi.json", "/", "/_dialsim/", "/_dialsim"):
        client.ask("GET", path, {"Host": "127.0.0.1"})
    control(client, "GET", "/clock")
    found = [(row["path"], row["status"], row["organization"]) for row in listed(client)]
    assert found == [
        (AGENTS, 401, None),
        (AGENTS, 401, None),
        ("/v1/nowhere", 404, None),
        (AGENTS, 405, "Acme"),
        ("/voice-demo/catalog", 200, None),
    ]


def test_an_answer_by_a_fault_names_it_and_what_was_sent_is_logged(client: Client) -> None:
    control(client, "POST", "/faults", {"api": "error", "next": 1})
    client.ask("POST", SCHEDULE, ACME | JSON, b'{"maxAttempts": 2}')
    [row] = listed(client)
    assert (row["status"], row["fault"], row["body"]) == (503, 1, {"maxAttempts": 2})


def test_of_long_bodies_the_beginning_is_kept(client: Client) -> None:
    text = json.dumps({"note": "ก" * MOST_LOGGED_BYTES}, ensure_ascii=False).encode()
    client.ask("POST", SCHEDULE, ACME | JSON, text)
    [row] = listed(client)
    assert row["bodyCut"]
    assert text.decode().startswith(row["body"])
    assert len(row["body"].encode()) > MOST_LOGGED_BYTES - 4


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"", None),
        (b"plain", "plain"),
        (b"[1, {}]", [1, {}]),
        (b"\xff\xfe", None),
        (b"a\0b", None),
        (b"RIFF\x00", None),
    ],
)
def test_what_is_no_json_is_a_text_and_what_is_no_text_is_null(sent: bytes, shown: object) -> None:
    captured = Captured()
    for place in range(len(sent)):
        captured.add(sent[place : place + 1])
    assert (captured.shown(), captured.size) == (shown, len(sent))


def test_the_oldest_are_forgotten_and_pages_are_of_a_hundred(client: Client) -> None:
    scope = {"method": "GET", "path": AGENTS, "query_string": b"", "headers": []}
    for _ in range(MOST_REQUESTS + 7):
        client.core.requests.begin(scope, 0)
    page = control(client, "GET", "/requests?page=2").json()
    assert (page["total"], page["totalPages"]) == (MOST_REQUESTS, 20)
    assert [row["n"] for row in page["requests"]] == [*range(108, 208)]
    assert control(client, "DELETE", "/requests").json() == {"cleared": MOST_REQUESTS}
    assert client.core.requests.find(8) is None
    client.ask("GET", AGENTS, ACME)
    page = control(client, "GET", "/requests").json()
    assert page["total"] == 1
    assert page["requests"][0]["n"] == MOST_REQUESTS + 8


# -- secrets ---------------------------------------------------------------------------------------


def test_no_secret_is_shown_anywhere(client: Client) -> None:
    secret = key("Acme")
    headers = ACME | JSON | {"Authorization": "Bearer s3cr3t-token", "Cookie": "session=s3cr3t"}
    body = {
        "apiKey": secret,
        "password": "s3cr3t",
        "note": f"use {secret}!, please: {secret}",
        "callerIds": [{"token": "s3cr3t"}],
    }
    path = f"/api/{secret}?token=s3cr3t&signature=s3cr3t&x={secret}"
    client.ask("POST", path, headers, json.dumps(body).encode())
    client.ask("GET", AGENTS, {"X-API-Key": "s3cr3t"})
    client.ask("POST", SCHEDULE, ACME | JSON, json.dumps(body).encode())
    shown = control(client, "GET", "/requests").text
    page = client.ask("GET", "/_dialsim/", {"Host": "127.0.0.1"}).text
    opened = client.ask("GET", "/_dialsim/page/requests/3", {"Host": "127.0.0.1"}).text
    for text in (shown, page, opened):
        assert "0123456789abcdef" not in text
        assert "s3cr3t" not in text
    last = listed(client)[-1]
    assert last["headers"]["x-api-key"] == "acme_" + "x" * 32
    assert last["body"]["note"] == f"use acme_{'x' * 32}, please: acme_{'x' * 32}"


def test_what_is_no_secret_is_left_as_it_is() -> None:
    body = {"ttsVoiceKeys": ["malee"], "voiceKey": "malee", "id": RUNNING, "n": 1, "x": None}
    assert masked(body) == body


# -- which are meant -------------------------------------------------------------------------------


def test_filters_hold_together(client: Client) -> None:
    client.ask("GET", AGENTS, ACME)
    client.ask("GET", AGENTS, {"X-API-Key": key("Beta")})
    client.ask("GET", AGENTS)
    client.ask("POST", f"/api/campaign/{RUNNING}/pause", ACME)
    client.ask("GET", f"/api/campaign/{RUNNING}/recipients?page=x", ACME)
    assert numbers(client, "?method=post") == [4]
    assert numbers(client, f"?path={AGENTS}") == [1, 2, 3]
    assert numbers(client, "?path=/api/campaign/*/pause") == [4]
    assert numbers(client, "?path=/api/campaign/%7Bid%7D/*") == [4, 5]
    assert numbers(client, "?path=/api/*") == []
    assert numbers(client, "?path=/api/**&status=2xx") == [1, 2, 4]
    assert numbers(client, "?status=401") == [3]
    assert numbers(client, "?status=none") == []
    assert numbers(client, "?organization=Acme&method=GET") == [1, 5]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?status=6xx", "status must be an HTTP status, or 1xx to 5xx, or none"),
        ("?method=", "method must not be empty"),
        ("?verb=GET", "property verb should not exist"),
        (
            "?organization=acme",
            'organization "acme" is not known; known here: Acme, Beta, Gamma',
        ),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(client: Client, query: str, message: str) -> None:
    response = control(client, "GET", f"/requests{query}")
    assert (response.status_code, response.json()["message"]) == (400, message)


@given(st.text(st.characters(exclude_characters="*{}"), min_size=1))
def test_a_path_without_wild_parts_is_itself_alone(path: str) -> None:
    assert path_pattern(path).fullmatch(path)
    assert not path_pattern(path).fullmatch(path + "x")


# -- from Python -----------------------------------------------------------------------------------


def test_requests_are_read_filtered_and_cleared_from_python(sandbox: dialsim.Sandbox) -> None:
    with httpx.Client(base_url=sandbox.url, headers={"X-API-Key": sandbox.api_key}) as asking:
        asking.get(AGENTS)
        asking.get("/api/call/x")
    requests = sandbox.requests
    assert len(requests) == 2
    assert [one.status for one in requests] == [200, 400]
    assert requests[-1].answer["code"] == "INVALID_ID"
    assert requests[0].at == sandbox.clock.now
    assert requests[0].received_at > requests[0].at
    assert requests[:1] == requests.filter(path=AGENTS) == requests.filter(status=200)
    assert repr(requests) == (
        "<dialsim requests: ['#1 GET /api/agent/list, answered 200', "
        "'#2 GET /api/call/x, answered 400']>"
    )
    requests.clear()
    assert [*requests] == []


def test_an_assertion_counts_what_was_asked_for(sandbox: dialsim.Sandbox) -> None:
    sandbox.schedule("January", {"startDateTime": "2026-01-05T02:00:00Z", "maxAttempts": 1})
    path = "/api/campaign/{id}/schedule"
    sandbox.assert_called("POST", path)
    sandbox.assert_called("post", path, times=1, body={"maxAttempts": 1}, status="2xx")
    sandbox.assert_called("POST", path, times=0, body={"maxAttempts": True})
    sandbox.assert_called("DELETE", "/api/**", times=0)
    with pytest.raises(AssertionError) as failed:
        sandbox.assert_called("POST", path, times=0, organization="Acme")
    assert str(failed.value).startswith("expected 0, found 1 of method: POST, path: /api/")


def test_an_assertion_that_fails_shows_what_was_asked_for(sandbox: dialsim.Sandbox) -> None:
    with pytest.raises(AssertionError, match="There are no requests in the log") as failed:
        sandbox.assert_called("GET", AGENTS)
    with httpx.Client(base_url=sandbox.url, headers={"X-API-Key": sandbox.api_key}) as asking:
        for path in (AGENTS, "/voice-demo/catalog", "/nowhere"):
            asking.get(path)
        asking.post(f"/api/campaign/{DRAFT}/schedule", json={"maxAttempts": 2})
    wanted = {"maxAttempts": 3, "startDateTime": "now"}
    with pytest.raises(AssertionError) as failed:
        sandbox.assert_called("POST", "/api/campaign/{id}/schedule", body=wanted, times=2)
    assert str(failed.value).splitlines() == [
        "expected 2, found 0 of method: POST, path: /api/campaign/{id}/schedule, "
        "body: {'maxAttempts': 3, 'startDateTime': 'now'}",
        f"    #4 POST /api/campaign/{DRAFT}/schedule, answered 400",
        "        body.maxAttempts is 2, not 3",
        "        body.startDateTime is missing",
    ]
    with pytest.raises(AssertionError) as failed:
        sandbox.assert_called("PUT", AGENTS)
    assert str(failed.value).splitlines() == [
        "expected requests, found 0 of method: PUT, path: /api/agent/list",
        "    #1 GET /api/agent/list, answered 200",
        "    #2 GET /voice-demo/catalog, answered 200",
        "    #3 GET /nowhere, answered 404",
        f"    #4 POST /api/campaign/{DRAFT}/schedule, answered 400",
    ]


@pytest.mark.parametrize(
    ("wanted", "found", "says"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, []),
        ({"a": [1, 2]}, {"a": [1]}, ["body.a has 1 items, not 2"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2, "c": 0}]}, ["body.a.0.b is 2, not 1"]),
        ({"a": None}, {}, ["body.a is missing"]),
        ({"a": 1}, {"a": True}, ["body.a is True, not 1"]),
        ({}, None, ["body is None, not an object"]),
        ("x", "y", ["body is 'y', not 'x'"]),
    ],
)
def test_a_body_is_compared_part_by_part(wanted: object, found: object, says: list[str]) -> None:
    assert [*differences(wanted, found)] == says


# -- on the page -----------------------------------------------------------------------------------


def test_the_page_lists_requests_newest_first_and_opens_them(client: Client) -> None:
    client.ask("GET", f"{AGENTS}?q=<b>", ACME)
    client.ask("POST", SCHEDULE, ACME | JSON, b'{"maxAttempts": "<i>"}')
    home = {"Host": "127.0.0.1"}
    page = client.ask("GET", "/_dialsim/", home).text
    assert page.index('id="request-2"') < page.index('id="request-1"')
    opened = client.ask("GET", "/_dialsim/page/requests/2", home).text
    assert "&lt;i&gt;" in opened
    assert "VALIDATION_FAILED" in opened
    assert client.ask("GET", "/_dialsim/page/requests/9", home).status_code == 404
