"""Work of one organization, instant by instant (T4, T5), and states of its campaigns (rules C).

Python calls two functions: `carry_out` for commands (step 1) and `work_off` for everything else
(steps 2 to 8). `work_off` returns when it needs something that only Python can provide, a longer
log or random draws; the next call continues where it stopped. That needs no bookkeeping, because
every step is a loop over the remaining work of the step.

Only plain arithmetic is shared with the SimPy engine: the agreement of the two engines is the test
of both.
"""

from __future__ import annotations

from dialsim.engine import trace as _trace
from dialsim.engine.compiled.call import dial, make_progress, withdraw_dials
from dialsim.engine.compiled.jit import entry, rule
from dialsim.engine.compiled.queue import (
    await_releases,
    can_release,
    clear,
    close_windows,
    create_retry,
    drop_retries,
    first_entry,
    first_open,
    leave_queue,
    planned,
    release,
    run_index,
    time_out,
)
from dialsim.engine.compiled.state import (
    ALL_FINAL,
    CANCEL,
    CANCELLED,
    COMPLETED,
    DELETE,
    DONE,
    END_DATE_TIME,
    EXPIRED,
    GO_ON,
    LOG_IS_FULL,
    NO_TIMER,
    PAUSE,
    PAUSED,
    RESUME,
    ROWS_OF_A_CALL,
    RUNNING,
    SCHEDULE,
    SCHEDULED,
    START,
    Record,
    State,
    has_room,
    look_at,
    write,
)
from dialsim.interface import CallStatus

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
    """Change a campaign's status."""
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
        campaign.begins_at = NO_TIMER
        campaign.ends_at = NO_TIMER
        campaign.closes_at = NO_TIMER
        campaign.releases_at = NO_TIMER


@rule
def start_instant(s: State, campaign: Record) -> int:
    """Return the first instant from now on at which a campaign may become RUNNING (C2)."""
    opens = first_open(s, campaign, max(s.dialler.now, campaign.start_at))
    return opens if opens < campaign.end_at else NO_TIMER


@rule
def await_start(s: State, campaign: Record) -> None:
    """Set the timer of a SCHEDULED campaign's start (C2)."""
    campaign.begins_at = start_instant(s, campaign)
    look_at(s, campaign.begins_at)


@rule
def run(s: State, c: int) -> None:
    """Schedule the work that follows when a campaign becomes RUNNING."""
    s.campaigns[c].started = 1
    s.dialler.woken = 1
    s.dialler.completing = 1  # C3: no recipient may be left to call


@rule
def is_final(campaign: Record) -> bool:
    """Return True if a campaign is RUNNING and every recipient is settled (C3)."""
    return (
        campaign.status == RUNNING
        and campaign.waiting == 0
        and campaign.queued + campaign.dialling + campaign.under_way + campaign.retries == 0
    )


@rule
def complete(s: State) -> None:
    """RUNNING → COMPLETED for campaigns whose recipients are all settled (C3)."""
    s.dialler.completing = 0
    for c in range(len(s.campaigns)):
        if is_final(s.campaigns[c]):
            become(s, c, COMPLETED, ALL_FINAL)


@rule
def pause(s: State, c: int) -> None:
    """SCHEDULED or RUNNING → PAUSED; waiting calls return to SCHEDULED (C4)."""
    leave_queue(s, c, PAUSED_IN_QUEUE, True)
    withdraw_dials(s, c, PAUSED_DIALLING, True)
    campaign = s.campaigns[c]
    campaign.begins_at = NO_TIMER
    campaign.closes_at = NO_TIMER
    campaign.releases_at = NO_TIMER
    become(s, c, PAUSED, PAUSE)
    s.dialler.woken = 1  # Q11: a paused campaign holds no lines


@rule
def resume(s: State, c: int) -> None:
    """PAUSED → RUNNING if it was RUNNING before or may start now, else → SCHEDULED (C5)."""
    campaign = s.campaigns[c]
    if campaign.started or start_instant(s, campaign) == s.dialler.now:
        become(s, c, RUNNING, RESUME)
        run(s, c)
    else:
        become(s, c, SCHEDULED, RESUME)
        await_start(s, campaign)


@rule
def end_date_times(s: State) -> None:
    """Expire waiting calls, and with them their campaign (C7)."""
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        if campaign.ends_at == s.dialler.now:
            campaign.ends_at = NO_TIMER
            cut_short = campaign.waiting + campaign.queued + campaign.dialling + campaign.retries
            drop_waiting(s, c, BY_END)
            if cut_short > 0 or not campaign.started:
                become(s, c, EXPIRED, END_DATE_TIME)


@rule
def drop_waiting(s: State, c: int, cause: int) -> None:
    """End waiting calls for good, and drop retries that are not yet due (C6, C7, C8)."""
    campaign = s.campaigns[c]
    waiting_kind, queued_kind, dialling_kind = DROPPED[cause]
    campaign.settled += campaign.waiting + campaign.queued + campaign.dialling + campaign.retries
    leave_queue(s, c, queued_kind, False)
    withdraw_dials(s, c, dialling_kind, False)
    agenda = s.agendas[c]
    for number in range(agenda.length):
        write(s, s.run_people[run_index(agenda, number)], waiting_kind)
    for index in range(agenda.begin, agenda.begin + agenda.heaped):
        write(s, s.heap_people[index], waiting_kind)
    clear(agenda)
    campaign.waiting = 0
    drop_retries(s, c)
    campaign.closed = 1
    s.dialler.woken = 1  # Q11


