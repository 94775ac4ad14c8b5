"""A good log of everything that webhooks show, as entries of `webhooks.jsonl`."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import orjson

import dialsim
from dialsim.scenario.scenario import Scenario

Entry = dict[str, Any]

SCENARIO = """
name: A bit of everything
seed: 7
engine: {queueLimit: unlimited, queueTimeout: 10m}
organizations:
  - name: Acme
    maxConcurrentCalls: 12
    retention: {audio: 1h, personalData: 1d, output: 60h}
    webhook: {url: https://example.test/hook, receiver: {latency: 300ms, errorRate: 0.2}}
    agents:
      - name: Reminder
        callerId: "021000001"
        analysis:
          funnel: [{step: Greeted, share: 1}, {step: Promised, share: 0.4}]
          fields:
            promise: {type: boolean, required: true, values: {"true": 0.4, "false": 0.6}}
    callerIds: ["021000001", "021000002", "021000003"]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 200}
        schedule:
          startDateTime: 2026-01-05T02:00:00Z
          endDateTime: 2026-01-05T12:00:00Z
          maxAttempts: 3
          retryInterval: 900000
          callerIds: ["021000001", "021000002", "021000003"]
    timeline:
      - {at: 2026-01-05T11:00:00Z, action: reanalyze, campaign: January, share: 0.3}
      - {at: 2026-01-07T03:00:00Z, action: reanalyze, campaign: January, share: 0.3}
      - {at: 2026-01-09T03:00:00Z, action: reanalyze, campaign: January, share: 0.3}
behaviours:
  default:
    rates: {silent: 0.03, agentError: 0.01, analysisUnavailable: 0.03, analysisFailed: 0.01}
"""


@cache
def scenario() -> Scenario:
    return dialsim.loads(SCENARIO)


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
