# ruff: noqa: E501 - requests and what is told of them are read line by line
"""Contents of requests are parsed or rejected by name: content types, parameters, properties."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key
from tests.sandbox.described import DOCUMENT, OF_THE_SANDBOX, OPERATIONS, require_as_described

HOME = {"Host": "127.0.0.1:8400"}
DRAFT = "/api/campaign/cccccccc-0000-4000-8000-000000000001"
RUNNING = "cccccccc-0000-4000-8000-000000000003"
MOVE = b'{"by": "1h"}'
CSV = b"tel\n0890000001\n"
IN_QUERY = "/_dialsim/campaigns?organization=Acme&agent=Survey&name=New"


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


def typed(kind: str | None) -> dict[str, str]:
    return HOME if kind is None else HOME | {"Content-Type": kind}


# -- content types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (None, "Content-Type must be application/json, but there is none"),
        ("", "Content-Type must be application/json, but there is none"),
        ("text/plain", 'Content-Type must be application/json, not "text/plain"'),
        (
            "application/x-www-form-urlencoded",  # what curl -d sends
            'Content-Type must be application/json, not "application/x-www-form-urlencoded"',
        ),
        ("application/json-patch+json", 'Content-Type must be application/json, not "application/json-patch+json"'),
        ("text/csv", 'Content-Type must be application/json, not "text/csv"'),
        ("application/json; charset=utf-16", 'charset must be utf-8, not "utf-16"'),
        ('application/json;charset="windows-874"', 'charset must be utf-8, not "windows-874"'),
        ("application/json; charset=klingon", 'charset must be utf-8, not "klingon"'),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_dialsim/clock/advance"),
        ("PUT", "/_dialsim/clock"),
        ("PATCH", "/_dialsim/organizations/Acme"),
        ("POST", "/_dialsim/people"),
        ("POST", "/_dialsim/faults"),
    ],
)
def test_a_body_of_another_content_type_is_refused_by_name(
    client: Client, method: str, path: str, kind: str | None, text: str
) -> None:
    response = client.ask(method, path, typed(kind), MOVE)
    assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert response.json()["errors"] == [text]
    require_as_described(method, path, response)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf8"',
        "application/json; charset=us-ascii",
        "application/json; odata=verbose",
    ],
)
def test_json_is_read_with_its_parameters(client: Client, kind: str) -> None:
    response = client.ask("POST", "/_dialsim/clock/advance", typed(kind), MOVE)
    assert response.json()["now"] == "2026-01-05T05:00:00.000Z"


def test_a_packed_body_is_refused_by_name(client: Client) -> None:
    for kind, path in (("application/json", "/_dialsim/clock/advance"), ("text/csv", IN_QUERY)):
        headers = typed(kind) | {"Content-Encoding": "gzip"}
        response = client.ask("POST", path, headers, b"\x1f\x8b")
        assert response.status_code == 415
        assert response.json()["errors"] == ['Content-Encoding must be left out, not "gzip"']
        headers["Content-Encoding"] = "identity"
        assert client.ask("POST", path, headers, b"{}").status_code == 400


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            None,
            "Content-Type must be application/json or text/csv or application/octet-stream, but there is none",
        ),
        (
            "text/plain",
            'Content-Type must be application/json or text/csv or application/octet-stream, not "text/plain"',
        ),
        ("text/csv; charset=windows-874", 'charset must be utf-8, not "windows-874"'),
    ],
)
def test_an_upload_of_another_content_type_is_refused_by_name(
    client: Client, kind: str | None, text: str
) -> None:
    response = client.ask("POST", IN_QUERY, typed(kind), CSV)
    assert (response.status_code, response.json()["errors"]) == (415, [text])
    require_as_described("POST", IN_QUERY, response)


def test_a_csv_is_read_with_its_charset(client: Client) -> None:
    response = client.ask("POST", IN_QUERY, typed("text/csv; header=present; charset=UTF-8"), CSV)
    assert response.status_code == 201


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json-seq"]
)
def test_a_schedule_request_of_another_content_type_is_refused_by_name(
    client: Client, kind: str | None
) -> None:
    headers = {"X-API-Key": key("Acme")} | ({} if kind is None else {"Content-Type": kind})
    body = b'{"startDateTime": "2026-01-06T02:00:00Z"}'
    response = client.ask("POST", f"{DRAFT}/schedule", headers, body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    said = "but there is none" if kind is None else f'not "{kind}"'
    assert response.json()["errors"] == [f"Content-Type must be application/json, {said}"]


# -- what nobody asks for --------------------------------------------------------------------------


def request_of(name: str) -> tuple[str, str]:
    """Method and path of an operation that there is, ids filled in."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] == name:
                named = (
                    "Acme" if "/organizations/" in path else "1" if "/faults/" in path else RUNNING
                )
                return method.upper(), path.replace("{id}", named).replace("{n}", "1")
    raise AssertionError(name)


