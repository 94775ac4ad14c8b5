"""The workload that is measured: one campaign of so many people, all pending at its start."""

from __future__ import annotations

import random
from pathlib import Path

from dialsim.scenario.loading import loads
from dialsim.scenario.scenario import Scenario

SLOTS, MANY_SLOTS = 30, 300
_SCENARIO = """
version: 1
name: Speed
organizations:
  - name: Acme
    maxConcurrentCalls: {slots}
    agents:
      - name: Reminder
        paramsSchema: {{amount: {{type: number, required: false}}}}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {recipients}
        schedule:
          startDateTime: "2026-01-05T02:00:00Z"
          maxAttempts: 3
          retryInterval: 3600000
"""


def workload(people: int, slots: int = SLOTS) -> Scenario:
    """`people` on so many slots: default behaviour and windows, 3 attempts an hour apart."""
    return loads(scenario_text(f"{{count: {people}}}", slots), name="speed.yaml")


def scenario_text(recipients: str, slots: int = SLOTS) -> str:
    """The scenario file, with `recipients` as its YAML."""
    return _SCENARIO.format(slots=slots, recipients=recipients)


def write_people(path: Path, rows: int) -> None:
    """A CSV of `rows` recipients with name, segment and a parameter."""
    chance = random.Random(1)
    numbers = chance.sample(range(800_000_000, 1_000_000_000), rows)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("tel,customerName,segment,agentParams.amount\n")
        for place, number in enumerate(numbers):
            segment = "vip" if chance.random() < 0.1 else "mass"
            file.write(f"0{number},คุณ {place},{segment},{chance.randrange(100, 9_000)}\n")
