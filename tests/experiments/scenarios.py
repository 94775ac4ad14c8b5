"""Small scenarios for experiments, some with answers that a pencil finds."""

from __future__ import annotations

import json
from typing import Any

from dialsim.scenario.loading import loads
from dialsim.scenario.scenario import Scenario

LIMIT = "organizations.Acme.maxConcurrentCalls"
OPEN = [{"dayOfWeek": day, "time": [{"start": "00:00", "end": "23:59"}]} for day in range(1, 8)]
START = "2026-01-04T17:00:00Z"  # Monday 00:00 in Thailand


def crowd(
    people: int = 30,
    slots: int = 4,
    *,
    end: str | None = None,
    expires: str | None = None,
    attempts: int = 1,
    costs: bool = True,
    **behaviour: Any,
) -> Scenario:
    """One campaign that calls everybody from START on; by default calls last exactly a minute."""
    schedule = {
        "startDateTime": START,
        "timeWindows": OPEN,
        "maxAttempts": attempts,
        "retryInterval": 600_000,
    } | ({"endDateTime": expires} if expires else {})
    written = {
        "name": "Crowd",
        "seed": 20260105,
        "clock": {"start": START} | ({"end": end} if end else {}),
        "engine": {"queueTimeout": "2d"},
        "organizations": [
            {
                "name": "Acme",
                "maxConcurrentCalls": slots,
                "agents": [{"name": "Agent"}],
                "campaigns": [
                    {
                        "name": "January",
                        "agent": "Agent",
                        "recipients": {"count": people},
                        "schedule": schedule,
                    }
                ],
            }
        ],
        "behaviours": {
            "default": {
                "outcomes": {"answered": 1.0},
                "setupTime": "1s",
                "ringTime": {"answered": 0, "noAnswer": 0},
                "talkTime": "59s",
                **behaviour,
            }
        },
    }
    if costs:
        written["costs"] = {"currency": "THB", "perDial": 1, "perMinute": 2}
    return loads(json.dumps(written))


CHANCY: dict[str, Any] = {
    "outcomes": {"answered": 0.4, "noAnswer": 0.6},
    "ringTime": {"answered": 0, "noAnswer": "20s"},
    "talkTime": {"dist": "exponential", "mean": "60s"},
}
"""A behaviour full of chance."""
