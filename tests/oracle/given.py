"""Input of the second reading: texts of a scenario as integers, its lists as plain records.

Nothing here comes from dialsim. Instants are ms since the Unix epoch, durations are ms. Only
deterministic fields are read: every recipient has a `tel` and a `script`, and setup times are
constants.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import takewhile
from math import ceil, gcd, inf
from typing import Any

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
THAI = 7 * HOUR  # T2
UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
ENDS = {"answered": "COMPLETED", "noAnswer": "NO_ANSWER", "busy": "BUSY", "failed": "FAILED"}


def duration(text: str | int) -> int:
    """`1h30m`, `250ms`, `PT10M` or 0, in ms."""
    parts = re.findall(r"([0-9.]+)(ms|[smhd])", str(text).lower())
    return sum(int(Fraction(number) * UNITS[unit]) for number, unit in parts)


def instant(text: str) -> int:
    """An ISO 8601 text in ms; without an offset it is UTC (C9)."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@dataclass
class Step:
    """One step of a script: how the call ends, after which ring and talk time."""

    end: str
    ring: int
    talk: int


def script(text: str) -> list[Step]:
    """`noAnswer 25s; answered 5s 90s` as steps."""
    steps = []
    for part in text.split(";"):
        name, ring, *talk = part.split()
        steps.append(Step(ENDS[name], duration(ring), duration(talk[0]) if talk else 0))
    return steps


