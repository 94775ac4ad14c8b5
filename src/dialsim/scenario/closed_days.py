"""Starts and deadlines on days without calls, to be pointed out before anything is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from dialsim.interface.instants import (
    DAY,
    MINUTE,
    THAI_OFFSET,
    date_text,
    midnight,
    minute_text,
    thai_date,
)
from dialsim.interface.phrases import joined
from dialsim.scenario.calendar import Days, Range, range_text
from dialsim.scenario.compiled_hours import called_on, start_of

if TYPE_CHECKING:
    from dialsim.scenario.campaign import Campaign
    from dialsim.scenario.scenario import Scenario

_DAYS_AHEAD = 400
"""Days within which the next day with calls is looked for."""


def closed_starts(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each campaign that starts on a holiday, or outside its windows."""
    days = Days(scenario.calendar)
    for owner in scenario.organizations:
        for campaign in owner.campaigns:
            if campaign.schedule is None:
                continue
            start = start_of(campaign)
            day, since = thai_date(start), (start + THAI_OFFSET) % DAY // MINUTE
            spans = [span for span in called_on(campaign, day, days) if span[1] > since]
            why = _why(day, days, spans)
            if why is None:
                continue
            where = f"Campaign {campaign.name} of {owner.name} starts {minute_text(start)}, {why}"
            if spans:
                yield f"{where}: it calls from {_texts(spans)} on that day."
                continue
            first = _near(campaign, day, days, 1)
            then = "it never calls" if first is None else f"its first calls are {first}"
            yield f"{where}: {then}."


def closed_deadlines(
    scenario: Scenario, deadlines: Sequence[tuple[int, tuple[str | None, str | None]]]
) -> Iterator[str]:
    """Yield a sentence for each deadline on a holiday, or on a day without calls.

    A deadline is an instant (ms) with the organization and campaign that it is for, None for all.
    """
    days = Days(scenario.calendar)
    for at, (organization, campaign_name) in deadlines:
        concerned = [
            campaign
            for owner in scenario.organizations
            for campaign in owner.campaigns
            if campaign.schedule is not None
            and organization in (None, owner.name)
            and campaign_name in (None, campaign.name)
        ]
        day = thai_date(at)
        spans = sorted({span for part in concerned for span in called_on(part, day, days)})
        why = _why(day, days, spans)
        if why is None or not concerned:
            continue
        where = f"The goal's day, {date_text(at)}, is {why}"
        if spans:
            yield f"{where}: calls are made on it from {_texts(spans)}."
            continue
        last = [found for part in concerned if (found := _near(part, day, days, -1))]
        before = f"the last calls before it are {max(last, key=len)}" if last else "nobody calls"
        yield f"{where}: {before}."


def _why(day: date, days: Days, spans: Sequence[Range]) -> str | None:
    """Return what is special about a day; None for an ordinary day with calls."""
    if days.day_class(day) == "holiday":
        return f"a holiday ({days.names[day]})"
    if days.is_closed(day):
        return "a day on which the calendar is closed"
    return None if spans else "outside the calling windows"


def _near(campaign: Campaign, day: date, days: Days, way: int) -> str | None:
    """Return the first calling time after a day (way 1), or the last one before it (-1)."""
    for step in range(1, _DAYS_AHEAD):
        other = day + timedelta(days=way * step)
        if spans := called_on(campaign, other, days):
            minute = spans[0][0] if way > 0 else spans[-1][1]
            at = minute_text(midnight(other) + minute * MINUTE)
            return f"on {at}" if way > 0 else f"until {at}"
    return None


def _texts(spans: Sequence[Range]) -> str:
    return joined([range_text(span).replace("-", " to ") for span in spans])
