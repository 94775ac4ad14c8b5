"""Calling hours compiled to the means of the interface: windows, pauses and resumes (T6).

The interface has one week of windows per campaign, and no dates. So the windows of a day of the
week are the union of the calling hours of its dates. The campaign is paused where a date has less.
Lines by time become settings of maxConcurrentCalls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from dialsim.interface.instants import (
    DAY,
    MINUTE,
    THAI_OFFSET,
    clock_text,
    date_text,
    format_instant,
    midnight,
    minute_text,
    thai_date,
)
from dialsim.interface.phrases import few, joined
from dialsim.interface.schedule import DayWindows
from dialsim.scenario.calendar import Calendar, ComplianceRule, DayClasses, line_time, lines_of
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.document import Cursor
from dialsim.scenario.organization import Organization, TimelineAction
from dialsim.scenario.problems import Problems, Remark
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.week import (
    Range,
    Week,
    days_between,
    range_text,
    time_windows,
    union,
    week_of,
    without,
)

WEEKS = 13
"""Number of weeks that are compiled for a campaign without an end."""
_YEARS_AHEAD = 5

Span = tuple[int, int]
"""Span in ms: from an instant to another one, which is excluded."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """End of compilation (ms), and the setting that it comes from."""

    at: int
    source: str

    @property
    def is_known(self) -> bool:
        """True if the file sets the end, after which no call comes."""
        return self.source in ("endDateTime", "clock.end")

    def holds_at(self, instant: int) -> bool:
        """Return True if an action is needed at an instant."""
        # At a known end the campaign or the run is over, and an action would be refused.
        return instant < self.at or (instant == self.at and not self.is_known)


@dataclass(frozen=True, slots=True)
class CompiledHours:
    """Compiled calling hours of a campaign, or lines of an organization, whose `campaign` is None.

    Calling hours become windows of the request, pauses and resumes, and lines become settings of
    maxConcurrentCalls.
    """

    organization: str
    campaign: str | None
    horizon: Horizon
    actions: tuple[TimelineAction, ...]
    time_windows: tuple[DayWindows, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, in the words of scenario files and of the interface."""
        named: dict[str, Any] = {"organization": self.organization}
        if self.campaign is not None:
            named["campaign"] = self.campaign
        named["until"] = format_instant(self.horizon.at)
        if self.campaign is not None:
            named["timeWindows"] = [
                day.model_dump(mode="json", by_alias=True) for day in self.time_windows
            ]
        actions = [
            {"at": format_instant(done.at), "action": done.action}
            | {
                key: value
                for key in ("campaign", "value")
                if (value := getattr(done, key)) is not None
            }
            for done in self.actions
        ]
        return {**named, "timeline": actions}


def holidays_listed(scenario: Scenario) -> dict[date, str]:
    """Return the holidays in the years of the run, with their names."""
    first, last = thai_date(scenario.clock.start).year, _last_date(scenario).year
    names = {} if scenario.calendar is None else scenario.calendar.names
    return {day: name for day, name in names.items() if first <= day.year <= last}


def compiled_hours(scenario: Scenario) -> list[CompiledHours]:
    """Return the compiled calling hours and lines of a scenario."""
    hours = [
        _campaign(scenario, owner, campaign)
        for owner in scenario.organizations
        for campaign in owner.campaigns
        if campaign.calling_hours is not None and campaign.schedule is not None
    ]
    return hours + [_lines(scenario, owner) for owner in scenario.organizations if owner.lines]


