"""Calling days: share of runs that are done by the end of each day.

`finish_by_2026-01-05` is the share of runs whose finish is before the end of 5 January, Thai time.
Only days on which some run ends have a share; another day has the share
of the day before.

Where every run is done by the end of a day, further runs may go on after its closing. Their share
is estimated from the calling time left until then, by the tail of `intervals.share_beyond`. The
interval of a share comes from the runs alone (Clopper and Pearson 1934).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.intervals import (
    CONFIDENCE,
    NO_INTERVAL,
    Difference,
    Interval,
    Values,
    share_beyond,
    share_difference,
    share_interval,
)
from dialsim.interface.instants import DAY, THAI_OFFSET, date_text, midnight, thai_date
from dialsim.results.figures import DONE_BY, INSTANTS

if TYPE_CHECKING:
    from dialsim.experiments.known_bounds import KnownBounds, Place

MOST_DAYS = 5  # days that a table has for one campaign
_LANDMARKS = (0.0, 0.05, 0.5, 0.95, 1.0)  # quantiles whose days are kept of more days
_SHORT = 2  # days that a table of effects has columns for


@dataclass(frozen=True, slots=True)
class DoneBy:
    """The figure "done by the end of a day" of an instant, such as `finish`, at one place.

    `day` counts from 1 January 1970, Thai time. Instants are in seconds from `origin` (ms). `place`
    is an organization and a campaign; neither for the whole run.
    """

    instant: str
    day: int
    origin: int
    place: Place

    @property
    def column(self) -> str:
        """Name of the figure in tables: `finish_by_2026-01-05`."""
        return f"{self.instant}{DONE_BY}{thai_date(self.day * DAY - THAI_OFFSET)}"

    @property
    def source(self) -> str:
        """Column of the instant: `finish_seconds`."""
        return f"{self.instant}_seconds"

    def done(self, seconds: Values) -> Values:
        """Return 1 for each run that is done by then, else 0; NaN where nothing was scheduled."""
        return np.where(np.isnan(seconds), np.nan, _days(seconds, self.origin) <= self.day)

    def estimate(self, seconds: Values, bounds: KnownBounds, confidence: float) -> Interval:
        """Estimate the share of all runs that are done by then."""
        known = seconds[~np.isnan(seconds)]
        days, count = _days(known, self.origin), len(known)
        hits, tail = int((days <= self.day).sum()), (1 - confidence) / 2
        if not count:
            return NO_INTERVAL
        certain = bounds.certain(self.instant)
        found = share_interval(hits, count, (tail, tail), certain)
        calendars = bounds.calendars_of(self.place)
        if hits < count or certain or len(calendars) != 1 or self.instant != "finish":
            return found
        beyond = share_beyond(calendars[0].left_on(self.day, self.origin + 1000 * known))
        return replace(found, estimate=max(found.low, 1.0 - beyond))


def compare_days(
    days: tuple[DoneBy, DoneBy],
    sides: tuple[Values, Values],
    all_bounds: tuple[KnownBounds, KnownBounds],
    confidence: float,
) -> Difference:
    """Return the difference of the probabilities of being done by the end of a day.

    `days` are the same day, each with the origin of its side. The estimate is the difference of
    both estimates, within the limits.
    """
    certain = all(bounds.certain(days[0].instant) for bounds in all_bounds)
    done = [day.done(side) for day, side in zip(days, sides, strict=True)]
    found = share_difference(done[0], done[1], confidence, certain)
    one, two = (
        day.estimate(side, bounds, confidence).estimate
        for day, side, bounds in zip(days, sides, all_bounds, strict=True)
    )
    return replace(found, estimate=float(np.clip(one - two, found.low, found.high)))


def _days(seconds: Values, origin: int) -> Values:
    """Thai days of instants, counted from 1 January 1970; midnight belongs to the day it ends."""
    return np.ceil((seconds * 1000 + (origin + THAI_OFFSET)) / DAY) - 1


Days = Mapping["Place", Sequence[DoneBy]]
"""Days of each organization and campaign, of each organization, and of the whole run."""


def calling_days(columns: Mapping[str, Values], origin: int | None, place: Place) -> list[DoneBy]:
    """Return the days on which runs of a place end, at most `MOST_DAYS` for each instant.

    `columns` are figures of all runs, by the columns of the tables.
    """
    found: list[DoneBy] = []
    if origin is None:
        return found
    for instant in INSTANTS:
        if f"{instant}_seconds" not in columns:
            continue
        seconds = columns[f"{instant}_seconds"]
        days = np.sort(_days(seconds[np.isfinite(seconds)], origin))
        kept = np.unique(days)
        if len(kept) > MOST_DAYS:
            kept = np.unique(np.quantile(days, _LANDMARKS, method="inverted_cdf"))
        found += [DoneBy(instant, int(day), origin, place) for day in kept]
    return found


def telling_days(finish: Values, bounds: KnownBounds) -> list[DoneBy]:
    """Return up to two days on which it is uncertain that runs are done; else the last day.

    `finish` are the finishes of whole runs in seconds since 1970.
    """
    days = calling_days({"finish_seconds": finish}, 0, (None, None))
    shares = [day.estimate(finish, bounds, CONFIDENCE).estimate for day in days]
    open_ones = [day for day, share in zip(days, shares, strict=True) if 0 < share < 1]
    return (open_ones or days[-1:])[:_SHORT]


def day_label(column: str) -> str:
    """Return the words for a column such as `finish_by_2026-01-05`: `by Mon 5 Jan`."""
    day = date.fromisoformat(column.rpartition(DONE_BY)[2])
    return f"by {date_text(midnight(day)).rpartition(' ')[0]}"
