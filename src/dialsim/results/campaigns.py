"""Timelines of campaigns, and final states of their recipients.

A timeline has the start, pauses and end of a campaign, and the open time of its windows. Stretches
of time are `Spans`: sorted, disjoint, half-open [start, end) pairs of ms; int64 of shape (n, 2).
Every recipient is in exactly one state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import NOT_HAPPENED, Calls, by_status
from dialsim.engine.rules import Windows
from dialsim.engine.trace import CHANGES, CampaignChange, CampaignTrace, Change, Trace
from dialsim.interface import CallStatus, CampaignStatus, Phase
from dialsim.interface.schedule import ScheduleRequest

Spans = NDArray[np.int64]


def no_spans() -> Spans:
    """Return empty spans."""
    return np.empty((0, 2), dtype=np.int64)


def union(parts: Iterable[Spans]) -> Spans:
    """Return the time covered by at least one of the parts; touching spans are joined."""
    pairs = np.concatenate([no_spans(), *parts])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if not len(pairs):
        return pairs
    reach = np.maximum.accumulate(pairs[:, 1])
    begins = np.append(True, pairs[1:, 0] > reach[:-1])
    return np.stack([pairs[begins, 0], reach[np.append(begins[1:], True)]], axis=1)


def minus(spans: Spans, taken: Spans) -> Spans:
    """Return the time of `spans` that none of `taken` covers."""
    edges = np.unique(np.concatenate([spans.ravel(), taken.ravel()]))
    pieces = np.stack([edges[:-1], edges[1:]], axis=1) if len(edges) else no_spans()
    return union([pieces[_covers(spans, pieces[:, 0]) & ~_covers(taken, pieces[:, 0])]])


def _covers(spans: Spans, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for instants that a span covers."""
    index = np.searchsorted(spans[:, 0], at, side="right") - 1
    return (index >= 0) & (at < np.append(spans[:, 1], 0)[index])


def length(spans: Spans) -> int:
    """Return the total length in ms."""
    return int((spans[:, 1] - spans[:, 0]).sum())


Position = tuple[int, int]
"""(organization, campaign): positions in the scenario from 0."""


@dataclass(frozen=True, slots=True)
class CampaignTimeline:
    """Timeline of one campaign; instants in ms, None for events that have not happened.

    `people` counts the uploaded recipients; `removed` are the positions (from 0) of recipients that
    the request dropped as duplicates (D3). `start` is the effective startAt (F3). `final_at` is the
    instant of the first final status; `end` is `final_at`, or the last instant of the run. `open`
    and `paused` are the spans inside [start, end) in which windows were open and in which the
    campaign was PAUSED. `callable` is `open` without the holidays and closed days of the calling
    hours, which are compiled to pauses (T6). The finish also depends on the people
    (`CampaignResult.finish`).
    """

    position: Position
    name: str
    organization: str
    people: int
    removed: tuple[int, ...]
    status: CampaignStatus
    request: ScheduleRequest | None
    start: int | None
    final_at: int | None
    end: int
    stalled: bool
    open: Spans
    paused: Spans
    callable: Spans

    @property
    def full_name(self) -> str:
        """Unambiguous name: `Acme/January`."""
        return f"{self.organization}/{self.name}"


def open_time(lives: Iterable[CampaignTimeline]) -> Spans:
    """Return the time in which at least one of the campaigns could call; closed days are left
    out.
    """
    return union(life.callable for life in lives)


def read_lives(trace: Trace) -> dict[Position, CampaignTimeline]:
    """Return the timeline of every campaign, in the order of the scenario."""
    changes: dict[Position, list[CampaignChange]] = {
        (block.position, campaign.position): []
        for block in trace.world.organizations
        for campaign in block.campaigns
    }
    # Grouped in one pass: with thousands of campaigns, a search for each would take a minute.
    for row in trace.campaigns:
        changes[row.organization, row.campaign].append(row)
    return {position: _life(trace.campaign(*position), own) for position, own in changes.items()}


def _life(part: CampaignTrace, changes: list[CampaignChange]) -> CampaignTimeline:
    effective = part.scheduled
    final_at = next((change.at for change in changes if change.to_status.final), None)
    end = part.trace.end if final_at is None else final_at
    start = None if effective is None else effective.start_at
    windows = (
        no_spans()
        if effective is None
        else Windows.of(effective.request.time_windows).open_spans(effective.start_at, end)
    )
    paused = no_spans() if start is None else _paused(changes, start, end)
    closed = _closed(part, end)
    return CampaignTimeline(
        position=(part.organization, part.campaign),
        name=part.block.name,
        organization=part.owner.name,
        people=part.block.people.count,
        removed=() if effective is None else effective.removed,
        status=changes[-1].to_status if changes else CampaignStatus.DRAFT,
        request=None if effective is None else effective.request,
        start=start,
        final_at=final_at,
        end=end,
        stalled=part.stalled,
        open=windows,
        paused=paused,
        # An operator may have resumed the campaign on a closed day.
        callable=minus(windows, minus(closed, minus(closed, paused))) if len(closed) else windows,
    )