def with_compiled_hours(scenario: Scenario, root: Cursor, problems: Problems) -> Scenario:
    """Return the scenario with holidays looked up, and with calling hours and lines compiled.

    Settings that cannot be compiled are reported.
    """
    calendar = scenario.calendar
    if calendar is not None:
        years = _years(scenario)
        known = calendar.years_known()
        if known is not None and not (years.start in known and _last_year(scenario) in known):
            message = (
                f"has no holidays for every year from {years.start} to {_last_year(scenario)}: "
                f"those of {calendar.holidays} are known for {known.start} to {known.stop - 1}"
            )
            problems.add(root.at("calendar", "holidays"), message)
        calendar.resolve(years)
    made = {(part.organization, part.campaign): part for part in compiled_hours(scenario)}
    organizations = []
    for o, owner in enumerate(scenario.organizations):
        lines = made.get((owner.name, None))
        actions = [] if lines is None else [*lines.actions]
        campaigns = []
        for c, campaign in enumerate(owner.campaigns):
            part = made.get((owner.name, campaign.name))
            if part is None or campaign.schedule is None:
                campaigns.append(campaign)
                continue
            if not part.time_windows:
                block = root.at("organizations", o, "campaigns", c, "callingHours")
                first = thai_date(start_of(campaign)).isoformat()
                last = thai_date(part.horizon.at - 1).isoformat()
                problems.add(block, f"leaves no time for any call from {first} to {last}")
            # model_copy skips validation: an empty list, reported above, would fail it.
            schedule = campaign.schedule.model_copy(update={"time_windows": part.time_windows})
            campaigns.append(campaign.model_copy(update={"schedule": schedule}))
            actions += part.actions
        # Stable, so that limits come before pauses of the same instant.
        actions.sort(key=lambda action: action.at)
        changed = owner.model_copy(update={"campaigns": tuple(campaigns)})
        organizations.append(changed.with_compiled_actions(actions))
    return scenario.model_copy(update={"organizations": tuple(organizations)})


def _years(scenario: Scenario) -> range:
    """Return the years whose holidays may matter."""
    first, last = thai_date(scenario.clock.start).year, _last_year(scenario)
    # Retries may go on for years after the last instant that the file names.
    ahead = _YEARS_AHEAD if scenario.clock.end is None else 0
    return range(first, max(last, first + ahead) + 1)


def _last_year(scenario: Scenario) -> int:
    """Return the last year named in the file."""
    clock = scenario.clock
    ends = [clock.start if clock.end is None else clock.end]
    if clock.end is None:
        ends += [
            campaign.schedule.end_date_time
            for owner in scenario.organizations
            for campaign in owner.campaigns
            if campaign.schedule is not None and campaign.schedule.end_date_time is not None
        ]
    return thai_date(max(ends)).year


def start_of(campaign: Campaign) -> int:
    """Return the effective start of a campaign that the file schedules (C1)."""
    assert campaign.schedule is not None
    return max(campaign.scheduled_at or 0, campaign.schedule.start_date_time)


# -- campaigns -------------------------------------------------------------------------------------


def _campaign(scenario: Scenario, owner: Organization, campaign: Campaign) -> CompiledHours:
    hours, calendar = campaign.calling_hours, scenario.days
    assert hours is not None
    start, horizon = start_of(campaign), horizon_of(scenario, campaign)
    # Every week is the same: windows suffice, without any pause.
    if hours.holiday is None and not scenario.has_closed_dates:
        windows = time_windows(hours.week)
        return CompiledHours(owner.name, campaign.name, horizon, (), windows)
    weekly_spans: dict[int, list[Range]] = defaultdict(list)
    dates = [*days_between(thai_date(start), thai_date(max(start, horizon.at - 1)))]
    for day in dates:
        # Windows repeat weekly: each gets all that any date of its weekday needs, and pauses cut
        # the other dates.
        weekly_spans[day.isoweekday()] += called_on(campaign, day, calendar)
    week = {number: union(spans) for number, spans in weekly_spans.items()}
    cuts = [*_cuts(campaign, week, dates, calendar, (start, horizon.at))]
    if not horizon.is_known:
        cuts.append((horizon.at, _FOREVER))  # no calls after the horizon
    actions = tuple(_pauses(owner, campaign, cuts, horizon))
    return CompiledHours(owner.name, campaign.name, horizon, actions, time_windows(week))


