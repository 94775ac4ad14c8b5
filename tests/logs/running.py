"""A campaign that runs in a sandbox, to be read over HTTP; scenarios with behaviours from a log."""

from __future__ import annotations

import json
from typing import Any

import yaml

import dialsim
from dialsim.testing import Sketch

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


def january(people: int = 250, lines: int = 2, **engine: Any) -> Sketch:
    """A campaign of so many people, for a sandbox."""
    params = {"amount": {"type": "number", "required": True}}
    return (
        Sketch(lines, setup_time=None, **engine)
        .having(
            api_key=KEY, caller_ids=NUMBERS, agents=[{"name": "Reminder", "paramsSchema": params}]
        )
        .campaign("January", recipients=people_of(people), agent="Reminder", **SCHEDULE)
    )


def people_of(count: int) -> dict[str, Any]:
    """Generate people with values for the agent's parameters."""
    return {"count": count, "agentParams": {"amount": 100.5}}


def with_behaviours(sketch: Sketch, block: str) -> dialsim.Scenario:
    """Return a scenario file with its behaviours replaced."""
    said = json.loads(sketch.text)
    del said["behaviours"]
    return dialsim.loads(yaml.safe_dump(said) + block)


def campaign_id(sandbox: dialsim.Sandbox) -> str:
    return sandbox.campaigns[0].id
