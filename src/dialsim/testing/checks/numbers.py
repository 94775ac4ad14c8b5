"""Checks of what a dial shows: its caller ID (P3) and its voice (P4)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialsim.interface.schedule import ScheduleRequest
from dialsim.testing.checks.record import CampaignRecord, kinds
from dialsim.testing.violation import Violation

_DIALS = kinds("dialled")
_STANDS = kinds("ringing", "answered", "ended", "nothing")


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a dial's number or voice."""
    if campaign.scheduled is None:
        return
    rows, world = campaign.rows, campaign.run.trace.world
    dials = _DIALS[rows.kind]
    numbers = _numbers(campaign, campaign.scheduled.request)
    known = [index for index, text in enumerate(world.numbers) if text in numbers]
    yield from campaign.breaches(
        dials & ~np.isin(rows.number, known),
        "P3",
        lambda row: f"dialled from {world.numbers[rows.number[row]]}, not one of its numbers",
    )
    voices = campaign.scheduled.request.tts_voice_keys or (campaign.block.agent.voice_key,)
    spoken = [index for index, key in enumerate(world.voice_keys) if key in voices]
    yield from campaign.breaches(
        dials & ~np.isin(rows.voice, [-1] if voices == (None,) else spoken),
        "P4",
        "speaks with a voice that is not one of its own",
    )
    yield from _one_after_the_other(campaign, several=len(numbers) > 1)


def _one_after_the_other(campaign: CampaignRecord, *, several: bool) -> Iterator[Violation]:
    """A redial shows the number of the dial that was withdrawn (C4), a retry another (P3)."""
    rows, world = campaign.rows, campaign.run.trace.world
    dialled = np.flatnonzero(_DIALS[rows.kind])
    person, call, number = rows.recipient[dialled], rows.call[dialled], rows.number[dialled]
    again = (person[1:] == person[:-1]) & (call[1:] == call[:-1])
    for index in np.flatnonzero(again & (number[1:] != number[:-1])).tolist():
        row = int(dialled[index + 1])
        yield campaign.breach_at(row, "C4", int(rows.at[row]), "the redial shows another number")
    if not several:
        return
    stands = _STANDS[rows.then[dialled]]
    dialled, person, number = dialled[stands], person[stands], number[stands]
    repeated = (person[1:] == person[:-1]) & (number[1:] == number[:-1])
    for index in np.flatnonzero(repeated).tolist():
        row = int(dialled[index + 1])
        text = f"{world.numbers[number[index]]} was the number of the call before as well"
        yield campaign.breach_at(row, "P3", int(rows.at[row]), text)


def _numbers(campaign: CampaignRecord, request: ScheduleRequest) -> set[str]:
    """The numbers that the campaign may show (P3)."""
    world, block = campaign.run.trace.world, campaign.block
    if request.caller_ids is not None:
        return set(request.caller_ids)
    account = world.organizations[block.organization].settings.calling_account()
    shared_number = world.scenario.service.shared_number
    return {account.sip_number(request) or block.agent.caller_id or shared_number}
