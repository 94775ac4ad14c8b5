"""Readings of small scenarios, as one writes them down on paper (as `engine.rows` does of traces).

Time is written in seconds after Monday 10:00 in Thailand. A call is `person.call`.
"""

from __future__ import annotations

from oracle.given import instant
from oracle.records import Reading

ZERO = instant("2026-01-05T03:00:00Z")


def seconds(at_ms: int) -> str:
    return f"{(at_ms - ZERO) / 1000:.3f}".rstrip("0").rstrip(".")


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
