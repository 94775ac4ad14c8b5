"""Limits on figures that follow from the scenario before any run.

Intervals need two of them. If no draw can change a figure, one run determines it. If draws can, a
run may end later than all observed ones, because some call no longer fitted in before a closing: by
at most `spill_ms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dialsim.engine.rules import week_position
from dialsim.engine.windows import Windows
from dialsim.interface.instants import DAY, MINUTE, THAI_OFFSET, WEEK
from dialsim.results.figures import follows_calls
from dialsim.scenario.campaign import GeneratedRecipients, RecipientsFile
from dialsim.scenario.distribution import Constant, Empirical, Triangular, Uniform

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import Behaviour
    from dialsim.scenario.campaign import Campaign
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.organization import Agent, Organization
    from dialsim.scenario.scenario import Scenario


Place = tuple[str | None, str | None]
"""Organization and campaign; neither for the whole run."""


@dataclass(frozen=True, slots=True)
class _Closings:
    """Ends of a campaign's calling: ms from midnight for each weekday, and pauses by day."""

    by_weekday: tuple[int, ...]
    paused: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Prior:
    """Limits on figures that are known before any run.

    `calls` is True if no draw can change a call, `results` if none can change the results of calls
    either. `spill_ms` is by how much a run may end later than others because of a closing, or one
    more attempt. The defaults apply to unknown scenarios.
    """

    calls: bool = False
    results: bool = False
    spill_ms: int = DAY
    closings: Mapping[Place, _Closings] = field(default_factory=dict, repr=False, compare=False)

    def certain(self, figure: str) -> bool:
        """Return True if a figure is the same in all runs."""
        return self.results if follows_calls(figure) else self.calls

    def closing(self, place: Place, day: int) -> int | None:
        """Instant (ms) at which calling ends on a Thai day, counted from 1 January 1970.

        `place` is an organization and a campaign. None on days without calling, and where several
        campaigns, or none that is known, call.
        """
        known = self.closings.get(place)
        if known is None:
            return None
        begin = day * DAY - THAI_OFFSET
        length = known.by_weekday[week_position(begin) // DAY]
        if not length:
            return None
        return min(begin + length, known.paused.get(day, begin + length))


UNKNOWN = Prior()


def prior_of(scenario: Scenario) -> Prior:
    """Return the limits of a scenario.

    They are conservative: a figure that never varies may be called random, but never the reverse.
    """
    calls = not any(
        _draws_calls(campaign, behaviour) for _, campaign, behaviour in _campaigns(scenario)
    )
    results = calls and not any(
        _draws_results(organization, campaign, behaviour)
        for organization, campaign, behaviour in _campaigns(scenario)
    )
    return Prior(calls, results, _spill(scenario), _closings(scenario))


def _closings(scenario: Scenario) -> dict[Place, _Closings]:
    """Ends of calling of each scheduled campaign, and of a place that has one campaign alone."""
    found: dict[Place, _Closings] = {}
    places: dict[Place, list[_Closings]] = {}
    for organization in scenario.organizations:
        for campaign in organization.campaigns:
            if campaign.schedule is None:
                continue
            ends = [0] * 7
            for item in campaign.schedule.time_windows:
                last = max((span.end_minute for span in item.time), default=0) * MINUTE
                ends[item.day_of_week - 1] = max(ends[item.day_of_week - 1], last)
            closings = _Closings(tuple(ends), _last_pauses(organization, campaign.name))
            found[organization.name, campaign.name] = closings
            for place in ((organization.name, None), (None, None)):
                places.setdefault(place, []).append(closings)
    # Several campaigns may stop calling at different times, so together they have no such limit.
    return found | {place: listed[0] for place, listed in places.items() if len(listed) == 1}


def _last_pauses(organization: Organization, campaign: str) -> dict[int, int]:
    """The pause that a plan was compiled to and that no resume follows, by Thai day."""
    paused: dict[int, int] = {}
    for action in organization.planned:
        if action.campaign in (None, campaign):
            day = (action.at + THAI_OFFSET) // DAY
            if action.action == "pause":
                paused[day] = action.at
            elif action.action == "resume":
                paused.pop(day, None)
    return paused


def _campaigns(scenario: Scenario) -> Iterator[tuple[Organization, Campaign, Behaviour]]:
    """Yield every campaign with each behaviour that its agent may have."""
    for organization in scenario.organizations:
        for campaign in organization.campaigns:
            names = {_agent(organization, campaign).behaviour}
            names |= {
                action.behaviour
                for action in organization.timeline
                if action.agent == campaign.agent and action.behaviour is not None
            }
            for name in sorted(names):
                yield organization, campaign, scenario.behaviours[name]


def _agent(organization: Organization, campaign: Campaign) -> Agent:
    return next(agent for agent in organization.agents if agent.name == campaign.agent)


def _draws_calls(campaign: Campaign, behaviour: Behaviour) -> bool:
    """Return True if a draw may decide how a call of a campaign ends, or its durations."""
    # Random caller IDs and voices do not count: they change no figure except through fatigue, which
    # only changes odds. Scripts and certain outcomes have no odds.
    if not _constant(behaviour.setup_time):
        return True
    if _all_scripted(campaign):
        return False
    odds, ring = behaviour.answered_odds, behaviour.ring_time
    times = {
        "answered": (ring.answered, behaviour.talk_time),
        "no_answer": (ring.no_answer,),
        "busy": (ring.busy,),
        "failed": (ring.failed,),
    }
    possible = [times[outcome] for outcome, share in behaviour.outcomes if share > 0]
    # Odds do not change a certain outcome, except that odds of 0 prevent an answer.
    if 0 in (*odds.by_hour.values(), *odds.by_day.values(), odds.on_holiday, *odds.by_attempt):
        possible.append(times["no_answer"])
    return (
        behaviour.people is not None
        or [share for _, share in behaviour.outcomes if share] != [1]
        or bool(odds.by_segment)
        or not all(_constant(time) for part in possible for time in part)
    )


def _all_scripted(campaign: Campaign) -> bool:
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        return recipients.count == 0
    if isinstance(recipients, RecipientsFile):
        return all(code >= 0 for code in recipients.table.scripts.codes)
    return all(person.script is not None for person in recipients)


def _draws_results(organization: Organization, campaign: Campaign, behaviour: Behaviour) -> bool:
    """Return True if a draw may decide the content, instant or delivery of an analysis."""
    analysis = _agent(organization, campaign).analysis
    shares = [step.share for step in (analysis and analysis.funnel) or ()]
    shares += [action.share for action in organization.timeline if action.campaign == campaign.name]
    if not _all_scripted(campaign):
        shares += [share for _, share in behaviour.rates]
    receiver = organization.webhook.receiver if organization.webhook else None
    times = [behaviour.analysis_delay, behaviour.late_result_delay]
    if receiver is not None:
        shares.append(receiver.error_rate)
        times.append(receiver.latency)
    return (
        any(0 < share < 1 for share in shares)
        or any(len(field.values) > 1 for field in (analysis.fields.values() if analysis else ()))
        or not all(map(_constant, times))
    )


def _constant(distribution: Distribution) -> bool:
    return bool(distribution.dist == "constant")


def _spill(scenario: Scenario) -> int:
    """Return one closing, one retry and one call (ms): the spill beyond the latest observed run."""
    # Calls without an upper limit of their duration add nothing: their tail is covered by the test
    # of skewness.
    closed = [_longest_closed(request) + request.retry_interval for request in _requests(scenario)]
    calls = [
        _longest(behaviour.setup_time)
        + max(_longest(time) for _, time in behaviour.ring_time)
        + _longest(behaviour.talk_time)
        for _, _, behaviour in _campaigns(scenario)
    ]
    return max(closed, default=0) + _longest_pause(scenario) + max(calls, default=0)


def _requests(scenario: Scenario) -> Iterator[ScheduleRequest]:
    for organization in scenario.organizations:
        for campaign in organization.campaigns:
            if campaign.schedule is not None:
                yield campaign.schedule
        for action in organization.timeline:
            if action.body is not None:
                yield action.body


def _longest_pause(scenario: Scenario) -> int:
    """Return the longest pause compiled from a plan (ms)."""
    longest = 0
    for organization in scenario.organizations:
        paused_at: dict[str | None, int] = {}
        for action in organization.planned:
            if action.action == "pause":
                paused_at[action.campaign] = action.at
            elif action.action == "resume" and action.campaign in paused_at:
                longest = max(longest, action.at - paused_at.pop(action.campaign))
    return longest


def _longest_closed(request: ScheduleRequest) -> int:
    """Return the longest time between two windows (ms)."""
    spans = Windows.of(request.time_windows).open_spans(0, 3 * WEEK)
    return int(np.diff(spans.ravel())[1::2].max(initial=0))


def _longest(distribution: Distribution) -> int:
    """Return the upper limit of a distribution (ms); 0 for an unbounded one."""
    match distribution:
        case Constant():
            longest = distribution.value
        case Uniform() | Triangular():
            longest = distribution.high
        case Empirical():
            longest = max(distribution.values)
        case _:
            return distribution.max or 0
    return longest if distribution.max is None else min(longest, distribution.max)
