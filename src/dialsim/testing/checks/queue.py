"""Checks of the queue: slots, releases and their order, pace, and that nobody waits in vain (Q)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import (
    CampaignRecord,
    Instants,
    Mask,
    OrganizationRecord,
    Violation,
    kinds,
    leads_to,
    net,
)

_UNLIMITED = np.iinfo(np.int64).max
_DIALS, _RELEASES = kinds("dialled"), kinds("released")
_FIRST, _ENDED = kinds("scheduled"), kinds("ended")
_WAITS = leads_to(CallStatus.SCHEDULED)


class Tally:
    """What an organization's calls do after each instant's work at which anything changes.

    All arrays are int64 of the same length: the instants `at`, `then` (the one after; at last the
    run's end and 1 ms), and how many calls hold slots, are queued, and wait, by campaign.
    """

    def __init__(self, organization: OrganizationRecord) -> None:
        parts = organization.campaigns
        trace = organization.run.trace
        limits = [row.at for row in trace.limits if row.organization == organization.position]
        changes = [change.at for part in parts for change in part.changes]
        moved = [part.rows.at for part in parts]
        moments = np.concatenate([np.array([*limits, *changes], dtype=np.int64), *moved])
        self.at: Instants = np.unique(moments[moments <= trace.end])
        self.then: Instants = np.append(self.at[1:], trace.end + 1)[: len(self.at)]
        self.slots = self._counted(parts, CallStatus.INITIATED)
        self.queued = self._counted(parts, CallStatus.QUEUED)
        self.waiting = [self._counted([part], CallStatus.SCHEDULED) for part in parts]

    def _counted(self, parts: list[CampaignRecord], status: CallStatus) -> NDArray[np.int64]:
        """How many calls have the status after each instant's work."""
        total = np.zeros(len(self.at) + 1, dtype=np.int64)
        for part in parts:
            np.add.at(total, np.searchsorted(self.at, part.rows.at), net(status)[part.rows.kind])
        return np.cumsum(total)[: len(self.at)]

    def met(self, parts: list[CampaignRecord], kind: Mask) -> Mask:
        """At which of the instants a change of such a kind happens."""
        moved = (part.rows.at[kind[part.rows.kind]] for part in parts)
        return np.isin(self.at, np.concatenate([np.empty(0, dtype=np.int64), *moved]))


def violations(organization: OrganizationRecord) -> Iterator[Violation]:
    """Every breach by an organization's calls taken together (Q1, Q2, Q4)."""
    tally = Tally(organization)
    yield from _numbers(organization, tally)
    yield from _pace(organization)
    yield from _grid(organization)
    yield from _idle_slots(organization, tally)
    yield from _idle_queue(organization, tally)


def _queue_limits(organization: OrganizationRecord, limits: NDArray[np.int64]) -> NDArray[np.int64]:
    given = organization.run.trace.world.scenario.engine.queue_limit
    if given is None:
        return limits
    return np.full(len(limits), _UNLIMITED if given == "unlimited" else given)


def _numbers(organization: OrganizationRecord, tally: Tally) -> Iterator[Violation]:
    """Nobody is dialled without a slot (Q1), nor released into a full queue (Q2)."""
    limits = organization.limits_in(tally.at)
    rooms = _queue_limits(organization, limits)
    dialled = tally.met(organization.campaigns, _DIALS)
    released = tally.met(organization.campaigns, _RELEASES)
    for index in np.flatnonzero(dialled & (tally.slots > limits)).tolist():
        text = f"{tally.slots[index]} calls on {limits[index]} slots"
        yield organization.breach("Q1", int(tally.at[index]), text)
    for index in np.flatnonzero(released & ((limits == 0) | (tally.queued > rooms))).tolist():
        text = f"{tally.queued[index]} calls in the queue, of a limit of {limits[index]}"
        yield organization.breach("Q2", int(tally.at[index]), text)


def _gap(organization: OrganizationRecord) -> int:
    """The least time between two dials, in ms (Q4)."""
    rate = organization.run.trace.world.scenario.engine.calls_per_second
    return 0 if rate is None else ceil(1000 / Fraction(str(rate)))


def _dials(organization: OrganizationRecord) -> Instants:
    """The instants of all dials, in order."""
    parts = (part.rows.at[_DIALS[part.rows.kind]] for part in organization.campaigns)
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))


def _pace(organization: OrganizationRecord) -> Iterator[Violation]:
    """Dials far enough apart (Q4)."""
    dials, gap = _dials(organization), _gap(organization)
    apart = np.diff(dials)
    for index in np.flatnonzero(apart < gap).tolist():
        text = f"a dial {apart[index]} ms after another, not {gap} ms"
        yield organization.breach("Q4", int(dials[index + 1]), text)


