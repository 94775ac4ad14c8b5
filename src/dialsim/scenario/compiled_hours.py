"""Calling hours compiled to the means of the interface: windows, pauses and resumes (T6).

The interface has one week of windows per campaign, and no dates. So the windows of a day of the
week are the union of the calling hours of its dates. The campaign is paused where a date has less.
Lines by time become settings of maxConcurrentCalls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

from dialsim.interface.instants import (
    DAY,
    MINUTE,
    WEEKDAYS,
    clock_text,
    format_instant,
    midnight,
    thai_date,
)
from dialsim.interface.phrases import few, joined
from dialsim.interface.schedule import DayWindows
from dialsim.scenario.calendar import (
    DayClasses,
    Days,
    Range,
    days_between,
    line_time,
    lines_of,
    range_text,
    time_windows,
    union,
    without,
)
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.compliance import ComplianceRule
from dialsim.scenario.document import Cursor
from dialsim.scenario.organization import Organization, TimelineAction
from dialsim.scenario.problems import Problems, Remark
from dialsim.scenario.scenario import Scenario

WEEKS = 13
"""Compiled weeks of a campaign without an end."""
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
        """True if the file sets it; no call comes after it."""
        return self.source in ("endDateTime", "clock.end")

    def holds_at(self, instant: int) -> bool:
        """Return True if an action is needed at an instant."""
        # At a known end the campaign or the run is over, and an action would be refused.
        return instant < self.at or (instant == self.at and not self.is_known)


@dataclass(frozen=True, slots=True)
class CompiledCampaign:
    """Compiled calling hours of a campaign: windows of its request, pauses and resumes."""

    organization: str
    name: str
    horizon: Horizon
    time_windows: tuple[DayWindows, ...]
    actions: tuple[TimelineAction, ...]


@dataclass(frozen=True, slots=True)
class CompiledLines:
    """Compiled lines of an organization."""

    organization: str
    horizon: Horizon
    actions: tuple[TimelineAction, ...]


@dataclass(frozen=True, slots=True)
class CompiledHours:
    """Compiled calling hours and lines of a scenario."""

    campaigns: tuple[CompiledCampaign, ...]
    lines: tuple[CompiledLines, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, in the words of scenario files and of the interface."""
        return {
            "campaigns": [
                {
                    "organization": part.organization,
                    "campaign": part.name,
                    "until": format_instant(part.horizon.at),
                    "timeWindows": [
                        day.model_dump(mode="json", by_alias=True) for day in part.time_windows
                    ],
                    "timeline": [*map(_plain, part.actions)],
                }
                for part in self.campaigns
            ],
            "lines": [
                {
                    "organization": part.organization,
                    "until": format_instant(part.horizon.at),
                    "timeline": [*map(_plain, part.actions)],
                }
                for part in self.lines
            ],
        }


def _plain(action: TimelineAction) -> dict[str, Any]:
    given = {"campaign": action.campaign, "value": action.value}
    said = {key: value for key, value in given.items() if value is not None}
    return {"at": format_instant(action.at), "action": action.action, **said}


def week_text(windows: tuple[DayWindows, ...]) -> Iterator[str]:
    """Yield the windows of a week, equal days together: `Mon-Fri 08:00-20:00`."""
    said = {
        day.day_of_week: ", ".join(f"{span.start}-{span.end}" for span in day.time)
        for day in windows
    }
    first = 1
    for number in range(1, 8):
        # A run of equal days is printed at its last one.
        if number < 7 and said.get(number) == said.get(number + 1):
            continue
        names = WEEKDAYS[first - 1] + (f"-{WEEKDAYS[number - 1]}" if first < number else "")
        yield f"{names} {said.get(number, 'closed')}"
        first = number + 1


def holidays_listed(scenario: Scenario) -> dict[date, str]:
    """Return the holidays in the years of the run, with their names."""
    first, last = thai_date(scenario.clock.start).year, _last_date(scenario).year
    names = {} if scenario.calendar is None else scenario.calendar.names
    return {day: name for day, name in names.items() if first <= day.year <= last}


def compiled_hours(scenario: Scenario) -> CompiledHours:
    """Return the compiled calling hours and lines of a scenario."""
    days = Days(scenario.calendar)
    owned = [(owner, campaign) for owner in scenario.organizations for campaign in owner.campaigns]
    return CompiledHours(
        campaigns=tuple(
            _campaign(scenario, owner, campaign, days)
            for owner, campaign in owned
            if campaign.calling_hours is not None and campaign.schedule is not None
        ),
        lines=tuple(
            _lines(scenario, owner, days) for owner in scenario.organizations if owner.lines
        ),
    )


