"""Random settings of the engine, and campaigns whose logs may show them."""

from __future__ import annotations

import random
from typing import Any

from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch

WINDOWS = "Mon-Fri 09:00-12:00 13:00-17:00"
SETUP = {"dist": "uniform", "low": "1s", "high": "3s"}
URL = {"url": "https://example.test/hook"}


def settings(number: int) -> dict[str, Any]:
    """The settings that a log was made with; what is left out is at its default."""
    draw = random.Random(f"settings {number}")
    chosen: dict[str, Any] = {
        "order": draw.choice(["due", "freshFirst", "retriesFirst"]),
        "sharing": draw.choice(["roundRobin", "fifo", "priority", "weighted", "deadline"]),
    }
    if draw.random() < 0.6:
        chosen["queue_timeout"] = f"{draw.randint(20, 600)}s"
    if draw.random() < 0.6:
        chosen["queue_limit"] = draw.choice(["unlimited", draw.randint(1, 30), draw.randint(1, 30)])
    if draw.random() < 0.4:
        chosen["release_interval"] = f"{draw.randint(5, 240)}s"
    if draw.random() < 0.5:
        chosen["calls_per_second"] = round(draw.uniform(0.1, 3), 2)
    return chosen


def scenario(number: int, engine: dict[str, Any]) -> Scenario:
    """One to three campaigns of different length, begin, end, priority and weight."""
    draw = random.Random(f"scenario {number}")
    sketch = Sketch(draw.randint(2, 8), seed=number + 1, setup_time=SETUP, **engine)
    sketch = sketch.having(webhook=URL)
    for name in "ABC"[: draw.choice([1, 2, 2, 3, 3])]:
        sketch = sketch.campaign(
            name, recipients={"count": draw.randint(60, 200)}, agent=name,
            start=f"Mon 09:{draw.randint(0, 30):02}", end=f"Tue {draw.randint(11, 17)}:00",
            windows=WINDOWS, max_attempts=draw.randint(1, 4),
            retry_interval=f"{draw.randint(10, 60)}m", priority=draw.randint(1, 3),
            weight=draw.randint(1, 4),
        )  # fmt: skip
    return sketch.scenario()
