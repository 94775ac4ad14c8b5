"""Checks of calls one by one: changes, windows, waits, what a dial shows (P1 to P4, T3, Q5, Q6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialsim.engine.trace import CHANGES
from dialsim.interface.schedule import ScheduleRequest
from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import (
    NOTHING,
    STATUSES,
    CampaignRecord,
    Violation,
    kinds,
    leads_to,
)

RULE_OF = {
    "scheduled": "C1",
    "retry": "R2",
    "released": "Q2",
    "dialled": "Q4",
    "ringing": "P1",
    "answered": "P1",
    "ended": "P2",
    "queue_timeout": "Q5",
    "window_closed": "Q6",
    "paused": "C4",
    "cancelled": "C6",
    "deleted": "C8",
    "expired": "C7",
}
_WAITS = ("scheduled", "retry", "window_closed", "paused")
_DROPPED = ("cancelled", "deleted", "expired")
_MAY_FOLLOW = {
    **{cause: {"released", *_DROPPED} for cause in _WAITS},
    "released": {"dialled", "queue_timeout", "window_closed", "paused", *_DROPPED},
    "dialled": {"ringing", "answered", "ended", "paused", *_DROPPED},
    "ringing": {"answered", "ended"},
    "answered": {"ended"},
}
_CAUSES = (*(change.cause for change in CHANGES), "nothing")
_FOLLOWS = np.array([[then in _MAY_FOLLOW.get(one, ()) for then in _CAUSES] for one in _CAUSES])
_FROM = np.array([STATUSES.index(c.from_status) if c.from_status else -1 for c in CHANGES])
_TO = np.array([*(STATUSES.index(change.to_status) for change in CHANGES), -1])
_BY_ITSELF = kinds("ringing", "answered", "ended")
_UNDER_WAY = kinds("dialled", "ringing", "answered")
_BEFORE_TIMEOUTS = kinds("window_closed", "paused", *_DROPPED)  # T4: steps 1 to 3
_DIALS, _RELEASES, _ANSWERS = kinds("dialled"), kinds("released"), kinds("answered")
_STANDS = kinds("ringing", "answered", "ended", "nothing")


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a call of the campaign."""
    yield from _times(campaign)
    yield from _steps(campaign)
    yield from _phases(campaign)
    yield from _dialling(campaign)
    yield from _queueing(campaign)
    yield from _shown(campaign)


def _times(campaign: CampaignRecord) -> Iterator[Violation]:
    """Inside the run (T5)."""
    rows, trace = campaign.rows, campaign.run.trace
    out = (rows.at < trace.world.scenario.clock.start) | (rows.at > trace.end)
    yield from campaign.breaches(out, "T5", lambda row: f"{_cause(campaign, row)} out of the run")


def _steps(campaign: CampaignRecord) -> Iterator[Violation]:
    """One legal change after the other, each from where the one before led to."""
    rows = campaign.rows
    wrong = _FROM[rows.kind] != _TO[rows.before]
    illegal = ~rows.first & ~_FOLLOWS[rows.before, rows.kind]
    backwards = ~rows.first & (rows.at < np.roll(rows.at, 1))
    for row in np.flatnonzero(wrong | illegal | backwards).tolist():
        change, before = CHANGES[rows.kind[row]], rows.before[row]
        was = "no call" if before == NOTHING else CHANGES[before].to_status
        after = "" if before == NOTHING else f", after {CHANGES[before].cause}"
        text = f"{change.cause} from {change.from_status or 'nothing'}, but it was {was}{after}"
        yield campaign.breach_at(row, RULE_OF.get(change.cause, "A4"), int(rows.at[row]), text)


def _phases(campaign: CampaignRecord) -> Iterator[Violation]:
    """Setup takes time, no ringing ends as it begins, and only answered calls complete."""
    rows, kind = campaign.rows, campaign.rows.kind
    at_once = ~rows.last & (rows.then_at == rows.at)
    yield from campaign.breaches(
        _DIALS[kind] & at_once & _BY_ITSELF[rows.then], "P1", "set up in no time"
    )
    yield from campaign.breaches(
        kinds("ringing")[kind] & at_once, "P1", "a row for ringing of length 0"
    )
    ended = kinds("ended")[kind] & ~rows.first
    answered = leads_to(CallStatus.COMPLETED)[kind]
    yield from campaign.breaches(
        ended & (answered != _ANSWERS[rows.before]),
        "P2",
        lambda row: f"{CHANGES[kind[row]].to_status} after {_CAUSES[rows.before[row]]}",
    )
    if not campaign.run.cut:
        yield from campaign.breaches(
            rows.last & _UNDER_WAY[kind], "P2", lambda row: f"no end after {_cause(campaign, row)}"
        )


def _dialling(campaign: CampaignRecord) -> Iterator[Violation]:
    """Released and dialled in a window of a RUNNING campaign that has begun (T3, C1, Q2)."""
    rows = campaign.rows
    moves = (_DIALS | _RELEASES)[rows.kind]
    closed = moves & ~campaign.hours.are_open(rows.at)
    idle = moves & ~campaign.runs_in(rows.at)
    early = moves & (rows.at < campaign.start_at)
    yield from campaign.breaches(closed, "T3", "released or dialled outside the calling windows")
    yield from campaign.breaches(early, "C1", "released or dialled before the campaign's start")
    yield from campaign.breaches(idle, "Q2", "released or dialled while it was not RUNNING")


def _queueing(campaign: CampaignRecord) -> Iterator[Violation]:
    """In the queue no longer than it may be, and in a window (Q5, Q6)."""
    rows = campaign.rows
    queued = _RELEASES[rows.kind]
    timeout = campaign.run.trace.world.scenario.engine.queue_timeout
    until, lost_at, closes = rows.then_at, rows.at + timeout, campaign.hours.next_close(rows.at)
    early = _BEFORE_TIMEOUTS[rows.then]
    lost = kinds("queue_timeout")[rows.then]
    due_to_be_lost = (until == lost_at) & ~early
    yield from campaign.breaches(
        queued & ((lost != due_to_be_lost) | (until > lost_at)),
        "Q5",
        lambda row: (
            f"{int(until[row] - rows.at[row])} ms in the queue, then "
            f"{_CAUSES[rows.then[row]]}; the timeout is {timeout} ms"
        ),
    )
    yield from campaign.breaches(
        queued & ((until > closes) | ((until == closes) & ~early)),
        "Q6",
        "still in the queue when the window closed",
    )
    yield from campaign.breaches(
        queued & kinds("window_closed")[rows.then] & (until != closes),
        "Q6",
        "taken out of the queue in an open window",
    )


def _shown(campaign: CampaignRecord) -> Iterator[Violation]:
    """The caller ID (P3) and the voice (P4) of each dial."""
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


def _cause(campaign: CampaignRecord, row: int) -> str:
    cause: str = _CAUSES[campaign.rows.kind[row]]
    return cause
