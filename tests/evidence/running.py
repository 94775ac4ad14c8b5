"""A campaign that runs in a sandbox, to be read over HTTP, and the truth about it."""

from __future__ import annotations

import json
from typing import Any

import dialsim

KEY = "test_0123456789abcdef0123456789abcdef"
START = "2026-01-05T02:00:00Z"  # Monday 09:00 in Thailand
NUMBERS = ["021000001", "021000002"]
SCHEDULE: dict[str, Any] = {
    "startDateTime": START,
    "endDateTime": "2026-01-10T12:00:00Z",
    "maxAttempts": 3,
    "retryInterval": 3_600_000,
    "callerIds": NUMBERS,
    "timeWindows": [
        {"dayOfWeek": day, "time": [{"start": "09:00", "end": "11:00"}]} for day in range(1, 6)
    ],
}


def campaign_scenario(people: int = 250, lines: int = 2) -> dict[str, Any]:
    agent = {
        "name": "Reminder",
        "paramsSchema": {"amount": {"type": "number", "required": True}},
    }
    campaign = {
        "name": "January",
        "agent": "Reminder",
        "recipients": {"count": people, "agentParams": {"amount": 100.5}},
        "schedule": SCHEDULE,
    }
    organization = {
        "name": "Acme",
        "apiKey": KEY,
        "maxConcurrentCalls": lines,
        "callerIds": NUMBERS,
        "agents": [agent],
        "campaigns": [campaign],
    }
    return {"name": "Truth", "clock": {"start": START}, "organizations": [organization]}


def text(scenario: dict[str, Any]) -> str:
    return json.dumps(scenario)


def campaign_id(sandbox: dialsim.Sandbox) -> str:
    return sandbox.campaigns[0].id