_FOREVER = 1 << 62


def horizon_of(scenario: Scenario, campaign: Campaign) -> Horizon:
    """Return the end of compilation of a campaign's calling hours."""
    assert campaign.schedule is not None
    end, clock_end = campaign.schedule.end_date_time, scenario.clock.end
    if end is not None and (clock_end is None or end <= clock_end):
        return Horizon(end, "endDateTime")
    if clock_end is not None:
        # T5: the instant of clock.end is simulated as well
        return Horizon(clock_end + 1, "clock.end")
    # From midnight, so that the horizon does not cut a window in two.
    first = midnight(thai_date(start_of(campaign)))
    return Horizon(first + WEEKS * 7 * DAY, f"{WEEKS} weeks")


def _cuts(
    campaign: Campaign, week: Week, dates: list[date], calendar: Calendar, within: Span
) -> Iterator[Span]:
    """Yield the spans in which the weekly windows are open outside the calling hours."""
    # Neighbouring spans with nothing but closed time between them are joined: a long weekend is one
    # pause, not three.
    cut: Span | None = None
    for day in dates:
        wanted, opened = called_on(campaign, day, calendar), week[day.isoweekday()]
        minutes = sorted({m for span in (*opened, *wanted) for m in span})
        for low, high in pairwise(minutes):
            start, end = (
                min(max(midnight(day) + minute * MINUTE, within[0]), within[1])
                for minute in (low, high)
            )
            # Closed by the window already, so that no pause is needed.
            if start == end or not _covers(opened, low):
                continue
            if not _covers(wanted, low):
                cut = (start if cut is None else cut[0], end)
            elif cut is not None:
                yield cut
                cut = None
    if cut is not None:
        yield cut


def _covers(spans: tuple[Range, ...], minute: int) -> bool:
    return any(start <= minute < end for start, end in spans)


def _pauses(
    owner: Organization, campaign: Campaign, cuts: list[Span], horizon: Horizon
) -> Iterator[TimelineAction]:
    """Yield pauses and resumes, so that calls are made outside cuts and pauses of the timeline."""
    # A pause of the timeline lasts until its own resume. A resume inside a cut is followed by
    # another pause at the same instant, since the timeline cannot be changed.
    own = defaultdict(list)
    for action in owner.timeline:
        if action.campaign == campaign.name and action.at >= (campaign.scheduled_at or 0):
            own[action.at].append(action.action)
    by_user = paused = False
    edges = {edge for cut in cuts for edge in cut}
    instants = {edge for edge in edges if horizon.holds_at(edge)} | set(own)
    for at in sorted(instants):
        for done in own[at]:
            if done in ("cancel", "delete"):
                return
            if done == "pause":
                by_user = paused = True
            elif done == "resume":
                by_user = paused = False
        wanted = by_user or any(start <= at < end for start, end in cuts)
        if wanted != paused:
            yield TimelineAction.model_construct(
                at=at, action="pause" if wanted else "resume", campaign=campaign.name
            )
            paused = wanted


# -- lines -----------------------------------------------------------------------------------------


def _lines(scenario: Scenario, owner: Organization) -> CompiledHours:
    clock, usual = scenario.clock, owner.max_concurrent_calls
    first = thai_date(clock.start)
    horizon = Horizon(midnight(first) + WEEKS * 7 * DAY, f"{WEEKS} weeks")
    if clock.end is not None:
        horizon = Horizon(clock.end + 1, "clock.end")
    changes = [
        (midnight(day) + minute * MINUTE, count)
        for day in days_between(first, thai_date(horizon.at - 1))
        for minute, count in lines_of(owner.lines, usual, day, scenario.days).items()
    ]
    # Of the changes before the run begins, the last one is in force then.
    begun = max(index for index, (at, _) in enumerate(changes) if at <= clock.start)
    changes = [(max(at, clock.start), count) for at, count in changes[begun:] if at < horizon.at]
    if not horizon.is_known:
        # Beyond the compiled weeks the usual number applies, not whatever the last day had.
        changes.append((horizon.at, usual))
    limits = [usual, *(count for _, count in changes)]
    actions = tuple(
        TimelineAction.model_construct(at=at, action="setConcurrency", value=count)
        for before, (at, count) in zip(limits, changes, strict=False)
        if count != before
    )
    return CompiledHours(owner.name, None, horizon, actions)


