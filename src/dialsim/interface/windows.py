"""Calling windows as the schedule request writes them: days, and ranges of Thai local time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dialsim.interface.faults import TIME_PATTERN, Fields
from dialsim.interface.wire import WireModel

Time = Annotated[str, Field(pattern=TIME_PATTERN)]


class TimeRange(WireModel):
    """A span of the day, Thai time, in which calls may start: from start up to end (T3)."""

    start: Time = Field(
        description="First minute, HH:MM, 24-hour with a two-digit hour", examples=["09:00"]
    )
    end: Time = Field(
        description="Minute at which no call starts any more, HH:MM; after start",
        examples=["19:00"],
    )

    @property
    def start_minute(self) -> int:
        """Minutes from midnight to `start`."""
        return _minute(self.start)

    @property
    def end_minute(self) -> int:
        """Minutes from midnight to `end`."""
        return _minute(self.end)


class DayWindows(WireModel):
    """A day of the week and its ranges, as sent (interface, section 4.6)."""

    day_of_week: int = Field(
        strict=True, ge=1, le=7, description="1 = Monday ... 7 = Sunday", examples=[1]
    )
    time: tuple[TimeRange, ...] = Field(
        description="Ranges of that day, Thai time; at least one", json_schema_extra={"minItems": 1}
    )


def _days(days: range, start: str, end: str) -> tuple[DayWindows, ...]:
    hours = (TimeRange(start=start, end=end),)
    return tuple(DayWindows(day_of_week=day, time=hours) for day in days)


DEFAULT_TIME_WINDOWS = (
    *_days(range(1, 6), "09:00", "19:00"),
    *_days(range(6, 8), "10:00", "19:00"),
)
"""The windows of a request that names none, written out day by day (T3)."""


def read_time_windows(body: Fields, name: str) -> tuple[DayWindows, ...]:
    """Read the array of days called `name`, noting what is wrong with it item by item (C10)."""
    read = []
    for item in body.objects(name, ("dayOfWeek", "time")):
        day = item.day_of_week("dayOfWeek")
        ranges = []
        for span in item.objects("time", ("start", "end")):
            start, end = span.time_of_day("start"), span.time_of_day("end")
            if start is not None and end is not None:
                ranges.append(TimeRange(start=start, end=end))
        if day is not None:
            read.append(DayWindows(day_of_week=day, time=tuple(ranges)))
    return tuple(read)


def _minute(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:])
