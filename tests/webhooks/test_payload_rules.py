"""The checker of payloads itself: it must find what is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from webhooks.payload_rules import broken

GOLDEN = Path(__file__).parent / "golden"


def completed() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((GOLDEN / "completed.json").read_text())[0]["body"]
    return body


def put(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    place = changed
    *parents, last = path.split(".")
    for key in parents:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def test_a_good_body_breaks_no_rule() -> None:
    assert broken(completed()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("type", "CALL"),
        ("payload.isReAnalysis", None),
        ("payload.agentName", "Somebody"),
        ("payload.call.id", "1"),
        ("payload.call.sessionId", None),
        ("payload.call.callStatus", "ANALYSIS_FAILED"),
        ("payload.call.callStartedAt", None),
        ("payload.call.callEndedAt", "2026-01-05T02:00:00Z"),
        ("payload.call.callDuration", 90.0),
        ("payload.call.errorMessage", ...),
        ("payload.recipient.tel", "08xxxxxx01"),
        ("payload.recipient.callAttempt", "1"),
        ("payload.recipient.latestCallStatus", None),
        ("payload.recipient.agentParams", None),
        ("payload.agent.paramsSchema", []),
        ("payload.campaign.scheduleEndAt", ...),
        ("payload.campaign.retryInterval", "0"),
        ("payload.campaign.status", "READY"),
        ("payload.callResult", None),
        ("payload.callResult.version", "v3"),
        ("payload.callResult.fixedAttr.funnel.value", "Elsewhere"),
        ("payload.callResult.postCallAnalyticsResult.error", {"type": "string"}),
        ("payload.recordUrl", None),
        ("payload.transcriptFileUrl", None),
        ("payload.dataExpired.audio", True),
        ("payload.dataExpired.personalData", True),
        ("payload.dataExpired.output", True),
        ("payload.more", 1),
    ],
)
def test_a_body_with_one_thing_wrong_breaks_a_rule(path: str, value: Any) -> None:
    assert broken(put(completed(), path, value))