def _grid(organization: OrganizationRecord) -> Iterator[Violation]:
    """Releases only at the campaign's release instants (Q2)."""
    interval = organization.run.trace.world.scenario.engine.release_interval
    for campaign in organization.campaigns if interval else ():
        off = _RELEASES[campaign.rows.kind] & (
            (campaign.rows.at - campaign.start_at) % interval != 0
        )
        yield from campaign.breaches(off, "Q2", "released between release instants")


def _idle_slots(organization: OrganizationRecord, tally: Tally) -> Iterator[Violation]:
    """While a call is queued no slot stays free longer than the pace wants (Q4)."""
    limits, long_ago = organization.limits_after(tally.at), -_gap(organization)
    dials = np.concatenate([[long_ago], _dials(organization)])
    last = dials[np.searchsorted(dials, tally.at, side="right") - 1]
    free_at = np.maximum(tally.at, last + _gap(organization))
    idle = (tally.queued > 0) & (tally.slots < limits) & (free_at < tally.then)
    for index in np.flatnonzero(idle).tolist():
        text = "a slot is free and a call in the queue, but it is not dialled"
        yield organization.breach("Q4", int(free_at[index]), text)


def _idle_queue(organization: OrganizationRecord, tally: Tally) -> Iterator[Violation]:
    """While the queue has room nobody waits who may be released (Q2)."""
    interval = organization.run.trace.world.scenario.engine.release_interval or 1
    limits = organization.limits_after(tally.at)
    room = (limits > 0) & (tally.queued < _queue_limits(organization, limits))
    for campaign, waiting in zip(organization.campaigns, tally.waiting, strict=True):
        index = np.flatnonzero(room & (waiting > 0) & campaign.runs_after(tally.at))
        at, then = tally.at[index], tally.then[index]
        may = campaign.hours.next_release(at, then, campaign.start_at, interval)
        for instant in may[may < then].tolist():
            text = "the queue has room and a call waits, but it is not released"
            yield campaign.breach("Q2", instant, text)


def order_violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every release of a call while another of its campaign, which goes first, waits (Q3)."""
    rows = campaign.rows
    begins = _WAITS[rows.kind]
    ends = np.roll(begins, 1) & ~rows.first & ~begins  # the row after, in the same call
    in_turn = _in_turn(campaign, np.flatnonzero(begins))
    place = np.empty(len(begins), dtype=np.int64)
    place[in_turn] = np.arange(len(in_turn))
    place[ends] = place[np.flatnonzero(ends) - 1]
    moves = np.flatnonzero(begins | ends)
    moves = moves[np.argsort(rows.order[moves])]  # as they happened
    columns = (moves, place[moves], begins[moves], _RELEASES[rows.kind[moves]])
    for row, ahead in _overtaking(*(column.tolist() for column in columns)):
        text = f"released while recipient {rows.recipient[in_turn[ahead]]} waits, who goes first"
        yield campaign.breach_at(row, "Q3", int(rows.at[row]), text)


def _in_turn(campaign: CampaignRecord, waits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows with which waits begin, by the order's class, due instant and upload order."""
    rows, past = campaign.rows, np.zeros(campaign.count, dtype=np.int64)
    for recipient, history in campaign.block.people.history.items():
        past[recipient] = history.call_attempt
    who, made = rows.recipient[waits], np.flatnonzero(rows.first)
    due = np.where(_FIRST[rows.kind[made]], campaign.start_at, rows.at[made])
    ended = np.concatenate([[0], np.cumsum(_ENDED[rows.kind])])
    attempts = past[who] + ended[waits] - ended[np.searchsorted(rows.recipient, who)]
    order = campaign.run.trace.world.scenario.engine.order
    goes_last = {"freshFirst": attempts > 0, "retriesFirst": attempts == 0}
    keys = (who, due[np.cumsum(rows.first)[waits] - 1], goes_last.get(order, attempts < 0))
    in_turn: NDArray[np.int64] = waits[np.lexsort(keys)]
    return in_turn


def _overtaking(
    rows: list[int], places: list[int], begins: list[bool], released: list[bool]
) -> Iterator[tuple[int, int]]:
    """Each row that releases a call out of turn, and the place of the one who goes first then."""
    waiting: list[int] = []
    over = bytearray(len(rows))
    for row, place, begin, release in zip(rows, places, begins, released, strict=True):
        if begin:
            heappush(waiting, place)
            continue
        over[place] = True
        while release and waiting[0] < place and over[waiting[0]]:
            heappop(waiting)
        if release and waiting[0] < place:
            yield row, waiting[0]