# -- warnings about unintended settings -----------------------------------------------------------

_LONG_CALL = 15
"""Assumed length of a long call, in minutes."""
_SHOWN = 3


def remarks_on_hours(scenario: Scenario) -> Iterator[Remark]:
    """Yield warnings about calendar, calling hours, lines and rules."""
    yield from map(Remark, _on_dates(scenario))
    for position, owner in enumerate(scenario.organizations):
        for campaign in owner.campaigns:
            if campaign.schedule is not None and scenario.compliance:
                for text in _on_rules(scenario, owner, campaign):
                    yield Remark(text, position)


def _last_date(scenario: Scenario) -> date:
    """Return the last compiled date."""
    horizons = [
        horizon_of(scenario, campaign).at
        for owner in scenario.organizations
        for campaign in owner.campaigns
        if campaign.schedule is not None
    ]
    end = scenario.clock.end
    return thai_date(max(horizons, default=scenario.clock.start) if end is None else end)


def _on_dates(scenario: Scenario) -> Iterator[str]:
    calendar = scenario.days
    named = [rule.name for rule in scenario.compliance if _knows_holidays(rule)]
    if named and scenario.calendar is None:
        yield (
            f"Compliance rule {joined(named)} has times for holidays, but no day is a "
            "holiday: write calendar: {holidays: TH} at the top level."
        )
    dates = [(day, "ownHolidays") for day in calendar.own_holidays]
    dates += [(day, "open") for day in calendar.open] + [(day, "closed") for day in calendar.closed]
    dates += [
        (only, f"lines of {owner.name}")
        for owner in scenario.organizations
        for key in owner.lines
        if (only := line_time(key).only) is not None
    ]
    first, last = thai_date(scenario.clock.start), _last_date(scenario)
    outside = [f"{day} ({key})" for day, key in dates if not first <= day <= last]
    if outside:
        yield (
            f"The run, from {first} to {last}, does not reach "
            f"{few(outside[:_SHOWN], len(outside))}."
        )
    if calendar.closed:
        without_hours = [
            f"{campaign.name} of {owner.name}"
            for owner in scenario.organizations
            for campaign in owner.campaigns
            if campaign.calling_hours is None and campaign.schedule is not None
        ]
        if without_hours:
            yield (
                "The calendar has closed dates, and campaigns without callingHours call on them: "
                f"{few(without_hours[:_SHOWN], len(without_hours))}. Give them callingHours."
            )


def _knows_holidays(rule: ComplianceRule) -> bool:
    return rule.contact is not None and rule.contact.holiday not in (None, rule.contact.weekday)


