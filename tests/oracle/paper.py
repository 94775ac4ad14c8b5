"""Small scenarios, and readings of them, as one writes them down on paper.

Time is written in seconds after Monday 10:00 in Thailand, which is when the clock starts and the
default window of these scenarios opens; the setup time is 2 s. A call is `person.call`.
"""

from __future__ import annotations

from typing import Any

from oracle.given import instant
from oracle.records import Reading
from oracle.scenarios import Scenario, iso

ZERO = instant("2026-01-05T03:00:00Z")


def at(seconds: float) -> str:
    return iso(ZERO + round(seconds * 1000))


def seconds(at_ms: int) -> str:
    return f"{(at_ms - ZERO) / 1000:.3f}".rstrip("0").rstrip(".")


def windows(*ranges: str) -> list[dict[str, Any]]:
    times = [dict(zip(("start", "end"), text.split("-"), strict=True)) for text in ranges]
    return [{"dayOfWeek": 1, "time": times}]


def campaign(name: str, *scripts: str, **body: Any) -> Scenario:
    people = [{"tel": f"080000000{i}", "script": text} for i, text in enumerate(scripts)]
    schedule = {"startDateTime": at(0), "timeWindows": windows("10:00-11:00"), **body}
    return {"name": name, "agent": "Agent", "recipients": people, "schedule": schedule}


def scenario(*campaigns: Scenario, limit: int = 1, timeline: Any = (), **engine: Any) -> Scenario:
    organization = {
        "name": "Acme",
        "maxConcurrentCalls": limit,
        "agents": [{"name": "Agent"}],
        "campaigns": list(campaigns),
        "timeline": [
            {"at": at(seconds), "action": name, **more} for seconds, name, more in timeline
        ],
    }
    return {
        "clock": {"start": at(0)},
        "engine": engine,
        "organizations": [organization],
        "behaviours": {"default": {"setupTime": "2s"}, "slow": {"setupTime": "5s"}},
    }


def calls(reading: Reading, *, of: str = "A") -> list[str]:
    return [
        f"{seconds(t)} {person}.{call} {before or 'new'}>{phase or after} {cause}"
        for t, _, name, person, call, before, after, phase, cause in reading.transitions
        if name == of
    ]


def dials(reading: Reading) -> list[str]:
    return [
        f"{seconds(row[0])} {row[2]} {row[3]}.{row[4]}"
        for row in reading.transitions
        if row[-1] == "dialled"
    ]


def life(reading: Reading) -> list[str]:
    return [
        f"{seconds(t)} {name} {before}>{after} {cause}"
        for t, _, name, before, after, cause in reading.campaigns
    ]


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]