STEERING = [name for name in OF_THE_SANDBOX if name not in ("getRecording", "getTranscript")]


@pytest.mark.parametrize("name", STEERING)
def test_parameters_that_nobody_asks_for_are_refused(client: Client, name: str) -> None:
    method, path = request_of(name)
    body = b"{}" if "requestBody" in OPERATIONS[name] else None
    response = client.ask(method, f"{path}?Page=2&foo=", typed("application/json"), body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == [
        "property Page should not exist",
        "property foo should not exist",
    ]
    require_as_described(method, path, response)


def test_what_stands_in_the_query_beside_a_csv_stands_in_the_body_of_json(client: Client) -> None:
    block = {"organization": "Acme", "name": "New", "agent": "Survey", "recipients": []}
    body = json.dumps(block).encode()
    response = client.ask("POST", IN_QUERY, typed("application/json"), body)
    assert response.status_code == 400
    assert response.json()["errors"] == [
        f"property {name} should not exist" for name in ("organization", "agent", "name")
    ]


@pytest.mark.parametrize(
    "name", [name for name in STEERING if "requestBody" not in OPERATIONS[name]]
)
def test_a_body_that_nobody_asks_for_is_refused(client: Client, name: str) -> None:
    method, path = request_of(name)
    response = client.ask(method, path, typed("application/json"), b'{"at": "2026-01-06"}')
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == ["body must be left out"]
    require_as_described(method, path, response)


def test_an_empty_object_is_as_good_as_no_body(client: Client) -> None:
    for body in (None, b"", b"{}"):
        response = client.ask("GET", "/_dialsim/clock", typed("application/json"), body)
        assert response.status_code == 200


# -- everything at once ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "errors"),
    [
        ("POST", "/faults", {}, ["next or lasts must be given", "one of webhooks and api must be given"]),
        ("POST", "/faults", {"api": "slow"}, ["next or lasts must be given", "delay is required where api is slow"]),
        ("POST", "/faults", {"webhooks": "late", "api": "slow", "delay": "1s", "status": 500, "next": 0}, [
            "next must not be less than 1",
            "one of webhooks and api must be given",
        ]),
        ("POST", "/faults", {"webhooks": "late", "next": 1, "status": 500, "delay": "2s", "path": "/api"}, [
            "path goes with api alone",
            "status goes with api error alone",
            "delay goes with api slow, api slowBody or webhooks delayed alone",
        ]),
        # an unknown kind has no further errors on its fields
        ("POST", "/faults", {"api": "slwo", "delay": "2s"}, ["api must be error, limit, drop, slow or slowBody", "next or lasts must be given"]),
        ("POST", "/faults", {"api": "slwo", "campaign": RUNNING, "next": 1}, [
            "api must be error, limit, drop, slow or slowBody",
            "campaign goes with webhooks alone",
        ]),
        ("POST", "/faults", {"webhooks": "late", "next": 1, "organization": "Delta", "campaign": "x"}, [
            'organization "Delta" is not known; known here: Acme, Beta, Gamma',
            'campaign "x" is not the id of a campaign',
        ]),
        ("POST", "/clock/advance", {"too": "x"}, [
            "property too should not exist",
            "one of to, by and until must be given",
        ]),
        ("POST", "/clock/advance", {"to": "x", "by": "1h"}, [
            'to must be an instant with an offset or Z, such as 2026-01-05T01:00:00Z or 2026-01-05T08:00:00+07:00, not "x"',
            "one of to, by and until must be given",
        ]),
        ("PUT", "/clock", {"mode": "manual", "speed": 0}, [
            "speed must be greater than 0",
            "speed must be left out where mode is manual",
        ]),
        ("PUT", "/clock", {"speed": 0}, ["mode is required", "speed must be greater than 0"]),
        ("PATCH", "/organizations/Acme", {"maxConcurrent": 5}, [
            "property maxConcurrent should not exist",
            "at least one of maxConcurrentCalls, callingAllowed, webhookUrl, regenerateApiKey must be given",
        ]),
        ("POST", "/people", {}, ["tel is required", "script is required"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_or_missing_is_told_at_once(
    client: Client, method: str, path: str, body: Any, errors: list[str]
) -> None:
    response: httpx.Response = control(client, method, path, body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors
