"""Levers: small changes of a scenario that may help one organization, as variants to be run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from dialsim.experiments.variants import Change, Variant
from dialsim.interface.instants import LAST_INSTANT, format_instant
from dialsim.interface.schedule import LEAST_RETRY_INTERVAL, ScheduleRequest
from dialsim.interface.windows import DayWindows, TimeRange
from dialsim.results.held_back import Reason
from dialsim.results.thai_time import duration_text
from dialsim.scenario.organization import Organization

if TYPE_CHECKING:
    from dialsim.experiments.run_figures import RunFigures, ScopeFigures
    from dialsim.scenario.models import Scenario

_LAST_MINUTE = 23 * 60 + 59
_DAY_MS = 86_400_000

AS_IT_IS = Variant("as it is", ())


@dataclass(frozen=True, slots=True)
class _Bound:
    """The organization to be helped: where it stands, and what became of it in one run."""

    path: str
    settings: Organization
    figures: ScopeFigures

    def schedules(self) -> Iterator[tuple[str, ScheduleRequest]]:
        """The schedule requests of its campaigns, with their paths."""
        for place, campaign in enumerate(self.settings.campaigns):
            if campaign.schedule is not None:
                yield f"{self.path}.campaigns.{place}.schedule", campaign.schedule


def levers(scenario: Scenario, figures: RunFigures, organization: str | None) -> list[Variant]:
    """What might help an organization: each pulls one thing a little.

    More lines, longer windows, another attempt, a shorter retry interval; and where a run of the
    scenario, which `figures` are of, shows a need for it a shorter queue, a faster pace, a later
    endDateTime. Where slots and pacing hold that run back together, so that neither helps alone,
    the last lever pulls both. Without a name it is the organization that finishes last. Empty where
    nothing was scheduled, or the scenario was not loaded from a text.
    """
    bound = _bound(scenario, figures, organization)
    if bound is None or scenario.origin is None:
        return []
    lines, pace = [*_lines(bound)], [*_pace(scenario)]
    found = [
        *lines,
        *_windows(bound),
        *_attempts(bound),
        *_retries(bound),
        *_queue(scenario, bound),
        *pace,
        *_end(bound),
    ]
    held = bound.figures.held_back
    if held is not None and {Reason.SLOTS, Reason.PACING} <= {held.reason, *held.also}:
        both = [*lines, *pace]
        name = " and ".join(name for name, _ in both)
        found.append((name, [change for _, changes in both for change in changes]))
    return [Variant(name, tuple(changes)) for name, changes in found if changes]


SHORTER_RETRIES = (
    "The model takes the chance of an answer as independent of the time since the last attempt, so "
    "what a shorter retry interval brings is optimistic."
)
"""To be said wherever a page advises one."""


def shortens_retries(scenario: Scenario, base: Scenario) -> bool:
    """Whether a scenario leaves some campaign less time between attempts than `base` does."""
    pairs = (
        (campaign.schedule, before.schedule)
        for owner, owner_before in zip(scenario.organizations, base.organizations, strict=False)
        for campaign, before in zip(owner.campaigns, owner_before.campaigns, strict=False)
    )
    return any(
        now is not None
        and before is not None
        and before.max_attempts > 1
        and now.retry_interval < before.retry_interval
        for now, before in pairs
    )


_Lever = tuple[str, list[Change]]


def _bound(scenario: Scenario, figures: RunFigures, organization: str | None) -> _Bound | None:
    owners = [part for part in figures.scopes if part.scope == "organization"]
    scheduled = [
        (place, owner)
        for place, owner in enumerate(owners)
        if not isnan(owner.values["finish"]) and organization in (None, owner.organization)
    ]
    if not scheduled:
        return None
    place, last = sorted(scheduled, key=lambda listed: listed[1].values["finish"])[-1]
    return _Bound(f"organizations.{place}", scenario.organizations[place], last)


def _lines(bound: _Bound) -> Iterator[_Lever]:
    """Two lines more, or a tenth more where that is more, at all times."""
    limit = bound.settings.max_concurrent_calls
    more = max(2, round(limit / 10))
    changes = [Change(f"{bound.path}.maxConcurrentCalls", str(limit + more))]
    for place, action in enumerate(bound.settings.timeline):
        if action.action == "setConcurrency" and isinstance(action.value, int):
            changes.append(Change(f"{bound.path}.timeline.{place}.value", str(action.value + more)))
    yield f"{more} lines more ({limit + more})", changes


def _windows(bound: _Bound) -> Iterator[_Lever]:
    """The last window of each day an hour longer, where the day has room for it."""
    changes = [
        Change(f"{path}.timeWindows", json.dumps([*map(_longer, request.time_windows)]))
        for path, request in bound.schedules()
        if any(_last(day).end_minute < _LAST_MINUTE for day in request.time_windows)
    ]
    yield "an hour more a day", changes


def _last(day: DayWindows) -> TimeRange:
    return max(day.time, key=lambda span: span.end_minute)


def _longer(day: DayWindows) -> dict[str, object]:
    minute = min(_last(day).end_minute + 60, _LAST_MINUTE)
    ends = {_last(day): f"{minute // 60:02}:{minute % 60:02}"}
    spans = [{"start": span.start, "end": ends.get(span, span.end)} for span in day.time]
    return {"dayOfWeek": day.day_of_week, "time": spans}


def _attempts(bound: _Bound) -> Iterator[_Lever]:
    """One attempt more for everybody."""
    changes = []
    for path, request in bound.schedules():
        changes.append(Change(f"{path}.maxAttempts", str(request.max_attempts + 1)))
        if request.max_attempts == 1:
            changes.append(Change(f"{path}.retryInterval", "3600000"))
    yield "one attempt more", changes


def _retries(bound: _Bound) -> Iterator[_Lever]:
    """Half the time between attempts."""
    halved = {
        path: max(request.retry_interval // 2, LEAST_RETRY_INTERVAL)
        for path, request in bound.schedules()
        if request.max_attempts > 1 and request.retry_interval > LEAST_RETRY_INTERVAL
    }
    lengths = {duration_text(interval) for interval in halved.values()}
    name = f"retries after {lengths.pop()}" if len(lengths) == 1 else "retries in half the time"
    changes = [Change(f"{path}.retryInterval", str(value)) for path, value in halved.items()]
    yield name, changes


def _queue(scenario: Scenario, bound: _Bound) -> Iterator[_Lever]:
    """Where calls timed out in the queue: no longer a queue than there are lines."""
    limit = bound.settings.max_concurrent_calls
    if not bound.figures.values["queue_timeouts"] or not limit:
        return
    queue = scenario.engine.queue_limit
    if queue == "unlimited" or (queue is not None and queue > limit):
        yield f"queue of {limit} calls", [Change("engine.queueLimit", str(limit))]
    else:
        shorter = max(1, limit // 2)
        yield f"queue of {shorter} calls", [Change("engine.queueLimit", str(shorter))]


def _pace(scenario: Scenario) -> Iterator[_Lever]:
    """Where calls are paced: twice the dials per second, and no wait between releases."""
    engine = scenario.engine
    if engine.calls_per_second is not None:
        double = 2 * engine.calls_per_second
        yield f"{double:g} dials a second", [Change("engine.callsPerSecond", f"{double:g}")]
    if engine.release_interval:
        yield "release at once", [Change("engine.releaseInterval", "0")]


def _end(bound: _Bound) -> Iterator[_Lever]:
    """Where people expired: a day more, as long as there is one (T5)."""
    changes = [
        Change(f"{path}.endDateTime", f'"{format_instant(request.end_date_time + _DAY_MS)}"')
        for path, request in bound.schedules()
        if request.end_date_time is not None and request.end_date_time <= LAST_INSTANT - _DAY_MS
    ]
    if bound.figures.values["people_expired"]:
        yield "endDateTime a day later", changes