def _closed(part: CampaignTrace, end: int) -> Spans:
    """Return the time that the compiled calling hours of a campaign close by pauses (T6)."""
    spans, since = [], None
    for action in part.owner.settings.compiled_actions:
        if action.campaign != part.block.name:
            continue
        if action.action == "pause" and since is None:
            since = action.at
        elif action.action == "resume" and since is not None:
            spans.append((since, action.at))
            since = None
    if since is not None and since < end:
        spans.append((since, end))
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _paused(changes: list[CampaignChange], start: int, end: int) -> Spans:
    """Return the spans in [start, end) in which the newest change led to PAUSED."""
    upto = [*(change.at for change in changes), end]
    pairs = [
        (max(since, start), until)
        for change, (since, until) in zip(changes, pairwise(upto), strict=True)
        if change.to_status is CampaignStatus.PAUSED and max(since, start) < until
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


class PersonState(StrEnum):
    """A recipient's state at the end of the run.

    - reached: a call was answered (R3);
    - exhausted: all attempts were made, none was answered;
    - expired: endDateTime came first (C7);
    - cancelled: the campaign was cancelled or deleted first (C6, C8);
    - stalled: still to be called, but nothing could ever happen again (T5);
    - pending: still to be called, or in a call, when clock.end cut the run;
    - unscheduled: the campaign was never scheduled;
    - removed: dropped by the request as a duplicate (D3). Tables and figures leave these out.
    """

    REACHED = "reached"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    STALLED = "stalled"
    PENDING = "pending"
    UNSCHEDULED = "unscheduled"
    REMOVED = "removed"


PERSON_STATES = tuple(PersonState)

_NOT_ENDED = (CallStatus.SCHEDULED, CallStatus.QUEUED, CallStatus.INITIATED)
_IS_ON = by_status(_NOT_ENDED)
_REACHED, _EXHAUSTED, _REMOVED = (
    PERSON_STATES.index(state)
    for state in (PersonState.REACHED, PersonState.EXHAUSTED, PersonState.REMOVED)
)


def person_states(calls: Calls, life: CampaignTimeline, end: int) -> NDArray[np.int8]:
    """Return the state of each recipient of a campaign, as an index into `PERSON_STATES`.

    `end` is the last instant of the run.
    """
    if life.request is None:
        never_to_be = life.status is CampaignStatus.CANCELLED
        state = PersonState.CANCELLED if never_to_be else PersonState.UNSCHEDULED
        states = np.full(calls.people, PERSON_STATES.index(state), dtype=np.int8)
        states[calls.past_reached] = _REACHED
        return states
    idle = PersonState.STALLED if life.stalled else PersonState.PENDING
    # People with attempts left and no call under way are due for a retry or, without a call in this
    # run, for their next call: they share one state.
    called_again = _not_retried(life, end) or idle
    by_kind = [_state_after(change, idle) or called_again for change in CHANGES]
    codes = np.array([PERSON_STATES.index(state) for state in (*by_kind, called_again)], np.int8)
    states = codes.take(calls.of_newest(calls.last_kind, len(CHANGES)))
    reached = (states == _REACHED) | calls.past_reached
    states[calls.attempts >= life.request.max_attempts] = _EXHAUSTED
    states[reached] = _REACHED
    states[[*life.removed]] = _REMOVED
    return states


def _state_after(change: Change, idle: PersonState) -> PersonState | None:
    """Return the state that the newest call's last change gives to a person with attempts left;
    None if a retry is to follow.
    """
    if change.phase is Phase.TALKING or change.to_status is CallStatus.COMPLETED:
        return PersonState.REACHED
    if change.to_status is CallStatus.EXPIRED:
        return PersonState.EXPIRED
    if change.to_status is CallStatus.CANCELLED and change.cause != "queue_timeout":
        return PersonState.CANCELLED
    return idle if change.to_status in _NOT_ENDED else None


LOST = [PERSON_STATES.index(state) for state in (PersonState.EXPIRED, PersonState.CANCELLED)]
"""States of lost people: the campaign ended before calling was done with them."""


def finish_of(life: CampaignTimeline, calls: Calls, states: NDArray[np.int8]) -> int | None:
    """Return the instant (ms) at which calling had settled all people of a campaign, or None.

    That is the instant of COMPLETED (C3). A campaign that lost people has no finish.
    """
    # The status does not suffice: by C7 a campaign can lose a person and still become COMPLETED.
    # A campaign that lost nobody can be CANCELLED or EXPIRED before its last call ends (C6, C7);
    # then the end of that call counts.
    under_way = _IS_ON.take(calls.status).any()
    if life.request is None or life.final_at is None or under_way or np.isin(states, LOST).any():
        return None
    return max(life.final_at, int(calls.ended_at.max(initial=NOT_HAPPENED)))


def listed(states: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return True for recipients who were not removed as duplicates (D3)."""
    on_list: NDArray[np.bool_] = states != _REMOVED
    return on_list


def _not_retried(life: CampaignTimeline, end: int) -> PersonState | None:
    """Return the state of people whose retries the end of the campaign prevented; None if it
    prevented none.
    """
    if life.status is CampaignStatus.CANCELLED:
        return PersonState.CANCELLED
    until = life.request.end_date_time if life.request else None
    return PersonState.EXPIRED if until is not None and until <= end else None


@dataclass(frozen=True, slots=True)
class PeopleCount:
    """Number of people in each state; `people` is the sum of all states except `removed`."""

    people: int
    reached: int
    exhausted: int
    expired: int
    cancelled: int
    stalled: int
    pending: int
    unscheduled: int
    removed: int

    @classmethod
    def of(cls, states: NDArray[np.int8]) -> PeopleCount:
        """Count the recipients of a campaign by state."""
        counts = np.bincount(states, minlength=len(PERSON_STATES))
        return cls(int(np.count_nonzero(listed(states))), *map(int, counts))

    @classmethod
    def total(cls, parts: Iterable[PeopleCount]) -> PeopleCount:
        """Add the counts of several campaigns."""
        counts = [astuple(part) for part in parts] or [astuple(cls.of(np.empty(0, np.int8)))]
        return cls(*map(sum, zip(*counts, strict=True)))
