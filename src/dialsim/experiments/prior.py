"""The prior: what a scenario tells of its runs before any is made.

Two things matter to intervals. Where no draw can change a figure, one run is all there is to know.
Where draws can, a run may end later than any that was seen, because something no longer fitted in:
`spill_ms` says by how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dialsim.engine.windows import Windows
from dialsim.interface.instants import DAY, WEEK
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


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of runs without having made any.

    `calls` says that no draw can change a call, `results` that none can change what comes of calls
    either. `spill_ms` is by how much a run may end later than others for want of room before a
    closing, or by one more attempt. The defaults hold where a scenario isn't known.
    """

    calls: bool = False
    results: bool = False
    spill_ms: int = DAY

    def certain(self, figure: str) -> bool:
        """Whether a figure is the same in all runs, so that one run tells all."""
        return self.results if follows_calls(figure) else self.calls


UNKNOWN = Prior()


def prior_of(scenario: Scenario) -> Prior:
    """What a scenario tells of its runs.

    It errs on the side of chance: what is called certain is so whatever the seed and replication,
    but a scenario whose chance happens to change nothing may not be called certain.
    """
    calls = not any(
        _draws_calls(campaign, behaviour) for _, campaign, behaviour in _campaigns(scenario)
    )
    results = calls and not any(
        _draws_results(organization, campaign, behaviour)
        for organization, campaign, behaviour in _campaigns(scenario)
    )
    return Prior(calls, results, _spill(scenario))


def _campaigns(scenario: Scenario) -> Iterator[tuple[Organization, Campaign, Behaviour]]:
    """Every campaign with each behaviour that people may have towards its agent."""
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
    """Whether a draw may decide how a call of a campaign ends, or how long it takes.

    Caller IDs and voices may be drawn: what a call shows changes no figure unless numbers tire,
    and that changes only odds, which a script, or a single outcome, has none of.
    """
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
    # odds change no certain outcome, but odds of 0 turn an answer into none
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
    """Whether a draw may decide what an analysis says, when it is there, or how it is delivered."""
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
    """One closing, one retry and one call more than the latest run that was seen (ms).

    Of a call whose time has no upper end, the tail is a matter of skewness and not of spilling.
    """
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
    """The longest pause that a plan was compiled to (ms)."""
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
    """The longest time between two windows (ms)."""
    spans = Windows.of(request.time_windows).open_spans(0, 3 * WEEK)
    return int(np.diff(spans.ravel())[1::2].max(initial=0))


def _longest(distribution: Distribution) -> int:
    """The longest that a distribution draws (ms); 0 for one without an upper end."""
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