def with_compiled_hours(scenario: Scenario, root: Cursor, problems: Problems) -> Scenario:
    """Return the scenario with holidays looked up, and with calling hours and lines compiled.

    Settings that cannot be compiled are reported.
    """
    calendar = scenario.calendar
    if calendar is not None:
        years = _years(scenario)
        known = calendar.years_known()
        if known is not None and not (years.start in known and _last_year(scenario) in known):
            says = (
                f"has no holidays for every year from {years.start} to {_last_year(scenario)}: "
                f"those of {calendar.holidays} are known for {known.start} to {known.stop - 1}"
            )
            problems.add(root.at("calendar", "holidays"), says)
        calendar.resolve(years)
    made = compiled_hours(scenario)
    campaigns = {(part.organization, part.name): part for part in made.campaigns}
    lines = {part.organization: part.actions for part in made.lines}
    organizations = []
    for o, owner in enumerate(scenario.organizations):
        campaigns_now, actions = [], [*lines.get(owner.name, ())]
        for c, campaign in enumerate(owner.campaigns):
            part = campaigns.get((owner.name, campaign.name))
            if part is None or campaign.schedule is None:
                campaigns_now.append(campaign)
                continue
            if not part.time_windows:
                block = root.at("organizations", o, "campaigns", c, "callingHours")
                first = thai_date(start_of(campaign)).isoformat()
                last = thai_date(part.horizon.at - 1).isoformat()
                problems.add(block, f"leaves no time for any call from {first} to {last}")
            # model_copy skips validation: an empty list, reported above, would fail it.
            schedule = campaign.schedule.model_copy(update={"time_windows": part.time_windows})
            campaigns_now.append(campaign.model_copy(update={"schedule": schedule}))
            actions += part.actions
        changed = owner
        if campaigns_now != [*owner.campaigns] or actions:
            # Stable, so that limits come before pauses of the same instant.
            actions.sort(key=lambda action: action.at)
            changed = owner.model_copy(update={"campaigns": tuple(campaigns_now)})
            changed = changed.with_compiled_actions(actions)
        organizations.append(changed)
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


def _campaign(
    scenario: Scenario, owner: Organization, campaign: Campaign, days: Days
) -> CompiledCampaign:
    hours = campaign.calling_hours
    assert hours is not None
    start, horizon = start_of(campaign), horizon_of(scenario, campaign)
    # Every week is the same: windows suffice, without any pause.
    if hours.holiday is None and not scenario.has_closed_dates:
        weekly = {number: hours.of_weekday(number) for number in range(1, 8)}
        return CompiledCampaign(owner.name, campaign.name, horizon, time_windows(weekly), ())
    weekly_spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    dates = [*days_between(thai_date(start), thai_date(max(start, horizon.at - 1)))]
    for day in dates:
        # Windows repeat weekly: each gets all that any date of its weekday needs, and pauses cut
        # the other dates.
        weekly_spans[day.isoweekday()] += hours_on(hours, day, days)
    windows = {number: union(spans) for number, spans in weekly_spans.items()}
    cuts = [*_cuts(hours, windows, dates, days, (start, horizon.at))]
    if not horizon.is_known:
        cuts.append((horizon.at, _NEVER))  # no calls after the horizon
    actions = _pauses(owner, campaign, cuts, horizon)
    return CompiledCampaign(
        owner.name, campaign.name, horizon, time_windows(windows), tuple(actions)
    )


_NEVER = 1 << 62


def horizon_of(scenario: Scenario, campaign: Campaign) -> Horizon:
    """Return the instant up to which a campaign's calling hours are compiled."""
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


def hours_on(hours: DayClasses, day: date, days: Days) -> tuple[Range, ...]:
    """Return the ranges of the calling hours on a date."""
    return () if days.is_closed(day) else hours.of(day, days)


def _cuts(
    hours: DayClasses,
    windows: dict[int, tuple[tuple[int, int], ...]],
    dates: list[date],
    days: Days,
    within: Span,
) -> Iterator[Span]:
    """Yield the spans in which the weekly windows are open outside the calling hours."""
    # Neighbouring spans with nothing but closed time between them are joined: a long weekend is one
    # pause, not three.
    cut: Span | None = None
    for day in dates:
        wanted = hours_on(hours, day, days)
        minutes = sorted({m for span in (*windows[day.isoweekday()], *wanted) for m in span})
        for low, high in pairwise(minutes):
            start, end = (
                min(max(midnight(day) + minute * MINUTE, within[0]), within[1])
                for minute in (low, high)
            )
            # Closed by the window already, so that no pause is needed.
            if start == end or not _covers(windows[day.isoweekday()], low):
                continue
            if not _covers(wanted, low):
                cut = (start if cut is None else cut[0], end)
            elif cut is not None:
                yield cut
                cut = None
    if cut is not None:
        yield cut


def _covers(spans: tuple[tuple[int, int], ...], minute: int) -> bool:
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


def _lines(scenario: Scenario, owner: Organization, days: Days) -> CompiledLines:
    clock, usual = scenario.clock, owner.max_concurrent_calls
    first = thai_date(clock.start)
    horizon = Horizon(midnight(first) + WEEKS * 7 * DAY, f"{WEEKS} weeks")
    if clock.end is not None:
        horizon = Horizon(clock.end + 1, "clock.end")
    actions, limit = [], usual
    for day in days_between(first, thai_date(horizon.at - 1)):
        changes = [*lines_of(owner.lines, usual, day, days).items()]
        for index, (minute, count) in enumerate(changes):
            at = midnight(day) + minute * MINUTE
            following = changes[index + 1][0] * MINUTE if index + 1 < len(changes) else DAY
            # Changes that are over before the run begins, or change nothing, would only fill the
            # timeline.
            if midnight(day) + following <= clock.start or at >= horizon.at or count == limit:
                continue
            limit = count
            at = max(at, clock.start)
            actions.append(_set_lines(at, count))
    if limit != usual and not horizon.is_known:
        # Beyond the compiled weeks the usual number applies, not whatever the last day had.
        actions.append(_set_lines(horizon.at, usual))
    return CompiledLines(owner.name, horizon, tuple(actions))


