"""Levers: small changes of a scenario that may help its last campaign, as variants to be run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from dialsim.experiments.variants import Change, Variant
from dialsim.interface.instants import format_instant
from dialsim.interface.schedule import LEAST_RETRY_INTERVAL, ScheduleRequest
from dialsim.interface.windows import DayWindows
from dialsim.results.result import Result
from dialsim.results.summary import CampaignSummary
from dialsim.results.thai_time import duration_text
from dialsim.scenario.organization import Organization

_LAST_MINUTE = 23 * 60 + 59
_DAY_MS = 86_400_000

AS_IT_IS = Variant("as it is", ())


@dataclass(frozen=True, slots=True)
class _Bound:
    """The organization whose campaign finishes last: where it stands, and what became of it."""

    path: str
    settings: Organization
    campaigns: tuple[CampaignSummary, ...]

    def schedules(self) -> Iterator[tuple[str, ScheduleRequest]]:
        """The schedule requests of its campaigns, with their paths."""
        for place, campaign in enumerate(self.settings.campaigns):
            if campaign.schedule is not None:
                yield f"{self.path}.campaigns.{place}.schedule", campaign.schedule


def levers(result: Result) -> list[Variant]:
    """What might help the organization that finishes last: each pulls one thing a little.

    More lines, longer windows, another attempt, a shorter retry interval; and where the run shows
    a need for it a shorter queue, a faster pace, a later endDateTime. Empty where nothing was
    scheduled, or the run is not of a scenario's text alone.
    """
    bound, world = _bound(result), result.trace.world
    if bound is None or world.scenario.origin is None or world.has_added_campaigns:
        return []
    found = [
        *_lines(bound),
        *_windows(bound),
        *_attempts(bound),
        *_retries(bound),
        *_queue(result, bound),
        *_pace(result),
        *_end(bound),
    ]
    return [Variant(name, tuple(changes)) for name, changes in found if changes]


_Lever = tuple[str, list[Change]]


def _bound(result: Result) -> _Bound | None:
    summary = result.summary
    scheduled = [o for o in summary.organizations if any(c.start for c in o.campaigns)]
    if not scheduled:
        return None
    unfinished = [owner for owner in scheduled if owner.finish is None]
    last = (unfinished or sorted(scheduled, key=lambda owner: str(owner.finish)))[-1]
    place = summary.organizations.index(last)
    settings = result.trace.world.scenario.organizations[place]
    return _Bound(f"organizations.{place}", settings, last.campaigns)


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
    """The last window of each day an hour longer."""
    changes = [
        Change(f"{path}.timeWindows", json.dumps([_longer(day) for day in request.time_windows]))
        for path, request in bound.schedules()
    ]
    yield "an hour more a day", changes


def _longer(day: DayWindows) -> dict[str, object]:
    spans = [[span.start, span.end] for span in day.time]
    last = max(range(len(spans)), key=lambda k: day.time[k].end_minute)
    minute = min(day.time[last].end_minute + 60, _LAST_MINUTE)
    spans[last][1] = f"{minute // 60:02}:{minute % 60:02}"
    return {
        "dayOfWeek": day.day_of_week,
        "time": [{"start": start, "end": end} for start, end in spans],
    }


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


def _queue(result: Result, bound: _Bound) -> Iterator[_Lever]:
    """Where calls timed out in the queue: no longer a queue than there are lines."""
    limit = bound.settings.max_concurrent_calls
    if not sum(part.queue_timeouts for part in bound.campaigns) or not limit:
        return
    queue = result.trace.world.scenario.engine.queue_limit
    if queue == "unlimited" or (queue is not None and queue > limit):
        yield f"queue of {limit} calls", [Change("engine.queueLimit", str(limit))]
    else:
        shorter = max(1, limit // 2)
        yield f"queue of {shorter} calls", [Change("engine.queueLimit", str(shorter))]


def _pace(result: Result) -> Iterator[_Lever]:
    """Where calls are paced: twice the dials per second, and no wait between releases."""
    engine = result.trace.world.scenario.engine
    if engine.calls_per_second is not None:
        double = 2 * engine.calls_per_second
        yield f"{double:g} dials a second", [Change("engine.callsPerSecond", f"{double:g}")]
    if engine.release_interval:
        yield "release at once", [Change("engine.releaseInterval", "0")]


def _end(bound: _Bound) -> Iterator[_Lever]:
    """Where people expired: a day more."""
    changes = [
        Change(f"{path}.endDateTime", f'"{format_instant(request.end_date_time + _DAY_MS)}"')
        for path, request in bound.schedules()
        if request.end_date_time is not None
    ]
    if any(part.people_expired for part in bound.campaigns):
        yield "endDateTime a day later", changes
