"""Logs of a service and of people that are not dialsim's: another dialler, other recipients.

Nothing of the engine or of its model of answering is used. Each recipient has daily habits: a
worker answers before work, at noon and in the evening, a person at home all day, a night worker
late. Lines, phones and outages are drawn by the caller. Logs are bodies of the webhook, as a
receiver stores them.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

MONDAY = 1_767_546_000_000  # 2026-01-05 00:00 Thai time
HOUR = 3_600_000
_LIVES = ("office", "home", "night")
_AWAKE = {
    "office": {8: 2.5, 12: 1.6, 13: 1.0, 17: 1.4, 18: 2.5, 19: 2.5, 20: 2.2},
    "home": dict.fromkeys(range(8, 18), 1.4),
    "night": {15: 1.4, 16: 2.0, 17: 2.5, 18: 2.5, 19: 2.0, 20: 2.0},
}
_ASLEEP = {"office": 0.03, "home": 0.15, "night": 0.02}
"""Factors on the rate of answers, by hour of the day, and at the other hours."""


@dataclass(slots=True)
class Service:
    """A campaign of one organization, and the people whom it calls.

    `rhythm` mixes a flat day (0) with the hours of people's lives (1). `setup` and `ring` are
    ranges in seconds, `outage` is the index of a day on which 60 % of calls fail. `tail` of the
    conversations are ten times as long, `ring_tail` of the unanswered calls ring three times as
    long.
    """

    people: int = 1500
    lines: int = 6
    attempts: int = 3
    retry_ms: int = 4 * HOUR
    opens: int = 9
    closes: int = 19
    rhythm: float = 0.0
    setup: tuple[float, float] = (1.0, 3.0)
    ring: float = 28.0
    talk: float = 60.0
    tail: float = 0.0
    ring_tail: float = 0.0
    dead: float = 0.04
    answered: float = 0.4
    outage: int | None = None
    spread: float = 0.5
    days: tuple[int, ...] = field(default=(1, 2, 3, 4, 5, 6, 7))

    @classmethod
    def drawn(cls, seed: int, **given: Any) -> Service:
        """Return a service with random phones, lines and people."""
        chance = np.random.default_rng([31, seed])
        people, attempts = int(chance.integers(500, 1000)), int(chance.integers(2, 5))
        opens = int(chance.integers(8, 11))
        closes = opens + int(chance.integers(7, 11))
        setup = float(chance.uniform(0.0, 4.0))
        made: dict[str, Any] = {
            "people": people,
            "attempts": attempts,
            "lines": max(2, round(people * attempts * 0.7 / (60 * (closes - opens) * 3))),
            "retry_ms": int(chance.integers(2, 9)) * HOUR // 2,
            "opens": opens,
            "closes": closes,
            "setup": (setup, setup + float(chance.uniform(0.0, 4.0))),
            "ring": float(chance.uniform(15.0, 45.0)),
            "talk": float(chance.uniform(40.0, 100.0)),
            "tail": float(chance.choice([0.0, 0.02])),
            "dead": float(chance.uniform(0.01, 0.1)),
            "answered": float(chance.uniform(0.25, 0.55)),
            "spread": float(chance.uniform(0.2, 1.0)),
        }
        return cls(**{**made, **given})

    def scenario(self) -> dict[str, Any]:
        """The campaign as its planner knows it: list, lines, schedule. Nothing of people."""
        return {
            "name": "Other service",
            "clock": {"start": _text(MONDAY)},
            "organizations": [
                {
                    "name": "Log",
                    "maxConcurrentCalls": self.lines,
                    "callerIds": ["021000001"],
                    "agents": [{"name": "Caller"}],
                    "campaigns": [
                        {
                            "name": "Other",
                            "agent": "Caller",
                            "recipients": {"count": self.people},
                            "schedule": self._schedule(),
                        }
                    ],
                }
            ],
        }

    def _schedule(self) -> dict[str, Any]:
        span = {"start": f"{self.opens:02}:00", "end": f"{self.closes:02}:00"}
        return {
            "startDateTime": _text(MONDAY),
            "maxAttempts": self.attempts,
            "retryInterval": self.retry_ms,
            "timeWindows": [{"dayOfWeek": day, "time": [span]} for day in self.days],
            "callerIds": ["021000001"],
        }

    def write(self, file: Path, seed: int) -> None:
        """Write the whole campaign's bodies, in the order of their arrival."""
        bodies = sorted(self._bodies(seed), key=lambda one: one[0])
        file.write_text("".join(json.dumps(body) + "\n" for _, body in bodies), "utf-8")

    def _bodies(self, seed: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Call people one by one whenever a line is free; the longest due goes first."""
        chance = np.random.default_rng([seed, 77])
        lives = chance.choice(_LIVES, self.people, p=[0.5, 0.35, 0.15])
        taste = np.exp(self.spread * chance.normal(size=self.people))
        is_dead = chance.random(self.people) < self.dead
        waiting = [(MONDAY, who, 1) for who in range(self.people)]
        free = [MONDAY] * self.lines
        heapq.heapify(free)
        while waiting:
            at = heapq.heappop(free)
            due = waiting[0][0]
            at = self._open(max(at, due))
            due, who, attempt = heapq.heappop(waiting)
            hour = (at - MONDAY) // HOUR % 24
            chance_of = self._chance(str(lives[who]), float(taste[who]), hour)
            end, ring, talk = self._end(chance, chance_of, bool(is_dead[who]), at)
            over = at + int(1000 * ring)
            ended = over + int(1000 * talk)
            heapq.heappush(free, ended)
            yield ended + 2_000, self._body(who, attempt, end, over, ended)
            if end != "COMPLETED" and attempt < self.attempts:
                heapq.heappush(waiting, (ended + self.retry_ms, who, attempt + 1))

    def _open(self, at: int) -> int:
        """The first instant from `at` on inside calling hours."""
        while True:
            day, time = divmod(at - MONDAY, 24 * HOUR)
            if day % 7 + 1 in self.days and time < self.closes * HOUR:
                return max(at, MONDAY + (24 * day + self.opens) * HOUR)
            at = MONDAY + (day + 1) * 24 * HOUR

    def _chance(self, life: str, taste: float, hour: int) -> float:
        own = _AWAKE[life].get(hour, _ASLEEP[life])
        rate = self.answered * taste * (1.0 - self.rhythm + self.rhythm * own)
        return float(1.0 - np.exp(-rate))

    def _end(
        self, chance: np.random.Generator, answers: float, dead: bool, at: int
    ) -> tuple[str, float, float]:
        """Draw the ending of a call, the time the line is held before, and the talk time (s)."""
        setup = chance.uniform(*self.setup)
        if dead or ((at - MONDAY) // (24 * HOUR) == self.outage and chance.random() < 0.6):
            return "FAILED", setup + 0.5, 0.0
        if chance.random() < answers:
            talk = chance.gamma(1.6, self.talk / 1.6)
            talk *= 10.0 if chance.random() < self.tail else 1.0
            return (
                "COMPLETED",
                setup + min(chance.gamma(4.0, self.ring / 10.0), self.ring),
                talk + 1.0,
            )
        if chance.random() < 0.12:
            return "BUSY", setup + 1.0, 0.0
        rings = self.ring + chance.uniform(0.0, 2.0)
        rings *= 3.0 if self.ring_tail and chance.random() < self.ring_tail else 1.0
        return "NO_ANSWER", setup + rings, 0.0

    def _body(self, who: int, attempt: int, end: str, over: int, ended: int) -> dict[str, Any]:
        talked = end == "COMPLETED"
        call = {
            "id": f"{who:08x}-0000-8000-8000-{attempt:012x}",
            "sessionId": f"{attempt:08x}-0000-8000-8000-{who:012x}",
            "callStatus": end,
            "callStartedAt": _text(over) if talked else None,
            "callEndedAt": _text(ended),
            "callDuration": f"{(ended - over) / 1000:.3f}" if talked else None,
            "errorMessage": None,
        }
        recipient = {
            "tel": f"08{who:08}",
            "customerName": None,
            "callAttempt": attempt,
            "latestCallStatus": end,
            "agentParams": {},
        }
        schedule = self._schedule()
        campaign = {
            "id": "0c0a0000-0000-4000-8000-000000000002",
            "name": "Other",
            "status": "RUNNING",
            "maxAttempts": self.attempts,
            "maxConcurrentCalls": self.lines,
            "retryInterval": self.retry_ms,
            "scheduleStartAt": schedule["startDateTime"],
            "scheduleEndAt": None,
            "scheduleDateTimeWindow": schedule["timeWindows"],
        }
        payload = {
            "isReAnalysis": False,
            "agentName": "Caller",
            "campaignName": "Other",
            "call": call,
            "recipient": recipient,
            "agent": {"id": "0c0a0000-0000-4000-8000-000000000001", "name": "Caller"},
            "campaign": campaign,
            "callResult": None,
        }
        return {"type": "CALL_RESULT", "payload": payload}


def _text(ms: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"
