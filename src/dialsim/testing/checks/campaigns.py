"""Checks of campaigns: their states, their calls, and each person's calls (C, P, R, T, Q5, D3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.conformance.calls import (
    STATUSES,
    attempts_so_far,
    is_called_again,
    retry_due,
    shows_the_same,
)
from dialsim.engine.trace import CHANGES
from dialsim.interface.schedule import ScheduleRequest
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.testing.checks.record import (
    NOTHING,
    CampaignRun,
    Mask,
    Violation,
    kinds,
    leads_to,
)

S = CampaignStatus
_NOT_FINAL = (S.DRAFT, S.SCHEDULED, S.RUNNING, S.PAUSED)
_RULE_OF_STEP = {
    "schedule": "C1",
    "start": "C2",
    "all_final": "C3",
    "pause": "C4",
    "resume": "C5",
    "cancel": "C6",
    "end_date_time": "C7",
    "delete": "C8",
}
_STEPS = {
    (S.DRAFT, S.SCHEDULED, "schedule"),
    (S.SCHEDULED, S.RUNNING, "start"),
    (S.RUNNING, S.COMPLETED, "all_final"),
    *((status, S.PAUSED, "pause") for status in (S.SCHEDULED, S.RUNNING)),
    *((S.PAUSED, status, "resume") for status in (S.SCHEDULED, S.RUNNING)),
    *((status, S.CANCELLED, cause) for status in _NOT_FINAL for cause in ("cancel", "delete")),
    *((status, S.EXPIRED, "end_date_time") for status in _NOT_FINAL[1:]),
    *((status, status, "delete") for status in S if status.final),
}


def violations(campaign: CampaignRun) -> Iterator[Violation]:
    """Yield violations by a campaign, by one of its calls, or by a person's calls together."""
    yield from _states(campaign)
    yield from _calls(campaign)
    yield from _people(campaign)


def _states(campaign: CampaignRun) -> Iterator[Violation]:
    """Yield violations by the campaign itself."""
    yield from _steps(campaign)
    yield from _starts(campaign)
    yield from _completions(campaign)
    yield from _pauses(campaign)
    yield from _closing(campaign)
    yield from _end(campaign)


