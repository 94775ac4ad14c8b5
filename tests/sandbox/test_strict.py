"""The strict mode: schedule requests that the interface leaves open are refused (C9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sandbox.asking import Client

from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

DRAFT = Sketch(slots=1).campaign("January", "busy 1s", requested=None)
START = {"startDateTime": "2026-01-05T02:00:00Z"}


def answered(sketch: Sketch, body: dict[str, Any], *, strict: bool = False) -> tuple[int, str]:
    """Ask for a schedule; return the status, and the message of a refusal."""
    core = SandboxCore(sketch.scenario([f"service.strict={str(strict).lower()}"]))
    [view] = core.accounts[0].views
    headers = {"X-API-Key": core.api_key(0), "Content-Type": "application/json"}
    path = f"/api/campaign/{view.identifier}/schedule"
    response = Client(core).ask("POST", path, headers, json.dumps(body).encode())
    return response.status_code, "" if response.is_success else response.json()["message"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
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
    ],
)
def test_c9_what_the_interface_leaves_open_is_refused_in_the_strict_mode_alone(
    change: dict[str, Any], says: str
) -> None:
    assert answered(DRAFT, START | change) == (200, "")
    assert answered(DRAFT, START | change, strict=True) == (400, says)


def test_c9_what_the_interface_allows_is_taken_in_the_strict_mode_too() -> None:
    whole = {"endDateTime": None, "maxAttempts": 2, "retryInterval": 300_000}
    for body in (START, START | whole, START | {"retryInterval": 0}):
        assert answered(DRAFT, body, strict=True) == (200, "")


def test_c9_who_may_not_call_is_told_so_before_duplicates_are_looked_at() -> None:
    body = START | {"removeDuplicates": True}
    off = "Duplicate call alert is not enabled for this organization"
    assert answered(DRAFT, body) == (400, off)
    assert answered(DRAFT.having(calling_allowed=False), body)[0] == 403
    broken = body | {"ttsVoiceKeys": ["nobody"]}
    assert answered(DRAFT.having(calling_allowed=False), broken) == (400, "Unknown voice: nobody")
