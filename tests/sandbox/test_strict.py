"""The strict mode: schedule requests that the interface leaves open are refused (C9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sandbox.asking import Client

from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.failures import INVALID_PAGE
from dialsim.testing import Sketch

DRAFT = Sketch(lines=1).campaign("January", "busy 1s", requested=None)
START = {"startDateTime": "2026-01-05T02:00:00Z"}


def client_of(sketch: Sketch, *, strict: bool) -> Client:
    return Client(SandboxCore(sketch.scenario([f"service.strict={str(strict).lower()}"])))


def asked(client: Client, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
    """Ask as the organization; return the status, and the message of a refusal."""
    headers = {"X-API-Key": client.core.api_key(0), "Content-Type": "application/json"}
    response = client.ask(method, path, headers, body)
    return response.status_code, "" if response.is_success else response.json()["message"]


def answered(sketch: Sketch, body: dict[str, Any], *, strict: bool = False) -> tuple[int, str]:
    """Ask for a schedule; return the status, and the message of a refusal."""
    client = client_of(sketch, strict=strict)
    path = f"/api/campaign/{client.core.accounts[0].views[0].identifier}/schedule"
    return asked(client, "POST", path, json.dumps(body).encode())


ACCOUNT = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"
NUMBER = "c0a5b3d2-9c4e-4d6f-8a43-51d0f5b7e921"
SIP = {"id": ACCOUNT, "callerIds": [{"id": NUMBER, "number": "021000009"}]}
RICH = DRAFT.having(caller_ids=["021000002"], sip_accounts=[SIP])


def day(*spans: str, number: object = 1) -> dict[str, Any]:
    ranges = [dict(zip(("start", "end"), span.split("-"), strict=True)) for span in spans]
    return {"dayOfWeek": number, "time": ranges}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"maxAttempts": 1, "retryInterval": 300_000},
            "retryInterval must be at least 300000 ms (5 minutes) (or 0)",
        ),
        ({"retryInterval": 300_000}, "retryInterval must be at least 300000 ms (5 minutes) (or 0)"),
        (
            {"startDateTime": "2026-01-05T09:00:00+07:00"},
            "startDateTime must be a valid ISO 8601 date string",
        ),
        (
            {"endDateTime": "2026-02-05T09:00:00"},
            "endDateTime must be a valid ISO 8601 date string",
        ),
        ({"callerIds": None}, "callerIds must not be null"),
        ({"maxAttempts": 1.0}, "maxAttempts must be an integer number"),
        ({"endDateTime": "2026-02-05T09:00Z"}, "endDateTime must be a valid ISO 8601 date string"),
        (
            {"startDateTime": "2026-01-05T01:00:00Z", "endDateTime": "2026-01-05T02:00:00Z"},
            "Start date must be before end date",
        ),
        (
            {"timeWindows": [day("09:00-12:00", number=1.0)]},
            "timeWindows.0.dayOfWeek must be an integer number",
        ),
        (
            {"timeWindows": [day("09:00-12:00"), day("13:00-15:00")]},
            "All timeWindows's days must be unique",
        ),
        (
            {"timeWindows": [day("13:00-15:00", "09:00-13:01")]},
            "Time ranges must not overlap for day 1",
        ),
        ({"callerIds": ["021000002"] * 2}, "All callerIds's elements must be unique"),
        ({"ttsVoiceKeys": ["malee"] * 2}, "All ttsVoiceKeys's elements must be unique"),
        ({"sipAccountId": ACCOUNT}, "sipCallerId must be given with sipAccountId"),
        (
            {"sipAccountId": ACCOUNT, "sipCallerId": NUMBER.upper()},
            "sipCallerId must be a UUID",
        ),
    ],
)
def test_c9_what_the_interface_leaves_open_is_refused_in_the_strict_mode_alone(
    change: dict[str, Any], says: str
) -> None:
    assert answered(RICH, START | change) == (200, "")
    assert answered(RICH, START | change, strict=True) == (400, says)


def test_c9_what_the_interface_allows_is_taken_in_the_strict_mode_too() -> None:
    whole = {"endDateTime": None, "maxAttempts": 2, "retryInterval": 300_000}
    windows = {"timeWindows": [day("09:00-12:00", "12:00-15:00"), day("09:00-12:00", number=7)]}
    sip = {"sipAccountId": ACCOUNT, "sipCallerId": NUMBER, "callerIds": ["021000002"]}
    off = {"maxAttempts": 1, "retryInterval": 0}
    exact = {"startDateTime": "2026-01-05T02:00:00.250Z", "ttsVoiceKeys": ["malee"]}
    for more in ({}, whole, {"retryInterval": 0}, off, windows, sip, exact):
        assert answered(RICH, START | more, strict=True) == (200, "")


def test_c9_who_may_not_call_is_told_so_before_duplicates_are_looked_at() -> None:
    body = START | {"removeDuplicates": True}
    off = "Duplicate call alert is not enabled for this organization"
    assert answered(DRAFT, body) == (400, off)
    assert answered(DRAFT.having(calling_allowed=False), body)[0] == 403
    broken = body | {"ttsVoiceKeys": ["nobody"]}
    assert answered(DRAFT.having(calling_allowed=False), broken) == (400, "Unknown voice: nobody")


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("GET", "/api/agent/list?page=1", None, "property page should not exist"),
        ("GET", "/api/campaign/{id}/recipients?sort=tel", None, "property sort should not exist"),
        ("GET", "/api/campaign/{id}/recipients?page=01", None, INVALID_PAGE.text),
        ("GET", "/api/agent/list", b'{"a": 1}', "body must be left out"),
        ("POST", "/api/campaign/{id}/pause", b'{"a": 1}', "body must be left out"),
        ("GET", "/api/campaign/{ID}/recipients", None, "id must be a valid UUID"),
    ],
)
def test_requests_without_a_body_are_as_narrow_in_the_strict_mode(
    method: str, path: str, body: bytes | None, says: str
) -> None:
    for strict in (False, True):
        client = client_of(Sketch(lines=1).campaign("January", "busy 1s"), strict=strict)
        one = client.core.accounts[0].views[0].identifier
        found = asked(client, method, path.format(id=one, ID=one.upper()), body)
        assert found == ((400, says) if strict else (200, ""))


def test_strict_takes_the_limit_that_is_ignored_and_ids_of_rfc_9562_alone() -> None:
    client = client_of(Sketch(lines=1).campaign("January", "busy 1s"), strict=True)
    one = client.core.accounts[0].views[0].identifier
    path = f"/api/campaign/{one}/recipients?limit=5&page=1"
    assert asked(client, "GET", path) == (200, "")
    nil = "00000000-0000-0000-0000-000000000000"
    assert asked(client, "GET", f"/api/call/{nil}") == (400, "callId must be a valid UUID")
    unknown = "00000000-0000-4000-8000-000000000000"
    assert asked(client, "GET", f"/api/call/{unknown}") == (404, "Call not found")
