"""Campaigns: their states, and what becomes of their waiting calls (rules C)."""

from __future__ import annotations

from dialsim.engine import trace as _trace
from dialsim.engine.compiled.calls import withdraw_dials
from dialsim.engine.compiled.jit import rule
from dialsim.engine.compiled.queue import drop_retries, first_open, leave_queue, waiting
from dialsim.engine.compiled.state import (
    ALL_FINAL,
    COMPLETED,
    END_DATE_TIME,
    EXPIRED,
    NEVER,
    PAUSE,
    PAUSED,
    RESUME,
    RUNNING,
    SCHEDULED,
    Record,
    State,
    look_at,
    write,
)
from dialsim.interface.status import CallStatus

PAUSED_IN_QUEUE = _trace.PAUSED[CallStatus.QUEUED]
PAUSED_DIALLING = _trace.PAUSED[CallStatus.INITIATED]

_WAITING = (CallStatus.SCHEDULED, CallStatus.QUEUED, CallStatus.INITIATED)
DROPPED = tuple(
    tuple(_trace.DROPPED[status, cause] for status in _WAITING)
    for cause in ("cancelled", "deleted", "expired")
)
BY_CANCEL, BY_DELETE, BY_END = range(3)


@rule
def become(s: State, c: int, status: int, cause: int) -> None:
    """A campaign's status changes."""
    campaign = s.campaigns[c]
    change = s.changes[s.dialler.changes]
    s.dialler.changes += 1
    change.at = s.dialler.now
    change.campaign = c
    change.before = campaign.status
    change.after = status
    change.cause = cause
    campaign.status = status
    if status >= COMPLETED:
        campaign.begins_at = NEVER
        campaign.ends_at = NEVER
        campaign.closes_at = NEVER
        campaign.releases_at = NEVER


@rule
def start_instant(s: State, campaign: Record) -> int:
    """The first instant from now on at which a campaign may become RUNNING (C2)."""
    opens = first_open(s, campaign, max(s.dialler.now, campaign.start_at))
    return opens if opens < campaign.end_at else NEVER


@rule
def await_start(s: State, campaign: Record) -> None:
    """SCHEDULED until C2 starts it."""
    campaign.begins_at = start_instant(s, campaign)
    look_at(s, campaign.begins_at)


@rule
def run(s: State, c: int) -> None:
    """What follows when a campaign has become RUNNING."""
    s.campaigns[c].started = 1
    s.dialler.woken = 1
    s.dialler.completing = 1  # C3: nobody may be left to call


@rule
def is_final(campaign: Record) -> bool:
    """Whether a campaign is RUNNING, and nobody is left to call or under way (C3)."""
    return (
        campaign.status == RUNNING
        and waiting(campaign) == 0
        and campaign.queued + campaign.dialling + campaign.under_way + campaign.retries == 0
    )


@rule
def complete(s: State) -> None:
    """RUNNING → COMPLETED for campaigns whose people are all settled (C3)."""
    s.dialler.completing = 0
    for c in range(len(s.campaigns)):
        if is_final(s.campaigns[c]):
            become(s, c, COMPLETED, ALL_FINAL)


@rule
def pause(s: State, c: int) -> None:
    """SCHEDULED or RUNNING → PAUSED; waiting calls go back to SCHEDULED (C4)."""
    leave_queue(s, c, PAUSED_IN_QUEUE, True)
    withdraw_dials(s, c, PAUSED_DIALLING, True)
    campaign = s.campaigns[c]
    campaign.begins_at = NEVER
    campaign.closes_at = NEVER
    campaign.releases_at = NEVER
    become(s, c, PAUSED, PAUSE)
    s.dialler.woken = 1  # Q11: it holds no line any more


@rule
def resume(s: State, c: int) -> None:
    """PAUSED → RUNNING if it was so before or would be now, else → SCHEDULED (C5)."""
    campaign = s.campaigns[c]
    if campaign.started or start_instant(s, campaign) == s.dialler.now:
        become(s, c, RUNNING, RESUME)
        run(s, c)
    else:
        become(s, c, SCHEDULED, RESUME)
        await_start(s, campaign)


@rule
def end_date_times(s: State) -> None:
    """Waiting calls expire, and their campaign with them (C7)."""
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        if campaign.ends_at == s.dialler.now:
            campaign.ends_at = NEVER
            cut_short = waiting(campaign) + campaign.queued + campaign.dialling + campaign.retries
            drop_waiting(s, c, BY_END)
            if cut_short > 0 or not campaign.started:
                become(s, c, EXPIRED, END_DATE_TIME)


@rule
def drop_waiting(s: State, c: int, cause: int) -> None:
    """Waiting calls end for good, retries not yet due are dropped (C6, C7, C8)."""
    campaign = s.campaigns[c]
    waiting_kind, queued_kind, dialling_kind = DROPPED[cause]
    campaign.settled += waiting(campaign) + campaign.queued + campaign.dialling + campaign.retries
    leave_queue(s, c, queued_kind, False)
    withdraw_dials(s, c, dialling_kind, False)
    for place in range(campaign.fresh_next, campaign.fresh_end):
        write(s, s.fresh[place], waiting_kind)
    for place in range(campaign.first_person, campaign.first_person + campaign.heaped):
        write(s, s.waiting_people[place], waiting_kind)
    campaign.fresh_next = campaign.fresh_end
    campaign.heaped = 0
    drop_retries(s, c)
    campaign.closed = 1
    s.dialler.woken = 1  # Q11
