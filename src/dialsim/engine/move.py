"""Moves: how far a clock is to be moved, as callers in Python say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Self

from dialsim.interface.errors import DialsimError
from dialsim.interface.instants import parse_instant
from dialsim.scenario.units import era_fault

Instant = str | datetime
"""Text in ISO 8601 or an aware datetime."""

Until = Literal["nextEvent", "idle"]

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Move:
    """To an instant (`to`, ms since 1970), until something is so, or else by a span (`by`, ms)."""

    to: int | None
    until: Until | None
    by: int

    @classmethod
    def read(cls, to: Instant | None, until: Until | None, span: timedelta) -> Self:
        """Read the arguments of `advance`; raises DialsimError if they make no sense together."""
        if (to is not None) + (until is not None) + bool(span) > 1:
            raise DialsimError("advance: give one of `to`, `until` or a span such as `hours=2`")
        if until not in (None, "nextEvent", "idle"):
            raise DialsimError(f'advance: until={until!r} is not "nextEvent" or "idle"')
        return cls(None if to is None else _milliseconds(to), until, round(span / _MILLISECOND))


def instant_as_datetime(instant: int) -> datetime:
    """An instant (ms since 1970) as a datetime in UTC."""
    return _EPOCH + instant * _MILLISECOND


def _milliseconds(instant: Instant) -> int:
    fault = era_fault(str(instant))
    if fault is not None:
        raise DialsimError(f"advance: to {fault}")
    if isinstance(instant, str):
        try:
            return parse_instant(instant)
        except ValueError as error:
            raise DialsimError(f"advance: {error}") from None
    if instant.tzinfo is None:
        raise DialsimError(f"advance: {instant} has no time zone; give an aware datetime or text")
    return (instant - _EPOCH) // _MILLISECOND
