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

if TYPE_CHECKING:
    from dialsim.engine.dialler import Dialler
    from dialsim.scenario.models import TimelineAction


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
            block = campaign.block
            request, at = block.schedule, block.scheduled_at
            if request is not None and at is not None:
                command = partial(campaign.schedule, request)
                yield Deed(at, block.organization, block.position, "schedule", command)


def _actions(diallers: list[Dialler]) -> Iterator[Deed]:
    for dialler in diallers:
        positions = {campaign.block.name: campaign.block.position for campaign in dialler.campaigns}
        for action in dialler.block.settings.timeline:
            campaign = None if action.campaign is None else positions[action.campaign]
            command = _command(dialler, action, campaign)
            yield Deed(action.at, dialler.block.position, campaign, action.action, command)


def _command(dialler: Dialler, action: TimelineAction, position: int | None) -> Callable[[], None]:
    if action.action == "setConcurrency":
        return partial(dialler.set_limit, action.value)
    if action.action == "setBehaviour":
        return partial(dialler.use_behaviour, action.agent, action.behaviour)
    assert position is not None, f"{action.action} names a campaign"
    campaign = dialler.campaigns[position]
    if action.action == "schedule":
        return partial(campaign.schedule, action.body)
    commands = {
        "pause": campaign.pause,
        "resume": campaign.resume,
        "cancel": campaign.cancel,
        "delete": campaign.delete,
    }
    return commands[action.action]