def _set_lines(at: int, count: int) -> TimelineAction:
    return TimelineAction.model_construct(at=at, action="setConcurrency", value=count)


# -- what may not be meant ------------------------------------------------------------------------

_LONG_CALL = 15
"""Minutes within which a call may end after its window."""
_SHOWN = 3


def remarks_on_hours(scenario: Scenario) -> Iterator[Remark]:
    """Yield warnings about calendar, calling hours, lines and rules."""
    days = Days(scenario.calendar)
    last = _last_date(scenario)
    yield from map(Remark, _on_calendar(scenario, last))
    for position, owner in enumerate(scenario.organizations):
        for key in owner.lines:
            only = line_time(key).only
            if only is not None and not _runs_on(scenario, only, last):
                says = (
                    f"Lines of {owner.name} on {only} have no effect: the run does not get there."
                )
                yield Remark(says, position)
        for campaign in owner.campaigns:
            if campaign.schedule is None:
                continue
            for text in _on_campaign(scenario, owner, campaign, days):
                yield Remark(text, position)


def _runs_on(scenario: Scenario, day: date, last: date) -> bool:
    return thai_date(scenario.clock.start) <= day <= last


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


def _on_calendar(scenario: Scenario, last: date) -> Iterator[str]:
    calendar = scenario.calendar
    if calendar is None:
        named = [rule.name for rule in scenario.compliance if _knows_holidays(rule)]
        if named:
            yield (
                f"Compliance rule {joined(named)} has times for holidays, and no day is "
                "one: write calendar: {holidays: TH} at the top level."
            )
        return
    outside = [
        f"{day} ({key})"
        for key, listed in (
            ("ownHolidays", [*calendar.own_holidays]),
            ("open", calendar.open),
            ("closed", calendar.closed),
        )
        for day in listed
        if not _runs_on(scenario, day, last)
    ]
    if outside:
        yield (
            f"The calendar has dates that the run does not reach, from "
            f"{thai_date(scenario.clock.start)} to {last}: {few(outside[:_SHOWN], len(outside))}."
        )
    none = [str(day) for day in calendar.open if not calendar.is_listed(day)]
    if none:
        yield (
            f"The calendar has {few(none[:_SHOWN], len(none))} under open, which is no holiday of "
            f"{calendar.holidays or 'any country'}: it is an ordinary day anyhow."
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


def _on_campaign(
    scenario: Scenario, owner: Organization, campaign: Campaign, days: Days
) -> Iterator[str]:
    schedule = campaign.schedule
    assert schedule is not None
    where = f"Campaign {campaign.name} of {owner.name}"
    first = thai_date(start_of(campaign))
    last = thai_date(max(start_of(campaign), horizon_of(scenario, campaign).at - 1))
    if not scenario.compliance:
        return
    called = {day: called_on(campaign, day, days) for day in days_between(first, last)}
    for rule in scenario.compliance:
        if rule.contact is not None:
            outside: dict[tuple[str, str], list[date]] = defaultdict(list)
            for day, spans in called.items():
                for span in without(spans, rule.contact.of(day, days)):
                    outside[(_kind(day, days), range_text(span))].append(day)
            told = [
                f"{kind} {span} (first {listed[0]})" for (kind, span), listed in outside.items()
            ]
            if told:
                shown = few(told[:_SHOWN], len(told), between="; ")
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
    called: Mapping[date, tuple[Range, ...]], contact: DayClasses, days: Days
) -> list[str]:
    """Return the ends of contact, by kind of day, that calls of the last minutes may overrun."""
    found: dict[tuple[str, int], date] = {}
    for day, spans in called.items():
        for _, end in contact.of(day, days):
            if end < 24 * 60 and any(end - _LONG_CALL < last <= end for _, last in spans):
                found.setdefault((_kind(day, days), end), day)
    return [f"{kind} {clock_text(end)} (first {day})" for (kind, end), day in found.items()]


def called_on(campaign: Campaign, day: date, days: Days) -> tuple[Range, ...]:
    """Return the ranges in which a campaign may call people on a date."""
    if campaign.calling_hours is not None:
        return hours_on(campaign.calling_hours, day, days)
    assert campaign.schedule is not None
    return union(
        (span.start_minute, span.end_minute)
        for item in campaign.schedule.time_windows
        if item.day_of_week == day.isoweekday()
        for span in item.time
    )


def _kind(day: date, days: Days) -> str:
    kind = days.day_class(day)
    return {"weekday": "on weekdays", "saturday": "on Saturdays", "sunday": "on Sundays"}.get(
        kind, "on holidays"
    )
