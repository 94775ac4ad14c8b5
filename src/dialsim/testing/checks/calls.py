"""Checks of calls one by one: legal changes, windows, and how long a call may queue (P, T3, Q)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialsim.engine.trace import CHANGES
from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import NOTHING, STATUSES, CampaignRecord, kinds, leads_to
from dialsim.testing.violation import Violation

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


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a call of the campaign."""
    yield from _times(campaign)
    yield from _steps(campaign)
    yield from _phases(campaign)
    yield from _dialling(campaign)
    yield from _queueing(campaign)


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


def _cause(campaign: CampaignRecord, row: int) -> str:
    cause: str = _CAUSES[campaign.rows.kind[row]]
    return cause
