"""A good log of everything that webhooks show, as entries of `webhooks.jsonl`."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import orjson

import dialsim
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS

Entry = dict[str, Any]

AGENT = {
    "name": "Reminder",
    "callerId": NUMBERS[0],
    "analysis": {
        "funnel": [{"step": "Greeted", "share": 1}, {"step": "Promised", "share": 0.4}],
        "fields": {
            "promise": {"type": "boolean", "required": True, "values": {"true": 0.4, "false": 0.6}}
        },
    },
}
RECEIVER = {"latency": "300ms", "errorRate": 0.2}
SKETCH = (
    Sketch(12, seed=7, setup_time=None, queue_limit="unlimited", queue_timeout="10m")
    .having(
        agents=[AGENT],
        retention={"audio": "1h", "personalData": "1d", "output": "60h"},
        webhook={"url": "https://example.test/hook", "receiver": RECEIVER},
    )
    .behaviour(
        "default",
        rates={
            "silent": 0.03, "agentError": 0.01, "analysisUnavailable": 0.03, "analysisFailed": 0.01,
        },
    )
    .campaign(
        "January", recipients={"count": 200}, agent="Reminder", end="Mon 19:00", max_attempts=3,
        retry_interval="15m", caller_ids=NUMBERS,
    )
    .at("Mon 18:00", "reanalyze", "January", share=0.3)
    .at("Wed 10:00", "reanalyze", "January", share=0.3)
    .at("Fri 10:00", "reanalyze", "January", share=0.3)
)  # fmt: skip
"""A bit of everything."""


@cache
def scenario() -> Scenario:
    return SKETCH.scenario()


@cache
def _lines() -> list[bytes]:
    file = io.BytesIO()
    dialsim.run(scenario()).write_webhooks(file)
    return file.getvalue().splitlines()


def entries(first: int | None = None) -> list[Entry]:
    """The first entries, or all, to be changed at will."""
    return [orjson.loads(line) for line in _lines()[:first]]


def written(folder: Path, log: list[Entry], name: str = "webhooks.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in log))
    return path
