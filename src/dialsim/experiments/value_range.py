"""Ranges of a number, a duration or an instant, evenly spaced, as `10..60:5` says them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from dialsim.experiments.errors import ExperimentError
from dialsim.interface.instants import format_instant
from dialsim.scenario.units import (
    format_duration,
    looks_like_date,
    parse_duration,
    parse_offset_instant,
)
from dialsim.scenario.week import instant_in_words


class AmountKind(StrEnum):
    """What an amount is; durations and instants are whole milliseconds."""

    WHOLE = "whole number"
    DECIMAL = "decimal number"
    DURATION = "duration"
    INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, a duration or an instant; the last two in ms."""

    kind: AmountKind
    value: Decimal

    @property
    def text(self) -> str:
        """The amount as a scenario file has it."""
        if self.kind is AmountKind.DURATION:
            return format_duration(int(self.value))
        if self.kind is AmountKind.INSTANT:
            return format_instant(int(self.value))
        return f"{self.value.normalize():f}"

    @property
    def plain(self) -> int | float | str:
        """The amount as Python and JSON have it; durations and instants are text."""
        if self.kind in (AmountKind.DURATION, AmountKind.INSTANT):
            return self.text
        return int(self.value) if self.kind is AmountKind.WHOLE else float(self.value)


def read_amount(text: str, first_day: int | None = None) -> Amount:
    """Read `40`, `0.5`, `50%`, `1h30m` or `2026-01-05T02:00:00Z`.

    With `first_day`, from which days of the week count, also `Fri 18:00` and the like, Thai time.
    Raises ExperimentError for what is none of these.
    """
    text = text.strip().strip("\"'")
    if text.endswith("%"):
        share = read_amount(text.removesuffix("%"))
        if share.kind in (AmountKind.WHOLE, AmountKind.DECIMAL):
            return Amount(AmountKind.DECIMAL, share.value / 100)
    try:
        number = Decimal(text)
        if number.is_finite():
            whole = number == number.to_integral_value() and "." not in text
            return Amount(AmountKind.WHOLE if whole else AmountKind.DECIMAL, number)
    except InvalidOperation:
        pass
    if first_day is not None:
        try:
            instant = instant_in_words(text, first_day)
        except ValueError as error:
            raise ExperimentError(f"{text} {error}") from None
        if instant is not None:
            return Amount(AmountKind.INSTANT, Decimal(instant))
    for kind, parse in (
        (AmountKind.DURATION, parse_duration),
        (AmountKind.INSTANT, parse_offset_instant),
    ):
        try:
            return Amount(kind, Decimal(parse(text)))
        except ValueError as error:
            if kind is AmountKind.INSTANT and looks_like_date(text):
                raise ExperimentError(f"{text} {error}") from None
    words = "" if first_day is None else "Fri 18:00, 2026-01-05 09:00 or "
    raise ExperimentError(
        f"{text or '(nothing)'} is not a number, a duration such as 30m or an instant such as "
        f"{words}2026-01-05T02:00:00Z"
    )


def value_text(value: object) -> str:
    """A Python value as a scenario file has it; text stands for itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ExperimentError(f"{value} has no time zone; give an aware datetime or text")
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_duration(round(value / timedelta(milliseconds=1)))
    if hasattr(value, "item"):  # a numpy number
        value = value.item()
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        raise ExperimentError(f"{value!r} can't stand in a scenario file") from None


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values `low`, `low + step`, … up to `high`, all of one kind."""

    kind: AmountKind
    low: Decimal
    high: Decimal
    step: Decimal

    def __len__(self) -> int:
        return int((self.high - self.low) // self.step) + 1

    def __getitem__(self, index: int) -> Amount:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Amount(self.kind, self.low + index * self.step)


_LONGEST = 10**9
_STEPS = {AmountKind.WHOLE: 1, AmountKind.DURATION: 60_000, AmountKind.INSTANT: 3_600_000}


def make_axis(
    low: str, high: str, step: str | None = None, first_day: int | None = None
) -> ValueRange:
    """The axis between two amounts; `first_day` is as in `read_amount`.

    Without a step it is 1, `1m` between durations, `1h` between instants, and a hundredth of the
    way between decimal numbers. Raises ExperimentError if the amounts don't go together.
    """
    ends = [read_amount(low, first_day), read_amount(high, first_day)]
    kind = _kind(ends, f"{low}..{high}")
    first, last = (end.value for end in ends)
    if last < first:
        raise ExperimentError(f"{low}..{high}: the range ends before it begins")
    width = _step(kind, step, last - first)
    if (last - first) // width >= _LONGEST:
        raise ExperimentError(f"{low}..{high}: the range has too many values; give a step")
    if kind in (AmountKind.WHOLE, AmountKind.DECIMAL) and width % 1:
        kind = AmountKind.DECIMAL
    return ValueRange(kind, first, last, width)


def _kind(ends: Sequence[Amount], told: str) -> AmountKind:
    """The kind of a range; 0 is a duration too, and a whole number goes with a decimal one."""
    kinds = {end.kind for end in ends}
    if AmountKind.DURATION in kinds and all(
        e.kind is AmountKind.DURATION or e.value == 0 for e in ends
    ):
        return AmountKind.DURATION
    if kinds == {AmountKind.WHOLE, AmountKind.DECIMAL}:
        return AmountKind.DECIMAL
    if len(kinds) > 1:
        raise ExperimentError(f"{told}: a {ends[0].kind} and a {ends[1].kind} make no range")
    return kinds.pop()


def _step(kind: AmountKind, text: str | None, width: Decimal) -> Decimal:
    if text is None:
        return Decimal(_STEPS[kind]) if kind in _STEPS else (width / 100 or Decimal(1))
    step = read_amount(text)
    timed = kind in (AmountKind.DURATION, AmountKind.INSTANT)
    if (
        step.kind is AmountKind.INSTANT
        or (step.kind is AmountKind.DURATION) is not timed
        or step.value <= 0
    ):
        needed = "a duration such as 10m" if timed else "a number greater than 0"
        raise ExperimentError(f"step {text}: the step of this range is {needed}")
    return step.value


def read_range(text: str, first_day: int | None = None) -> ValueRange | None:
    """Read `10..60`, `10..60:5` or `10m..1h:10m`; None if the text is no range.

    `first_day` is as in `read_amount`.
    """
    low, dots, rest = text.partition("..")
    if not dots:
        return None
    high, colon, step = rest.rpartition(":")
    if colon:
        try:
            read_amount(high, first_day)
            read_amount(step)
        except ExperimentError:
            return make_axis(low.strip(), rest.strip(), None, first_day)
        return make_axis(low.strip(), high.strip(), step.strip(), first_day)
    return make_axis(low.strip(), rest.strip(), None, first_day)
