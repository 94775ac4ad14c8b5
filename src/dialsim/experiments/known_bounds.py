"""Limits on figures that follow from the scenario before any run.

If no draw can change a figure, one run is enough. Otherwise a further run may end on another day
than the runs so far. The calendars of the campaigns give the calling time left until the end of a
day, and the closed time after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.rules import Windows
from dialsim.interface.instants import DAY, THAI_OFFSET, WEEK
from dialsim.results.campaigns import union
from dialsim.results.figures import OWN_FIGURES, follows_calls
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
WHOLE: Place = (None, None)

Values = NDArray[np.float64]


def campaigns_at(scenario: Scenario, place: Place = WHOLE) -> Iterator[Campaign]:
    """Yield the campaigns at a place; a campaign without an organization is any of that name."""
    organization, name = place
    for owner in scenario.organizations:
        for campaign in owner.campaigns:
            if organization in (None, owner.name) and name in (None, campaign.name):
                yield campaign


class Finishes(NamedTuple):
    """Finishes of one campaign in several runs: calling time and closed time around them (ms).

    `closed` is the time until each finish in which windows were closed. `left` is the calling time
    from each finish to the closing after the latest finish, `since` the calling time from the
    opening before the earliest finish to each finish. `night` is the closed time after that
    closing, `before` the closed time before that opening, 0 if no run can finish earlier.
    """

    closed: Values
    left: Values
    since: Values
    night: int
    before: int


@dataclass(frozen=True, slots=True)
class CampaignCalendar:
    """Calling hours of a campaign: the windows of its request without its pauses.

    Time counts from `origin` (ms). `longest_call` is the longest duration of a call (ms), without
    parts that have no upper limit. `is_light` is True if no part has a tail heavier than
    exponential.
    """

    organization: str
    campaign: str
    request: ScheduleRequest
    pauses: tuple[tuple[int, int], ...]
    origin: int
    longest_call: int
    is_light: bool

    @property
    def retries(self) -> int:
        """Longest delay (ms) of a finish by all attempts after the first."""
        return (self.request.max_attempts - 1) * (self.request.retry_interval + self.longest_call)

    @property
    def longest_night(self) -> int:
        """Longest time (ms) between a closing and the next opening."""
        spans = self.open_spans(self._last_pause_end + 3 * WEEK)
        return int((spans[1:, 0] - spans[:-1, 1]).max(initial=0))

    @property
    def _last_pause_end(self) -> int:
        return max((end for _, end in self.pauses), default=self.origin)

    def left_on(self, day: int, at: Values) -> Values:
        """Return the calling time from instants (ms) to the end of a Thai day's calling.

        Days count from 1 January 1970.
        """
        end = (day + 1) * DAY - THAI_OFFSET
        worked = _worked(self.open_spans(end), np.append(at, end))
        left: Values = worked[-1] - worked[:-1]
        return left

    def finishes(self, at: Values) -> Finishes:
        """Return the calling time and closed time around finite finishes (ms)."""
        # Two more weeks: the next opening is needed, and a pause may last for weeks.
        spans = self.open_spans(max(int(at.max()), self._last_pause_end) + 2 * WEEK)
        starts, ends = spans.T
        windows = np.searchsorted(starts, [at.min(), at.max()], side="right") - 1
        first, last = np.maximum(windows, 0)
        worked = _worked(spans, np.append(at, [starts[first], ends[last]]))
        begin = max(self.origin, self.request.start_date_time or self.origin)
        earlier = first > 0 and ends[first - 1] > begin
        return Finishes(
            at - self.origin - worked[:-2],
            worked[-1] - worked[:-2],
            worked[:-2] - worked[-2],
            int(starts[last + 1] - ends[last]),
            int(starts[first] - ends[first - 1]) if earlier else 0,
        )

    def open_spans(self, until: int) -> NDArray[np.int64]:
        """Return the spans [from, to) in which the campaign may call: int64 of shape (n, 2)."""
        spans = Windows.of(self.request.time_windows).open_spans(self.origin, until)
        for begin, end in self.pauses:
            before = np.column_stack([spans[:, 0], np.minimum(spans[:, 1], begin)])
            after = np.column_stack([np.maximum(spans[:, 0], end), spans[:, 1]])
            cut = np.concatenate([before, after])
            spans = np.sort(cut[cut[:, 0] < cut[:, 1]], axis=0)
        return spans


def _worked(spans: NDArray[np.int64], at: Values) -> Values:
    """Return the calling time within spans until instants (ms)."""
    if not len(spans):
        return np.zeros(len(at))
    edges = spans.ravel()
    is_end = np.arange(len(edges)) % 2
    return np.interp(at, edges, np.cumsum(np.diff(edges, prepend=edges[0]) * is_end))


@dataclass(frozen=True, slots=True)
class KnownBounds:
    """Limits on figures before any run.

    `calls` is True if no draw can change a call, `results` if none can change the results of calls,
    `people` if none can change the people called. `uncut` is True if nothing keeps a campaign from
    making all its calls, `steady` if talk times do not change answers either, `answers` if all
    people answer the first call, `once` if all people are called once. `calendars` has a calendar
    per campaign; `line_prices` is the highest cost of each organization's lines on a day. The
    defaults hold for an unknown scenario.
    """

    calls: bool = False
    results: bool = False
    people: bool = False
    uncut: bool = False
    steady: bool = False
    answers: bool = False
    once: bool = False
    calendars: tuple[CampaignCalendar, ...] = ()
    line_prices: Mapping[str, float] = field(default_factory=dict)

    def certain(self, figure: str) -> bool:
        """True if a figure is the same in all runs, so that one run is enough."""
        if figure in ("people", "people_removed") and self.people:
            return True
        if figure in ("attempts", "attempts_per_person_mean") and self.people and self.once:
            return True
        if figure in OWN_FIGURES:
            return self.results and self.calls
        return self.results if follows_calls(figure) else self.calls

    def rising_in_windows(self, at: Values, level: Values) -> tuple[Values, Values]:
        """Return a curve of finite, ascending instants (ms) that rises only in calling hours.

        Edges of the windows are added to its points. In calling hours it is straight, and it is
        level while all windows are closed.
        """
        if len(at) < 2 or not self.calendars:
            return at, level
        spans = union(each.open_spans(int(at[-1]) + 1) for each in self.calendars)
        edges = spans[(spans > at[0]) & (spans < at[-1])].astype(np.float64)
        left = np.searchsorted(at, edges, side="right") - 1
        worked, here = _worked(spans, at), _worked(spans, edges)
        time = np.maximum(worked[left + 1] - worked[left], 1.0)  # 0 while all are closed
        part = (here - worked[left]) / time
        points = np.append(level, level[left] + part * (level[left + 1] - level[left]))
        order = np.argsort(np.append(at, edges), kind="stable")
        return np.append(at, edges)[order], points[order]

    def band(self, level: Values, early: Values, late: Values) -> tuple[Values, Values]:
        """Return the outline between an early and a late curve: instants (ms) and levels."""
        (x, y), (back, down) = (self.rising_in_windows(side, level) for side in (early, late))
        return np.append(x, back[::-1]), np.append(y, down[::-1])

    def calendars_of(self, place: Place) -> list[CampaignCalendar]:
        """Return the calendars of the campaigns at a place."""
        organization, campaign = place
        return [
            each
            for each in self.calendars
            if organization in (None, each.organization) and campaign in (None, each.campaign)
        ]


UNKNOWN = KnownBounds()


def known_bounds_of(scenario: Scenario) -> KnownBounds:
    """Return the limits of a scenario.

    They are conservative: a figure that never varies may be called random, but never the reverse.
    """
    calls = not any(
        _draws_calls(campaign, behaviour) for _, campaign, behaviour in _campaigns(scenario)
    )
    results = calls and not any(
        _draws_results(organization, campaign, behaviour) or _draws_worth(scenario, campaign)
        for organization, campaign, behaviour in _campaigns(scenario)
    )
    calendars = (*_calendars(scenario),)
    uncut = _is_uncut(scenario, calendars)
    behaviours = [each for *_, each in _campaigns(scenario)]
    alerts = [organization.duplicate_call_alert for organization in scenario.organizations]
    return KnownBounds(
        calls,
        results,
        not any(alerts),
        uncut,
        uncut and all(_is_steady(behaviour) for behaviour in behaviours),
        uncut and all(_answers(behaviour) for behaviour in behaviours),
        uncut and all(calendar.request.max_attempts == 1 for calendar in calendars),
        calendars,
        _line_prices(scenario),
    )


def _draws_worth(scenario: Scenario, campaign: Campaign) -> bool:
    """True if the value of people depends on segments, which are drawn for generated people."""
    recipients, value = campaign.recipients, campaign.value or scenario.value or {}
    drawn = isinstance(recipients, GeneratedRecipients) and recipients.segments is not None
    return drawn and any(isinstance(amount, str) for amount in value.values())


def _line_prices(scenario: Scenario) -> dict[str, float]:
    """Return the highest cost of each organization's lines on a day with calls."""
    price = scenario.costs.per_line_day if scenario.costs else 0.0
    prices = {owner.name: price * max(owner.limits) for owner in scenario.organizations}
    return {name: price for name, price in prices.items() if price}