def _on_rules(scenario: Scenario, owner: Organization, campaign: Campaign) -> Iterator[str]:
    schedule, days = campaign.schedule, scenario.days
    assert schedule is not None
    where = f"Campaign {campaign.name} of {owner.name}"
    first = thai_date(start_of(campaign))
    last = thai_date(max(start_of(campaign), horizon_of(scenario, campaign).at - 1))
    called = {day: called_on(campaign, day, days) for day in days_between(first, last)}
    for rule in scenario.compliance:
        if rule.contact is not None:
            outside: dict[tuple[str, str], list[date]] = defaultdict(list)
            for day, spans in called.items():
                for span in without(spans, rule.contact.of(day, days)):
                    outside[(_kind(day, days), range_text(span))].append(day)
            outside_texts = [
                f"{kind} {span} (first {listed[0]})" for (kind, span), listed in outside.items()
            ]
            if outside_texts:
                shown = few(outside_texts[:_SHOWN], len(outside_texts), between="; ")
                yield f"{where} may dial outside {rule.name}: {shown}."
            late = _ends_late(called, rule.contact, days)
            if late:
                yield (
                    f"{where} dials until the time of contact of {rule.name} ends, so that calls "
                    f"may end after it: {few(late[:_SHOWN], len(late), between='; ')}. End the "
                    "windows some minutes earlier if conversations count, too."
                )
        if rule.per_day is not None and schedule.max_attempts > rule.per_day:
            # Two dials on one day are possible if the day is longer than the interval between them.
            longest = max(
                (spans[-1][1] - spans[0][0] for spans in called.values() if spans), default=0
            )
            if rule.per_day * schedule.retry_interval < longest * MINUTE:
                often = "once" if rule.per_day == 1 else f"{rule.per_day} times"
                yield (
                    f"{where} may dial a person more than {often} a day, which {rule.name} does "
                    f"not allow: maxAttempts is {schedule.max_attempts}, and retryInterval less "
                    "than a day's calling time."
                )


def _ends_late(
    called: Mapping[date, tuple[Range, ...]], contact: DayClasses, days: Calendar
) -> list[str]:
    """Return a text for each end of permitted contact that a call dialled in time may outlast.

    These are the ends less than `_LONG_CALL` minutes after the last dial; a text for each kind of
    day and time, with the first date.
    """
    found: dict[tuple[str, int], date] = {}
    for day, spans in called.items():
        for _, end in contact.of(day, days):
            if end < 24 * 60 and any(end - _LONG_CALL < last <= end for _, last in spans):
                found.setdefault((_kind(day, days), end), day)
    return [f"{kind} {clock_text(end)} (first {day})" for (kind, end), day in found.items()]


def called_on(campaign: Campaign, day: date, calendar: Calendar) -> tuple[Range, ...]:
    """Return the ranges in which a campaign may call people on a date."""
    if campaign.calling_hours is not None:
        return () if day in calendar.closed else campaign.calling_hours.of(day, calendar)
    assert campaign.schedule is not None
    return week_of(campaign.schedule.time_windows).get(day.isoweekday(), ())


def _kind(day: date, days: Calendar) -> str:
    kind = days.day_class(day)
    return {"weekday": "on weekdays", "saturday": "on Saturdays", "sunday": "on Sundays"}.get(
        kind, "on holidays"
    )


# -- starts and deadlines on days without calls ----------------------------------------------------

_DAYS_AHEAD = 400
"""Days within which the next day with calls is looked for."""


def closed_starts(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each campaign that starts on a holiday, or outside its windows."""
    days = scenario.days
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
    days = scenario.days
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


def _why(day: date, days: Calendar, spans: Sequence[Range]) -> str | None:
    """Return why a day is not an ordinary day with calls, as the end of a sentence; else None."""
    if days.day_class(day) == "holiday":
        return f"a holiday ({days.names[day]})"
    if day in days.closed:
        return "a day on which the calendar is closed"
    return None if spans else "outside the calling windows"


def _near(campaign: Campaign, day: date, days: Calendar, way: int) -> str | None:
    """Return when calls first start after a day (`way` 1), or last end before it (-1), in words."""
    for step in range(1, _DAYS_AHEAD):
        other = day + timedelta(days=way * step)
        if spans := called_on(campaign, other, days):
            minute = spans[0][0] if way > 0 else spans[-1][1]
            at = minute_text(midnight(other) + minute * MINUTE)
            return f"on {at}" if way > 0 else f"until {at}"
    return None


def _texts(spans: Sequence[Range]) -> str:
    return joined([range_text(span).replace("-", " to ") for span in spans])