# Instants between two reports of progress: a tenth of a second or less.
_A_WHILE = 1 << 17


@rule
def next_instant(s: State) -> int:
    """Return the next instant at which something may happen; NO_TIMER if none is left (T5)."""
    dialler = s.dialler
    if dialler.woken or dialler.completing:
        return int(dialler.now)  # a command came in this instant, or its work was interrupted
    # Timers of campaigns rarely come next. `look_at` is a lower bound of all of them, so that most
    # instants need no loop over campaigns.
    at = NO_TIMER
    if dialler.lines_in_use > 0:
        at = s.line_at[0]
    if dialler.retries > 0:
        due, _ = first_entry(s, planned(s))
        at = min(at, max(dialler.now, due))  # C1: retries may be overdue
    # all calls wait equally long, so the first in the queue times out first
    if dialler.queue_length > 0:
        at = min(at, s.queue[dialler.queue_first].queued_at + dialler.queue_timeout)
    if at < dialler.look_at:
        return at
    dialler.look_at = dialler.pace
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        dialler.look_at = min(
            dialler.look_at,
            campaign.begins_at,
            campaign.ends_at,
            campaign.closes_at,
            campaign.releases_at,
        )
    return min(at, dialler.look_at)


@rule
def rows_of_timers(s: State) -> int:
    """Return an upper limit of the rows that steps 2 and 3 of this instant write."""
    rows = 0
    for c in range(len(s.campaigns)):
        campaign = s.campaigns[c]
        if campaign.ends_at == s.dialler.now:
            rows += campaign.waiting + campaign.queued + campaign.dialling
        if campaign.closes_at == s.dialler.now:
            rows += campaign.queued
    return rows


@rule
def release_and_dial(s: State) -> int:
    """Release and dial until neither is possible (T4 step 7); returns the reason to stop."""
    dialler = s.dialler
    dialler.pace = NO_TIMER
    for c in range(len(s.campaigns)):
        s.campaigns[c].is_ready = can_release(s, s.campaigns[c])
    while True:
        if not release(s):
            return LOG_IS_FULL
        dialled, stopped = dial(s)
        if stopped != DONE:
            return stopped
        if not dialled:
            break
    dialler.woken = 0
    await_releases(s)
    return DONE


@rule
def fall_due(s: State) -> bool:
    """Create due retries, start campaigns, open windows (T4 step 6). False: the log is full."""
    dialler = s.dialler
    while dialler.retries > 0 and first_entry(s, planned(s))[0] <= dialler.now:
        if not has_room(s, ROWS_OF_A_CALL):
            return False
        create_retry(s)
    if dialler.look_at <= dialler.now:
        if dialler.pace == dialler.now:
            dialler.woken = 1
        for c in range(len(s.campaigns)):
            campaign = s.campaigns[c]
            if campaign.begins_at == dialler.now:  # C2
                campaign.begins_at = NO_TIMER
                become(s, c, RUNNING, START)
                run(s, c)
            if campaign.releases_at == dialler.now:  # Q2
                campaign.releases_at = NO_TIMER
                dialler.woken = 1
    return True


@entry(State, int)
def work_off(s: State, until: int) -> int:
    """Process instant after instant up to `until`; returns the reason to stop (T4, T5)."""
    dialler = s.dialler
    for _ in range(_A_WHILE):
        dialler.ahead = next_instant(s)
        if dialler.ahead > until:
            return DONE
        dialler.now = dialler.ahead
        if dialler.look_at <= dialler.now:
            if not has_room(s, rows_of_timers(s)):
                return LOG_IS_FULL
            end_date_times(s)  # step 2
            close_windows(s)  # step 3
        if not (make_progress(s) and time_out(s) and fall_due(s)):  # steps 4, 5, 6
            return LOG_IS_FULL
        if dialler.woken:  # step 7
            stopped = release_and_dial(s)
            if stopped != DONE:
                return stopped
        if dialler.completing:
            complete(s)  # step 8
    return GO_ON


@entry(State, int, int)
def carry_out(s: State, command: int, c: int) -> None:
    """Run an allowed command for a campaign (T4 step 1).

    The log must have room for one row per recipient of the campaign.
    """
    campaign = s.campaigns[c]
    if command == SCHEDULE:
        become(s, c, SCHEDULED, SCHEDULE)
        if campaign.end_at != NO_TIMER:
            campaign.ends_at = max(s.dialler.now, campaign.end_at)  # C7: the end may be in the past
            look_at(s, campaign.ends_at)
        await_start(s, campaign)
    elif command == PAUSE:
        pause(s, c)
    elif command == RESUME:
        resume(s, c)
    elif command == CANCEL:
        drop_waiting(s, c, BY_CANCEL)
        become(s, c, CANCELLED, CANCEL)
    elif campaign.status >= COMPLETED:  # C8
        become(s, c, campaign.status, DELETE)
    else:
        drop_waiting(s, c, BY_DELETE)
        become(s, c, CANCELLED, DELETE)
