"""Small scenarios for experiments, some with answers that a pencil finds."""

from __future__ import annotations

from typing import Any

from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch

LIMIT = "organizations.Acme.maxConcurrentCalls"
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
    """One campaign that calls all its people from START on; by default calls last exactly a
    minute.
    """
    always: dict[str, Any] = {"outcomes": {"answered": 1.0}, "setupTime": "1s", "talkTime": "59s"}
    always |= {"ringTime": {"answered": 0, "noAnswer": 0}}
    sketch = (
        Sketch(slots, start=START, end=end, seed=20260105, setup_time=None, queue_timeout="2d")
        .also(name="Crowd")
        .behaviour("default", **always | behaviour)
        .campaign(
            "January",
            recipients={"count": people},
            windows="daily 00:00-23:59",
            max_attempts=attempts,
            retry_interval="10m",
            **({"end": expires} if expires else {}),
        )
    )
    if costs:
        sketch = sketch.also(costs={"currency": "THB", "perDial": 1, "perMinute": 2})
    return sketch.scenario()


CHANCY: dict[str, Any] = {
    "outcomes": {"answered": 0.4, "noAnswer": 0.6},
    "ringTime": {"answered": 0, "noAnswer": "20s"},
    "talkTime": {"dist": "exponential", "mean": "60s"},
}
"""A behaviour full of chance."""