class Windows:
    """Weekly calling windows in Thai time: the union of half-open ranges (T2, T3)."""

    def __init__(self, items: list[dict[str, Any]] | None) -> None:
        default = [(day, "09:00" if day <= 5 else "10:00", "19:00") for day in range(1, 8)]
        sent = [(i["dayOfWeek"], t["start"], t["end"]) for i in items or [] for t in i["time"]]
        named = default if items is None else sent
        self._ranges = sorted((day - 1, _of_day(start), _of_day(end)) for day, start, end in named)

    def open(self, at: int) -> bool:
        """True if a call may start at this instant."""
        day, time = divmod(at + THAI, DAY)
        weekday = (day + 3) % 7  # 1970-01-01 was a Thursday
        return any(d == weekday and start <= time < end for d, start, end in self._ranges)

    def ranges(self, at: int) -> Iterator[tuple[int, int]]:
        """The ranges (opening, closing) not over at this instant, day by day, endlessly."""
        day = (at + THAI) // DAY
        while True:
            midnight = day * DAY - THAI
            for weekday, start, end in self._ranges:
                if weekday == (day + 3) % 7 and midnight + end > at:
                    yield midnight + start, midnight + end
            day += 1

    def next_boundary(self, at: int) -> int:
        """The next instant at which some range begins or ends."""
        ahead = takewhile(lambda pair: pair[0] <= at + WEEK, self.ranges(at))
        return min(edge for pair in ahead for edge in pair if edge > at)

    def first_allowed(self, at: int, anchor: int, interval: int) -> int | None:
        """The first instant from `at` on inside a window and at anchor + k × interval (Q2).

        None if there is none. Windows repeat every week; where the grid meets them repeats after
        interval / gcd(interval, week) weeks, so that a search that long leaves nothing out.
        """
        weeks = interval // gcd(interval, WEEK) if interval else 1
        for opening, closing in self.ranges(at):
            if opening > at + (weeks + 1) * WEEK:
                return None
            first = max(opening, at)
            if interval:
                first = anchor + -(-(first - anchor) // interval) * interval
            if first < closing:
                return first
        raise AssertionError


def _of_day(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * HOUR + int(minutes) * MINUTE


@dataclass
class Schedule:
    """A schedule request's body with its defaults (interface, section 4.6)."""

    start: int
    end: int | None
    windows: Windows
    max_attempts: int
    retry_interval: int
    remove_duplicates: bool

    @staticmethod
    def of(body: dict[str, Any]) -> Schedule:
        attempts = body.get("maxAttempts") or 1
        interval = body.get("retryInterval")
        end = body.get("endDateTime")
        return Schedule(
            start=instant(body["startDateTime"]),
            end=instant(end) if end else None,
            windows=Windows(body.get("timeWindows")),
            max_attempts=attempts,
            retry_interval=interval if interval is not None else HOUR if attempts > 1 else 0,
            remove_duplicates=bool(body.get("removeDuplicates")),
        )


Files = dict[str, str]
"""Texts of CSVs by the names in a scenario."""


def recipients(listed: Any, files: Files, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """A campaign's people: its list, or those of a file whom where, sort and first choose (C12)."""
    if isinstance(listed, list):
        return listed
    rows = [*csv.DictReader(files[listed["file"]].splitlines())]
    names = {id(row): _names(row, schema) for row in rows}

    def value(formula: str, row: dict[str, str]) -> Any:
        # Formulas are written as in Python, which is then what they mean.
        return eval(formula, {"__builtins__": {}}, names[id(row)])

    if "where" in listed:
        rows = [row for row in rows if value(listed["where"], row)]
    sort = listed.get("sort", [])
    keys = [sort] if isinstance(sort, str) else sort
    rows.sort(key=lambda row: [value(key, row) for key in keys])
    return [_person(row) for row in rows[: listed.get("first")]]


def _names(row: dict[str, str], schema: dict[str, Any]) -> dict[str, Any]:
    """What a formula may name: the segment, and parameters, some from the agent's defaults."""
    names: dict[str, Any] = {"segment": row["segment"], "true": True, "false": False}
    for name, entry in schema.items():
        cell = row.get(f"agentParams.{name}", "")
        read = {"number": float, "boolean": "true".__eq__, "text": str}[entry["type"]]
        names[name] = read(cell) if cell else entry.get("default")
    return names


def _person(row: dict[str, str]) -> dict[str, Any]:
    history: dict[str, Any] = {
        key.removeprefix("history."): cell
        for key, cell in row.items()
        if key.startswith("history.") and cell
    }
    if history:
        history["callAttempt"] = int(history["callAttempt"])
    return {"tel": row["tel"], "script": row["script"], "history": history}


@dataclass
class Past:
    """A recipient's history, if a call was made and ended."""

    attempts: int
    answered: bool
    ended_at: int

    @staticmethod
    def of(history: dict[str, Any] | None) -> Past | None:
        if not history or not history.get("lastEndedAt"):
            return None
        return Past(
            attempts=history.get("callAttempt", 0),
            answered=history["latestCallStatus"] in ("COMPLETED", "ANALYSIS_FAILED"),
            ended_at=instant(history["lastEndedAt"]),
        )


@dataclass(frozen=True)
class Share:
    """A campaign's part in the lines (Q7 to Q11)."""

    priority: float = inf
    weight: int = 1
    reserved: int = 0
    at_most: float = inf

    @staticmethod
    def of(campaign: dict[str, Any]) -> Share:
        return Share(
            priority=campaign.get("priority", inf),
            weight=campaign.get("weight", 1),
            reserved=campaign.get("reserved", 0),
            at_most=campaign.get("atMost", inf),
        )


@dataclass
class Engine:
    """The `engine` block with its defaults (Q2 to Q5); `gap` is the least time between dials."""

    queue_timeout: int
    queue_limit: float | None
    release_interval: int
    order: str
    sharing: str
    gap: int

    @staticmethod
    def of(block: dict[str, Any]) -> Engine:
        limit, rate = block.get("queueLimit"), block.get("callsPerSecond")
        return Engine(
            queue_timeout=duration(block.get("queueTimeout", "10m")),
            queue_limit=inf if limit == "unlimited" else limit,
            release_interval=duration(block.get("releaseInterval", 0)),
            order=block.get("order", "due"),
            sharing=block.get("sharing", "roundRobin"),
            gap=ceil(1000 / Fraction(str(rate))) if rate else 0,
        )


@dataclass
class Action:
    """A schedule request of the file or a timeline action; `number` is its place in the file."""

    at: int
    timeline: bool  # T4 step 1: the file's requests come first
    number: int
    organization: int
    name: str
    campaign: int | None = None
    given: dict[str, Any] = field(default_factory=dict)
    planned: bool = False  # T6: what a plan was compiled to


def clock_start(scenario: dict[str, Any]) -> int:
    """`clock.start`, or the earliest instant that the file names."""
    given = scenario.get("clock", {}).get("start")
    if given is not None:
        return instant(given)
    named = []
    for organization in scenario["organizations"]:
        for entry in (*organization["campaigns"], *organization.get("timeline", [])):
            body = entry.get("schedule") or entry.get("body") or {}
            named += [entry.get("scheduledAt"), entry.get("at"), body.get("startDateTime")]
    return min(instant(text) for text in named if text)


def actions(scenario: dict[str, Any], start: int) -> list[Action]:
    """Everything that T4 step 1 works off, in its order."""
    found: list[Action] = []
    for o, organization in enumerate(scenario["organizations"]):
        names = [campaign["name"] for campaign in organization["campaigns"]]
        for c, campaign in enumerate(organization["campaigns"]):
            if "schedule" in campaign:
                at = instant(campaign["scheduledAt"]) if "scheduledAt" in campaign else start
                body = {"body": campaign["schedule"]}
                found.append(Action(at, False, len(found), o, "schedule", c, body))
        for entry in organization.get("timeline", []):
            c_named = names.index(entry["campaign"]) if "campaign" in entry else None
            at, name = instant(entry["at"]), entry["action"]
            found.append(Action(at, True, len(found), o, name, c_named, entry))
        for entry in organization.get("planned", []):
            c_named = names.index(entry["campaign"]) if "campaign" in entry else None
            at, name = instant(entry["at"]), entry["action"]
            found.append(Action(at, True, len(found), o, name, c_named, entry, planned=True))
    return sorted(found, key=lambda a: (a.at, a.timeline, a.planned, a.number))
