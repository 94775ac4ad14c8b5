"""What somebody does while it runs: the file's schedule requests and timeline (T4 step 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from simpy.events import Event

from dialsim.engine.clock import At, Clock, Step
from dialsim.engine.trace import Refusal, Trace
from dialsim.interface.errors import Refused
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.timeline import TimelineAction

if TYPE_CHECKING:
    from dialsim.engine.campaign import Campaign
    from dialsim.engine.dialler import Dialler


class Deed(NamedTuple):
    """One thing somebody does: `command` raises `Refused` where the rules forbid it."""

    at: int
    organization: int
    campaign: int | None
    action: str
    command: Callable[[], None]


def lay_out(clock: Clock, diallers: list[Dialler], trace: Trace) -> None:
    """Put the scenario's schedule requests and timeline actions on the clock.

    Those of one instant are one event: requests first, then actions, each in file order (T4).
    """
    by_instant: defaultdict[int, list[Deed]] = defaultdict(list)
    for deed in (*_requests(diallers), *_actions(diallers)):
        by_instant[deed.at].append(deed)
    for instant, deeds in by_instant.items():
        At(clock, instant, Step.ACTIONS, _carrying_out(deeds, trace))


def lay_out_request(clock: Clock, campaign: Campaign, trace: Trace) -> None:
    """Put the schedule request of an added campaign on the clock, behind what stands there (T4)."""
    for deed in _request(campaign):
        At(clock, deed.at, Step.ACTIONS, _carrying_out([deed], trace))


def _carrying_out(deeds: list[Deed], trace: Trace) -> Callable[[Event], None]:
    def carry_out(_event: Event) -> None:
        for deed in deeds:
            try:
                deed.command()
            except Refused as refusal:
                trace.refused.append(Refusal(*deed[:4], refusal.code, refusal.message))

    return carry_out


def _requests(diallers: list[Dialler]) -> Iterator[Deed]:
    for dialler in diallers:
        for campaign in dialler.campaigns:
            yield from _request(campaign)


def _request(campaign: Campaign) -> Iterator[Deed]:
    block = campaign.block
    request, at = block.schedule, block.scheduled_at
    if request is not None and at is not None:
        command = partial(campaign.schedule, request)
        yield Deed(at, block.organization, block.position, "schedule", command)


def _actions(diallers: list[Dialler]) -> Iterator[Deed]:
    for dialler in diallers:
        campaigns = {campaign.block.name: campaign for campaign in dialler.campaigns}
        for action in dialler.block.settings.timeline:
            campaign = campaigns[action.campaign] if action.campaign is not None else None
            position = campaign.block.position if campaign is not None else None
            command = _command(dialler, campaign, action)
            yield Deed(action.at, dialler.block.position, position, action.action, command)


def _command(
    dialler: Dialler, campaign: Campaign | None, action: TimelineAction
) -> Callable[[], None]:
    if campaign is None:
        return _organization_command(dialler, action)
    return _campaign_command(campaign, action)


def _organization_command(dialler: Dialler, action: TimelineAction) -> Callable[[], None]:
    match action:
        case TimelineAction(action="setConcurrency", value=int(limit)):
            return partial(dialler.set_limit, limit)
        case TimelineAction(action="setCallingAllowed", value=bool(allowed)):
            return partial(dialler.set_calling_allowed, allowed)
        case TimelineAction(action="setWebhookUrl", url=url):
            return partial(dialler.set_webhook_url, url)
        case TimelineAction(action="setBehaviour", agent=str(agent), behaviour=str(behaviour)):
            return partial(dialler.use_behaviour, agent, behaviour)
    raise _unchecked(action)


def _campaign_command(campaign: Campaign, action: TimelineAction) -> Callable[[], None]:
    commands = {
        "pause": campaign.pause,
        "resume": campaign.resume,
        "cancel": campaign.cancel,
        "delete": campaign.delete,
    }
    match action:
        case TimelineAction(action="schedule", body=ScheduleRequest() as request):
            return partial(campaign.schedule, request)
        case TimelineAction(action="reanalyze", share=float(share)):
            return partial(campaign.reanalyze, share)
        case TimelineAction(action=name) if name in commands:
            return commands[name]
    raise _unchecked(action)


def _unchecked(action: TimelineAction) -> AssertionError:
    return AssertionError(f"the scenario's checks let {action!r} pass")