def _steps(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that steps are legal, and start from the status before."""
    trace = campaign.run.trace
    status, last = S.DRAFT, trace.world.scenario.clock.start
    for change in campaign.changes:
        step = f"{change.cause} from {change.from_status} to {change.to_status}"
        rule = _RULE_OF_STEP.get(change.cause, "C1")
        if change.from_status is not status:
            yield campaign.breach(rule, change.at, f"{step}, but it was {status}")
        if (change.from_status, change.to_status, change.cause) not in _STEPS:
            yield campaign.breach(rule, change.at, f"{step} is no legal step")
        if not last <= change.at <= trace.end:
            yield campaign.breach("T5", change.at, f"{step} out of the run's time")
        status, last = change.to_status, change.at


def _starts(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that RUNNING begins at the first instant that C2 allows, or by a resume (C5)."""
    ran, waits_since = False, None
    for change in campaign.changes:
        may_run = _may_start(campaign, change.at) == change.at
        if change.to_status is S.RUNNING and not ran and not may_run:
            yield campaign.breach("C2", change.at, "RUNNING before it may be")
        if change.cause == "resume" and change.to_status is S.SCHEDULED and (ran or may_run):
            yield campaign.breach("C5", change.at, "SCHEDULED by a resume, but it may run")
        if waits_since is not None:
            earliest = _may_start(campaign, waits_since)
            if earliest is not None and earliest < change.at:
                yield campaign.breach("C2", change.at, "SCHEDULED longer than it had to be")
        waits_since = change.at if change.to_status is S.SCHEDULED else None
        ran = ran or change.to_status is S.RUNNING


def _may_start(campaign: CampaignRun, instant: int) -> int | None:
    """Return the first instant from `instant` on at which C2 allows the campaign to run."""
    if campaign.scheduled is None:
        return None
    # Derived from the windows alone, not from the engine's own calculation, which is under test.
    opens = int(campaign.hours.next_open(np.array([max(instant, campaign.start_at)]))[0])
    return opens if campaign.end_at is None or opens < campaign.end_at else None


def _completions(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that COMPLETED comes in the instant of the last settled recipient, or of the resume
    (C3).
    """
    for before, change in zip(campaign.changes, campaign.changes[1:], strict=False):
        if change.cause == "all_final":
            # A resume of a campaign with nothing left completes it in the same instant, after the
            # last change of a call.
            last = int(max(before.at, campaign.rows.at.max(initial=0)))
            if change.at != last:
                late = f"{change.at - last} ms after the last change"
                yield campaign.breach("C3", change.at, f"COMPLETED {late}")


def _pauses(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that a pause leaves no call in the queue, and no line being set up (C4)."""
    open_ = kinds("released", "dialled")
    for change in campaign.changes:
        if change.cause == "pause":
            # Calls released in the instant of the pause itself are judged by the order of T4, not
            # here.
            left = _outlasting(campaign, open_, change.at) & (campaign.rows.at < change.at)
            yield from campaign.breaches(left, "C4", "goes on although it was paused")


def _outlasting(campaign: CampaignRun, kind: Mask, instant: int) -> Mask:
    """Return the rows of these kinds whose state lasts beyond the instant's work."""
    rows = campaign.rows
    stays = (rows.then_at > instant) | rows.last
    outlasting: Mask = kind[rows.kind] & (rows.at <= instant) & stays
    return outlasting


def _closing(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that nothing waits after a cancellation, deletion or end date (C6, C7, C8)."""
    if campaign.closing is None:
        return
    closed_at, rule = campaign.closing
    rows, made_at = campaign.rows, campaign.scheduled.at if campaign.scheduled else None
    # A campaign may close in the instant of its own request, which then still makes its calls.
    first = kinds("scheduled")[rows.kind]
    moved = kinds("retry", "released", "dialled")[rows.kind] | (first & (closed_at != made_at))
    # A command from outside comes after the instant's work, and causes no further work.
    late = rows.at > closed_at if campaign.run.live else rows.at >= closed_at
    # Ends of conversations go on: only dialling and waiting stop.
    yield from campaign.breaches(moved & late, rule, "after the campaign was over")
    waits = kinds("scheduled", "retry", "window_closed", "paused", "released", "dialled")
    left = _outlasting(campaign, waits, closed_at)
    yield from campaign.breaches(left, rule, "waits on although the campaign is over")


def _end(campaign: CampaignRun) -> Iterator[Violation]:
    """Check expiry at the end date (C7), and that the campaign is final, stalled or cut at the
    end (T5).
    """
    run = campaign.run
    if campaign.end_at is not None and campaign.end_at <= run.trace.end:
        late = campaign.status_after(campaign.end_at)
        if late in (S.SCHEDULED, S.DRAFT):
            yield campaign.breach("C7", campaign.end_at, f"still {late} after its end date")
    end = run.trace.end
    final, scheduled = campaign.status_after(end).final, campaign.scheduled is not None
    if scheduled and not (final or run.cut or campaign.stalled):
        yield campaign.breach("T5", end, "neither final nor stalled, and nothing cut the run")
    if campaign.stalled and (final or not scheduled):
        yield campaign.breach("T5", end, "stalled, but final or never scheduled")


_RULE_OF_CHANGE = {
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
_BEFORE_TIMEOUTS = kinds("window_closed", "paused", *_DROPPED)  # T4: steps 1 to 3 precede timeouts
_DIALS, _RELEASES, _ANSWERS = kinds("dialled"), kinds("released"), kinds("answered")
_STANDS = kinds("ringing", "answered", "ended", "nothing")


def _calls(campaign: CampaignRun) -> Iterator[Violation]:
    """Yield violations by calls of the campaign."""
    yield from _times(campaign)
    yield from _changes(campaign)
    yield from _phases(campaign)
    yield from _dialling(campaign)
    yield from _queueing(campaign)
    yield from _shown(campaign)


def _times(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that all changes are inside the run (T5)."""
    rows, trace = campaign.rows, campaign.run.trace
    out = (rows.at < trace.world.scenario.clock.start) | (rows.at > trace.end)
    yield from campaign.breaches(out, "T5", lambda row: f"{_cause(campaign, row)} out of the run")


def _changes(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that changes are legal, and start from the status before."""
    rows = campaign.rows
    # The status after a call's last change must be the one before its next.
    wrong = _FROM[rows.kind] != _TO[rows.before]
    illegal = ~rows.first & ~_FOLLOWS[rows.before, rows.kind]
    backwards = ~rows.first & (rows.at < np.roll(rows.at, 1))
    for row in np.flatnonzero(wrong | illegal | backwards).tolist():
        change, before = CHANGES[rows.kind[row]], rows.before[row]
        was = "no call" if before == NOTHING else CHANGES[before].to_status
        after = "" if before == NOTHING else f", after {CHANGES[before].cause}"
        text = f"{change.cause} from {change.from_status or 'nothing'}, but it was {was}{after}"
        yield campaign.breach_at(
            row, _RULE_OF_CHANGE.get(change.cause, "A4"), int(rows.at[row]), text
        )


def _phases(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that setup takes time, ringing has no row of length 0, and only answered calls
    complete.
    """
    rows, kind = campaign.rows, campaign.rows.kind
    # A withdrawal in the instant of the dial is legal (C4); only the phone's own progress takes
    # time.
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


def _dialling(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that calls are released and dialled in a window of a RUNNING, started campaign (T3,
    C1, Q2).
    """
    rows = campaign.rows
    moves = (_DIALS | _RELEASES)[rows.kind]
    closed = moves & ~campaign.hours.are_open(rows.at)
    idle = moves & ~campaign.runs_in(rows.at)
    early = moves & (rows.at < campaign.start_at)
    yield from campaign.breaches(closed, "T3", "released or dialled outside the calling windows")
    yield from campaign.breaches(early, "C1", "released or dialled before the campaign's start")
    yield from campaign.breaches(idle, "Q2", "released or dialled while it was not RUNNING")


def _queueing(campaign: CampaignRun) -> Iterator[Violation]:
    """Check that calls stay in the queue no longer than allowed, and only in a window (Q5, Q6)."""
    rows = campaign.rows
    queued = _RELEASES[rows.kind]
    timeout = campaign.run.trace.world.scenario.engine.queue_timeout
    until, lost_at, closes = rows.then_at, rows.at + timeout, campaign.hours.next_close(rows.at)
    early = _BEFORE_TIMEOUTS[rows.then]
    lost = kinds("queue_timeout")[rows.then]
    # A window that closes, or a pause, in the instant of the timeout comes first (T4).
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


def _shown(campaign: CampaignRun) -> Iterator[Violation]:
    """Check the caller ID (P3) and the voice (P4) of each dial."""
    if campaign.scheduled is None:
        return
    rows, world = campaign.rows, campaign.run.trace.world
    dials = _DIALS[rows.kind]
    numbers = _numbers(campaign, campaign.scheduled.request)
    # Rows hold indices into the numbers of the world.
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


def _one_after_the_other(campaign: CampaignRun, *, several: bool) -> Iterator[Violation]:
    """Check that a redial shows the withdrawn dial's caller ID (C4), and a retry another one
    (P3).
    """
    rows, world = campaign.rows, campaign.run.trace.world
    dialled = np.flatnonzero(_DIALS[rows.kind])
    person, call, number = rows.recipient[dialled], rows.call[dialled], rows.number[dialled]
    again = (person[1:] == person[:-1]) & (call[1:] == call[:-1])
    for index in np.flatnonzero(again & (number[1:] != number[:-1])).tolist():
        row = int(dialled[index + 1])
        yield campaign.breach_at(row, "C4", int(rows.at[row]), "the redial shows another number")
    if not several:
        return
    # P3 compares calls that went on: a withdrawn dial is not the call before.
    stands = _STANDS[rows.then[dialled]]
    dialled, person, number = dialled[stands], person[stands], number[stands]
    for index in np.flatnonzero(shows_the_same(person, number)).tolist():
        row = int(dialled[index])
        text = f"{world.numbers[number[index]]} was the number of the call before as well"
        yield campaign.breach_at(row, "P3", int(rows.at[row]), text)


def _numbers(campaign: CampaignRun, request: ScheduleRequest) -> set[str]:
    """Return the caller IDs that the campaign may show (P3)."""
    world, block = campaign.run.trace.world, campaign.block
    if request.caller_ids is not None:
        return set(request.caller_ids)
    account = world.organizations[block.organization].settings.calling_account()
    shared_number = world.scenario.service.shared_number
    return {account.sip_number(request) or block.agent.caller_id or shared_number}


def _cause(campaign: CampaignRun, row: int) -> str:
    cause: str = _CAUSES[campaign.rows.kind[row]]
    return cause


_UNREACHED = leads_to(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)
_ENDED, _TIMED_OUT = kinds("ended"), kinds("queue_timeout")
_IS_DROPPED = kinds("cancelled", "deleted", "expired")


class PeopleRecord:
    """Calls of one campaign as columns, by (recipient, call), and each person's history.

    Per call: `first_row` and `last_row`, the person, the kind of its last change, and `attempts`,
    the person's counted attempts at its end (P5). Per person: `removed` as a duplicate (D3),
    `past_attempts`, `past_reached`, and `resumes_at`, the instant of the call that continues the
    history; -1 without one.
    """

    def __init__(self, campaign: CampaignRun) -> None:
        rows, scheduled = campaign.rows, campaign.scheduled
        self.campaign = campaign
        self.first_row = np.flatnonzero(rows.first)
        self.last_row = np.flatnonzero(rows.last)
        self.person = rows.recipient[self.first_row]
        self.call = rows.call[self.first_row]
        self.last_kind = rows.kind[self.last_row]
        self.made_at = rows.at[self.first_row]
        self.over_at = rows.at[self.last_row]
        # Cut to the length: without any calls the appended element would be one too many.
        self.newest = np.append(self.person[1:] != self.person[:-1], True)[: len(self.person)]
        self.removed = np.zeros(campaign.count, dtype=bool)
        self.past_attempts = np.zeros(campaign.count, dtype=np.int64)
        self.past_reached = np.zeros(campaign.count, dtype=bool)
        self.resumes_at = np.full(campaign.count, -1, dtype=np.int64)
        if scheduled is not None:
            self.removed[list(scheduled.removed)] = True
            for recipient, past in campaign.block.people.history.items():
                self.past_attempts[recipient] = past.call_attempt
                self.past_reached[recipient] = past.reached
                self.resumes_at[recipient] = max(scheduled.at, campaign.due_after(past))

    @cached_property
    def attempts(self) -> NDArray[np.int64]:
        """Attempts counted at the end of each call, history included."""
        own = attempts_so_far(self.person, _ENDED[self.last_kind])
        return own + self.past_attempts[self.person]

    @cached_property
    def has_calls(self) -> NDArray[np.bool_]:
        """True for each person with a call."""
        has: NDArray[np.bool_] = np.bincount(self.person, minlength=self.campaign.count) > 0
        return has


def _people(campaign: CampaignRun) -> Iterator[Violation]:
    """Yield violations by a person's calls together."""
    people = PeopleRecord(campaign)
    yield from _first_calls(campaign, people)
    yield from _numbering(campaign, people)
    yield from _retries(campaign, people)
    yield from _fates(campaign, people)


def _first_calls(campaign: CampaignRun, people: PeopleRecord) -> Iterator[Violation]:
    """Check that everyone has a call from the request on; histories are continued (C1)."""
    rows, scheduled = campaign.rows, campaign.scheduled
    fresh = people.resumes_at < 0
    if scheduled is None:
        for row in people.first_row.tolist():
            yield campaign.breach_at(row, "C1", int(rows.at[row]), "a call without a request")
        return
    for recipient in np.flatnonzero(fresh & ~people.removed & ~people.has_calls).tolist():
        yield campaign.breach_by(recipient, "C1", scheduled.at, "no call was made")
    for recipient in np.flatnonzero(people.removed & people.has_calls).tolist():
        yield campaign.breach_by(recipient, "D3", scheduled.at, "called although removed")
    yield from _resumed(campaign, people)
    kind = rows.kind[people.first_row]
    # A person with a history gets the first call as a retry (C1).
    by_request = (people.call == 1) & fresh[people.person]
    wrong = ~np.where(by_request, kinds("scheduled")[kind], kinds("retry")[kind])
    for index in np.flatnonzero(wrong).tolist():
        rule = "C1" if by_request[index] else "R2"
        yield _breach(campaign, people, index, rule, f"made by {CHANGES[kind[index]].cause}")
    late = rows.first & kinds("scheduled")[rows.kind] & (rows.at != scheduled.at)
    yield from campaign.breaches(late, "C1", "made, but not by the request")


def _resumed(campaign: CampaignRun, people: PeopleRecord) -> Iterator[Violation]:
    """Check that a history is continued by a retry at its instant, if one is allowed (R1-R3)."""
    due = people.resumes_at
    done = people.past_reached | (people.past_attempts >= campaign.max_attempts)
    wanted = (due >= 0) & ~done & ~people.removed & ~_over(campaign, due)
    begins = np.searchsorted(people.person, np.arange(campaign.count), side="left")
    for recipient in np.flatnonzero(due >= 0).tolist():
        has, at = people.has_calls[recipient], int(due[recipient])
        if has and done[recipient]:
            rule = "R3" if people.past_reached[recipient] else "R1"
            yield campaign.breach_by(recipient, rule, at, "called again after its history")
        elif has and people.made_at[begins[recipient]] != at:
            yield campaign.breach_by(recipient, "R2", at, "the call was not made when it was due")
        elif wanted[recipient] and not has and at <= campaign.run.trace.end:
            yield campaign.breach_by(recipient, "R1", at, "no call follows the history")


def _numbering(campaign: CampaignRun, people: PeopleRecord) -> Iterator[Violation]:
    """Check that calls are numbered from 1."""
    same = np.append(False, ~people.newest[:-1])[: len(people.person)]
    expected = np.where(same, np.roll(people.call, 1) + 1, 1)
    for index in np.flatnonzero(people.call != expected).tolist():
        row = int(people.first_row[index])
        text = f"call {people.call[index]} where call {expected[index]} comes next"
        yield campaign.breach_at(row, "R2", int(people.made_at[index]), text)


def _retries(campaign: CampaignRun, people: PeopleRecord) -> Iterator[Violation]:
    """Check that retries are made exactly if and when the rules require them (P5, R1, R2, R3)."""
    attempts, last = people.attempts, people.last_kind
    due = retry_due(people.over_at, campaign.retry_interval, _TO[last])
    again = is_called_again(_TO[last], _TIMED_OUT[last], attempts, campaign.max_attempts)
    wanted = again & ~_over(campaign, due)
    # Two masks, because a command from outside may come before or after a retry of the same
    # instant.
    allowed = again & ~_over(campaign, due, surely=True)
    # Rolled over the ends of persons; every use is masked by `newest`.
    next_at = np.roll(people.made_at, -1)
    missing = people.newest & wanted & (due <= campaign.run.trace.end)
    for index in np.flatnonzero(attempts > campaign.max_attempts).tolist():
        yield _breach(campaign, people, index, "R1", f"attempt {attempts[index]} was made")
    for index in np.flatnonzero(missing).tolist():
        row = int(people.last_row[index])
        yield campaign.breach_at(row, "R1", int(due[index]), "no new call was made")
    for index in np.flatnonzero(~people.newest & ~allowed).tolist():
        status = CHANGES[last[index]].to_status
        rule = "R3" if status is CallStatus.COMPLETED else "R1"
        yield _breach(campaign, people, index + 1, rule, f"another call after {status}")
    for index in np.flatnonzero(~people.newest & allowed & (next_at != due)).tolist():
        passed, interval = (int(at[index] - people.over_at[index]) for at in (next_at, due))
        text = f"made {passed} ms after the call before, not {interval} ms"
        yield _breach(campaign, people, index + 1, "R2", text)


def _over(
    campaign: CampaignRun, due: NDArray[np.int64], *, surely: bool = False
) -> NDArray[np.bool_]:
    """Return True if the campaign was closed when each call was due.

    A command from outside comes after the retries of its instant, which may then exist: `surely`
    leaves that instant out.
    """
    if campaign.closing is None:
        return np.zeros(len(due), dtype=bool)
    closed_at, rule = campaign.closing
    late = surely and campaign.run.live and rule != "C7"
    over: NDArray[np.bool_] = closed_at < due if late else closed_at <= due
    return over


def _fates(campaign: CampaignRun, people: PeopleRecord) -> Iterator[Violation]:
    """Check that every recipient of a finished campaign is in exactly one final state (C3)."""
    end = campaign.run.trace.end
    if campaign.run.cut or campaign.scheduled is None or not campaign.status_after(end).final:
        return
    newest = np.flatnonzero(people.newest)
    last = np.full(campaign.count, len(CHANGES))
    last[people.person[newest]] = people.last_kind[newest]
    attempts = people.past_attempts.copy()
    attempts[people.person[newest]] = people.attempts[newest]
    reached = people.past_reached.copy()
    reached[people.person[leads_to(CallStatus.COMPLETED)[people.last_kind]]] = True
    left = ~reached & (attempts < campaign.max_attempts)
    again = (_UNREACHED | _TIMED_OUT)[last] | (~people.has_calls & (people.resumes_at >= 0))
    fates = {
        "reached": reached,
        "exhausted": ~reached & (attempts >= campaign.max_attempts),
        "withdrawn": _IS_DROPPED[last],
        "dropped": left & again & (campaign.closing is not None),
    }
    # Exactly one state: a sum of 0 shows a person who was forgotten, a sum of 2 a contradiction.
    held = np.sum(list(fates.values()), axis=0)
    for recipient in np.flatnonzero((held != 1) & ~people.removed).tolist():
        names = [fate for fate, holds in fates.items() if holds[recipient]]
        text = f"in the end {' and '.join(names) or 'in no final state'}"
        yield campaign.breach_by(recipient, "C3", end, text)


def _breach(
    campaign: CampaignRun, people: PeopleRecord, index: int, rule: str, text: str
) -> Violation:
    return campaign.breach_at(int(people.first_row[index]), rule, int(people.made_at[index]), text)