def _is_uncut(scenario: Scenario, calendars: Sequence[CampaignCalendar]) -> bool:
    """True if nothing keeps a campaign from making all its calls."""
    return (
        scenario.clock.end is None
        and not any(organization.timeline for organization in scenario.organizations)
        and all(calendar.request.end_date_time is None for calendar in calendars)
    )


def _is_steady(behaviour: Behaviour) -> bool:
    """True if answers do not depend on when a call is made."""
    odds = behaviour.answered_odds
    by_time = (*odds.by_hour.values(), *odds.by_day.values(), odds.on_holiday)
    return odds.by_caller_id_use is None and all(factor == 1 for factor in by_time)


def _answers(behaviour: Behaviour) -> bool:
    """True if every first call is answered."""
    return (
        behaviour.people is None
        and [name for name, share in behaviour.outcomes if share] == ["answered"]
        and not behaviour.answered_odds.by_segment
        and 0 not in _odds(behaviour)
    )


def _odds(behaviour: Behaviour) -> tuple[float, ...]:
    odds = behaviour.answered_odds
    return (*odds.by_hour.values(), *odds.by_day.values(), odds.on_holiday, *odds.by_attempt)


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
    ring = behaviour.ring_time
    times = {
        "answered": (ring.answered, behaviour.talk_time),
        "no_answer": (ring.no_answer,),
        "busy": (ring.busy,),
        "failed": (ring.failed,),
    }
    possible = [times[outcome] for outcome, share in behaviour.outcomes if share > 0]
    # Odds change no certain outcome, except that odds of 0 prevent every answer.
    if 0 in _odds(behaviour):
        possible.append(times["no_answer"])
    return (
        behaviour.people is not None
        or [share for _, share in behaviour.outcomes if share] != [1]
        or bool(behaviour.answered_odds.by_segment)
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


def _calendars(scenario: Scenario) -> Iterator[CampaignCalendar]:
    """Return the calendar of every campaign that is scheduled."""
    of_campaign: dict[int, list[Behaviour]] = {}
    for _, campaign, behaviour in _campaigns(scenario):
        of_campaign.setdefault(id(campaign), []).append(behaviour)
    for organization in scenario.organizations:
        for campaign in organization.campaigns:
            own = [a for a in organization.timeline if a.campaign == campaign.name and a.body]
            requests = [campaign.schedule, *(action.body for action in own)]
            request = next((each for each in requests if each is not None), None)
            if request is None:
                continue
            behaviours = of_campaign[id(campaign)]
            yield CampaignCalendar(
                organization.name,
                campaign.name,
                request,
                tuple(_pauses(organization, campaign.name)),
                scenario.calling_begins,
                max(map(_longest_call, behaviours)),
                all(_is_light(behaviour.talk_time) for behaviour in behaviours),
            )


def _pauses(organization: Organization, campaign: str) -> Iterator[tuple[int, int]]:
    """Yield the spans (ms) in which the timeline or compiled actions pause a campaign."""
    paused_at = None
    for action in organization.actions:
        if action.campaign not in (None, campaign):
            continue
        if action.action == "pause" and paused_at is None:
            paused_at = action.at
        elif action.action == "resume" and paused_at is not None:
            yield paused_at, action.at
            paused_at = None


def _longest_call(behaviour: Behaviour) -> int:
    """Return the longest time of a call (ms), without parts that have no upper end."""
    rings = max(_longest(time) for _, time in behaviour.ring_time)
    return _longest(behaviour.setup_time) + rings + _longest(behaviour.talk_time)


def _is_light(distribution: Distribution) -> bool:
    """True if the tail of a distribution is no heavier than exponential."""
    match distribution.dist:
        case "lognormal":
            return distribution.max is not None or distribution.sd == 0
        case "weibull":
            return distribution.max is not None or distribution.sd <= distribution.mean
    return True


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
