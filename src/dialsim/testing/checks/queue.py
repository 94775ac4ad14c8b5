"""Checks of the queue: lines, releases and their order, pace, shares, and idle lines (Q)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

from dialsim.conformance.calls import attempts_so_far, is_between_releases, least_gap
from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import (
    CampaignRun,
    Instants,
    Mask,
    OrganizationRun,
    Violation,
    kinds,
    leads_to,
    net,
)

_UNLIMITED = np.iinfo(np.int64).max
_DIALS, _RELEASES = kinds("dialled"), kinds("released")
_FIRST, _ENDED = kinds("scheduled"), kinds("ended")
_REACHED = _ENDED & leads_to(CallStatus.COMPLETED)
_WAITS = leads_to(CallStatus.SCHEDULED)


class Lines:
    """Lines of campaigns (Q10, Q11) at the instants of a tally.

    Lines count from `since` on, None if never. `used` are a campaign's calls that are queued or
    under way.
    """

    def __init__(self, organization: OrganizationRun, tally: Tally) -> None:
        parts = self._parts = organization.campaigns
        self._tally = tally
        self._limits = organization.limits_after(tally.at)
        asked = [
            part.scheduled.at for part in parts if part.scheduled and part.block.share.counts_lines
        ]
        self.since = min(asked, default=None)
        self.used = [
            tally.counted([part], CallStatus.QUEUED, CallStatus.INITIATED) for part in parts
        ]
        self._left = [_people_left(part, tally.at) for part in parts]

    def held(self, part: int, index: NDArray[np.int64], at: Instants) -> NDArray[np.int64]:
        """Return the lines kept for a campaign at `at`, from the instants at `index` up to the
        next.
        """
        campaign = self._parts[part]
        closing = campaign.closing
        # A campaign that can't call now does not keep its reserved lines from others (Q11).
        runs = campaign.runs_after(self._tally.at[index]) & campaign.hours.are_open(at)
        if closing is not None:
            runs &= at < closing[0]
        # Nor does it keep more lines than it has people left.
        left = np.minimum(campaign.block.share.reserved, self._left[part][index])
        return np.where(runs, left, 0)

    def taken(self, index: NDArray[np.int64], at: Instants) -> NDArray[np.int64]:
        """Return the number of lines in use, needed by queued calls, or kept."""
        parts = range(len(self._parts))
        return sum(
            (np.maximum(self.used[part][index], self.held(part, index, at)) for part in parts),
            np.zeros(len(index), dtype=np.int64),
        )

    def are_there(self, part: int, index: NDArray[np.int64], at: Instants) -> Mask:
        """Return True if a line is available for one more call of a campaign."""
        if self.since is None:
            return np.ones(len(index), dtype=bool)
        used, limits = self.used[part][index], self._limits[index]
        everybody = np.sum([each[index] for each in self.used], axis=0)
        free = (everybody < limits) & (used < self._parts[part].block.share.at_most)
        own = (used < self.held(part, index, at)) | (self.taken(index, at) < limits)
        # Lines are counted from the first request on that asks for shares.
        there: Mask = (free & own) | (at < self.since)
        return there


def _people_left(campaign: CampaignRun, at: Instants) -> NDArray[np.int64]:
    """Return the number of unsettled people after each instant's work (C3), as long as none is
    dropped.
    """
    rows, most = campaign.rows, campaign.max_attempts
    settled = _ENDED[rows.kind] & (_REACHED[rows.kind] | (_attempts(campaign) >= most))
    removed = set(campaign.scheduled.removed if campaign.scheduled else ())
    past = campaign.block.people.history
    over = {who for who, each in past.items() if each.reached or each.call_attempt >= most}
    ended = np.searchsorted(np.sort(rows.at[settled]), at, side="right")
    left: NDArray[np.int64] = campaign.count - len(removed | over) - ended
    return left


class Tally:
    """States of an organization's calls after the work of each instant with a change.

    All arrays are int64 of equal length: the instants `at`, `then` (the next one; last the run's
    end plus 1 ms), and the numbers of calls that hold lines, are queued, and wait, by campaign.
    """

    def __init__(self, organization: OrganizationRun) -> None:
        parts = organization.campaigns
        trace = organization.run.trace
        limits = [row.at for row in trace.limits if row.organization == organization.position]
        changes = [change.at for part in parts for change in part.changes]
        moved = [part.rows.at for part in parts]
        moments = np.concatenate([np.array([*limits, *changes], dtype=np.int64), *moved])
        # Between two of these instants nothing changes, so that all rules can be checked on them
        # alone.
        self.at: Instants = np.unique(moments[moments <= trace.end])
        self.then: Instants = np.append(self.at[1:], trace.end + 1)[: len(self.at)]
        self.slots = self.counted(parts, CallStatus.INITIATED)
        self.queued = self.counted(parts, CallStatus.QUEUED)
        self.waiting = [self.counted([part], CallStatus.SCHEDULED) for part in parts]

    def counted(self, parts: list[CampaignRun], *statuses: CallStatus) -> NDArray[np.int64]:
        """Return the number of calls in one of the statuses after each instant's work."""
        total = np.zeros(len(self.at) + 1, dtype=np.int64)
        changed = np.sum([net(status) for status in statuses], axis=0)
        for part in parts:
            # np.add.at, not +=: several rows fall into one instant.
            np.add.at(total, np.searchsorted(self.at, part.rows.at), changed[part.rows.kind])
        return np.cumsum(total)[: len(self.at)]

    def met(self, parts: list[CampaignRun], kind: Mask) -> Mask:
        """Return True for instants with a change of one of these kinds."""
        moved = (part.rows.at[kind[part.rows.kind]] for part in parts)
        return np.isin(self.at, np.concatenate([np.empty(0, dtype=np.int64), *moved]))


def violations(organization: OrganizationRun) -> Iterator[Violation]:
    """Yield violations by an organization's calls together (Q1, Q2, Q4, Q7 to Q11)."""
    tally = Tally(organization)
    lines = Lines(organization, tally)
    yield from _numbers(organization, tally)
    yield from _lines(organization, tally, lines)
    yield from _sharing(organization, tally, lines)
    yield from _pace(organization)
    yield from _grid(organization)
    yield from _idle_slots(organization, tally)
    yield from _idle_queue(organization, tally, lines)


def _queue_limits(organization: OrganizationRun, limits: NDArray[np.int64]) -> NDArray[np.int64]:
    given = organization.run.trace.world.scenario.engine.queue_limit
    if given is None:
        return limits
    return np.full(len(limits), _UNLIMITED if given == "unlimited" else given)


def _numbers(organization: OrganizationRun, tally: Tally) -> Iterator[Violation]:
    """Check that no call is dialled without a line (Q1), or released into a full queue (Q2)."""
    limits = organization.limits_in(tally.at)
    rooms = _queue_limits(organization, limits)
    dialled = tally.met(organization.campaigns, _DIALS)
    released = tally.met(organization.campaigns, _RELEASES)
    for index in np.flatnonzero(dialled & (tally.slots > limits)).tolist():
        text = f"{tally.slots[index]} calls on {limits[index]} lines"
        yield organization.breach("Q1", int(tally.at[index]), text)
    for index in np.flatnonzero(released & ((limits == 0) | (tally.queued > rooms))).tolist():
        text = f"{tally.queued[index]} calls in the queue, of a limit of {limits[index]}"
        yield organization.breach("Q2", int(tally.at[index]), text)


def _lines(organization: OrganizationRun, tally: Tally, lines: Lines) -> Iterator[Violation]:
    """Check that no campaign takes more lines than allowed (Q10), or a kept line (Q11)."""
    for campaign, used in zip(organization.campaigns, lines.used, strict=True):
        most = campaign.block.share.at_most
        for moment in np.flatnonzero(used > most).tolist():
            text = f"{used[moment]} calls queued or under way, of at most {most}"
            yield campaign.breach("Q10", int(tally.at[moment]), text)
    if lines.since is None:
        return
    limits = organization.limits_in(tally.at)
    counted = tally.at >= lines.since + organization.run.live  # T4: commands come last
    for part, campaign in enumerate(organization.campaigns):
        index = np.flatnonzero(counted & tally.met([campaign], _RELEASES))
        over = (tally.slots + tally.queued)[index] > limits[index]
        for instant in tally.at[index[over]].tolist():
            yield campaign.breach("Q10", instant, "released where no line is free")
        # What a command frees or takes in an instant is not in the state after it.
        index = index[_unsteered(organization, tally.at[index])]
        at = tally.at[index]
        beyond = lines.used[part][index] > lines.held(part, index, at)
        held = beyond & (lines.taken(index, at) > limits[index])
        for instant in at[held].tolist():
            yield campaign.breach("Q11", instant, "released on a line that is held")


def _unsteered(organization: OrganizationRun, at: Instants) -> Mask:
    """Return True for instants after whose work no command can have come from outside (T4)."""
    if not organization.run.live:
        return np.ones(len(at), dtype=bool)
    changes = [change.at for part in organization.campaigns for change in part.changes]
    limits = [row.at for row in organization.run.trace.limits]
    return ~np.isin(at, np.array([*changes, *limits], dtype=np.int64))


def _sharing(organization: OrganizationRun, tally: Tally, lines: Lines) -> Iterator[Violation]:
    """Check that no call is released while a campaign that goes first has one waiting (Q7 to
    Q9).
    """
    engine, parts = organization.run.trace.world.scenario.engine, organization.campaigns
    rules = {"priority": "Q7", "weighted": "Q8", "deadline": "Q9"}
    if engine.sharing not in rules:
        return
    for mine, campaign in enumerate(parts):
        index = np.flatnonzero(tally.met([campaign], _RELEASES))
        index = index[_unsteered(organization, tally.at[index])]
        at, used = tally.at[index], lines.used[mine][index]
        # A release on a line that is reserved for the campaign takes nothing from others.
        beyond = (used > lines.held(mine, index, at)) | (lines.since is None)
        for theirs, other in enumerate(parts):
            waits = (tally.waiting[theirs][index] > 0) & other.runs_after(at)
            waits &= other.hours.are_open(at) & (at >= other.start_at)
            # Only a campaign whose release instant this is could have gone first.
            waits &= (at - other.first_due) % (engine.release_interval or 1) == 0
            waits &= lines.used[theirs][index] < other.block.share.at_most
            first = _goes_first(engine.sharing, other, campaign, lines.used[theirs][index], used)
            for instant in at[waits & beyond & first].tolist():
                text = f"released while a call of {other.block.name} waits, which goes first"
                yield campaign.breach(rules[engine.sharing], instant, text)


def _goes_first(
    sharing: str,
    other: CampaignRun,
    campaign: CampaignRun,
    others: NDArray[np.int64],
    used: NDArray[np.int64],
) -> Mask:
    """Return True if `other` went before the last release of `campaign`.

    `others` and `used` are the lines of both after the release.
    """
    mine, theirs = campaign.block, other.block
    if sharing == "weighted":
        # Cross-multiplied, so that shares are compared without the rounding of a division.
        left, right = used * theirs.share.weight, (others + 1) * mine.share.weight
        before: Mask = (left > right) | ((left == right) & (theirs.position < mine.position))
        return before
    if sharing == "priority":
        return np.full(len(used), theirs.share.priority < mine.share.priority)
    other_is = _deadline(other), theirs.position
    return np.full(len(used), other_is < (_deadline(campaign), mine.position))


def _deadline(campaign: CampaignRun) -> float:
    request = campaign.scheduled.request if campaign.scheduled else None
    return inf if request is None or request.end_date_time is None else request.end_date_time


def _gap(organization: OrganizationRun) -> int:
    return least_gap(organization.run.trace.world.scenario.engine.calls_per_second)


def _dials(organization: OrganizationRun) -> Instants:
    """Return the instants of all dials, in order."""
    parts = (part.rows.at[_DIALS[part.rows.kind]] for part in organization.campaigns)
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))


def _pace(organization: OrganizationRun) -> Iterator[Violation]:
    """Check the time between dials (Q4)."""
    dials, gap = _dials(organization), _gap(organization)
    apart = np.diff(dials)
    for index in np.flatnonzero(apart < gap).tolist():
        text = f"a dial {apart[index]} ms after another, not {gap} ms"
        yield organization.breach("Q4", int(dials[index + 1]), text)


def _grid(organization: OrganizationRun) -> Iterator[Violation]:
    """Check that releases occur only at the campaign's release instants (Q2)."""
    interval = organization.run.trace.world.scenario.engine.release_interval
    for campaign in organization.campaigns if interval else ():
        off = is_between_releases(campaign.rows.at, campaign.first_due, interval)
        off &= _RELEASES[campaign.rows.kind]
        yield from campaign.breaches(off, "Q2", "released between release instants")


def _idle_slots(organization: OrganizationRun, tally: Tally) -> Iterator[Violation]:
    """Check that no line stays free longer than the pace requires while a call is queued (Q4)."""
    limits, long_ago = organization.limits_after(tally.at), -_gap(organization)
    # A sentinel before all instants stands for "no dial so far".
    dials = np.concatenate([[long_ago], _dials(organization)])
    last = dials[np.searchsorted(dials, tally.at, side="right") - 1]
    free_at = np.maximum(tally.at, last + _gap(organization))
    idle = (tally.queued > 0) & (tally.slots < limits) & (free_at < tally.then)
    for index in np.flatnonzero(idle).tolist():
        text = "a line is free and a call in the queue, but it is not dialled"
        yield organization.breach("Q4", int(free_at[index]), text)


def _idle_queue(organization: OrganizationRun, tally: Tally, lines: Lines) -> Iterator[Violation]:
    """Check that no releasable call waits while the queue has room and a line is available (Q2)."""
    interval = organization.run.trace.world.scenario.engine.release_interval or 1
    limits = organization.limits_after(tally.at)
    room = (limits > 0) & (tally.queued < _queue_limits(organization, limits))
    for part, (campaign, waiting) in enumerate(
        zip(organization.campaigns, tally.waiting, strict=True)
    ):
        index = np.flatnonzero(room & (waiting > 0) & campaign.runs_after(tally.at))
        at, then = tally.at[index], tally.then[index]
        may = campaign.hours.next_release(at, then, campaign.first_due, interval)
        soon = may < then
        # Lines are looked up only where a release was possible at all.
        soon[soon] = lines.are_there(part, index[soon], may[soon])
        for instant in may[soon].tolist():
            text = "the queue has room and a call waits, but it is not released"
            yield campaign.breach("Q2", instant, text)


def order_violations(campaign: CampaignRun) -> Iterator[Violation]:
    """Yield releases of a call while another one of its campaign, which goes first, waits (Q3)."""
    rows = campaign.rows
    begins = _WAITS[rows.kind]
    ends = np.roll(begins, 1) & ~rows.first & ~begins  # next row of the same call
    in_turn = _in_turn(campaign, np.flatnonzero(begins))
    rank = np.empty(len(begins), dtype=np.int64)
    rank[in_turn] = np.arange(len(in_turn))
    rank[ends] = rank[np.flatnonzero(ends) - 1]
    moves = np.flatnonzero(begins | ends)
    moves = moves[np.argsort(rows.order[moves])]  # in order of occurrence
    columns = (moves, rank[moves], begins[moves], _RELEASES[rows.kind[moves]])
    for row, ahead in _overtaking(*(column.tolist() for column in columns)):
        text = f"released while recipient {rows.recipient[in_turn[ahead]]} waits, who goes first"
        yield campaign.breach_at(row, "Q3", int(rows.at[row]), text)


def _in_turn(campaign: CampaignRun, waits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that begin a wait, by the order's class, due instant and upload order."""
    rows = campaign.rows
    who, made = rows.recipient[waits], np.flatnonzero(rows.first)
    due = np.where(_FIRST[rows.kind[made]], campaign.first_due, rows.at[made])
    resumes = np.full(campaign.count, _UNLIMITED)
    for recipient, past in campaign.block.people.history.items():
        resumes[recipient] = campaign.due_after(past)
    own = np.where(rows.call[made] == 1, resumes[rows.recipient[made]], _UNLIMITED)
    due = np.minimum(due, own)  # C1: it may have been due before it could be made
    attempts = _attempts(campaign)[waits]
    order = campaign.run.trace.world.scenario.engine.order
    goes_last = {"freshFirst": attempts > 0, "retriesFirst": attempts == 0}
    keys = (who, due[np.cumsum(rows.first)[waits] - 1], goes_last.get(order, attempts < 0))
    in_turn: NDArray[np.int64] = waits[np.lexsort(keys)]
    return in_turn


def _attempts(campaign: CampaignRun) -> NDArray[np.int64]:
    """Return the counted attempts of each row's person so far (P5), including the row's own."""
    rows, past = campaign.rows, np.zeros(campaign.count, dtype=np.int64)
    for recipient, history in campaign.block.people.history.items():
        past[recipient] = history.call_attempt
    attempts: NDArray[np.int64] = past[rows.recipient]
    return attempts + attempts_so_far(rows.recipient, _ENDED[rows.kind])


def _overtaking(
    rows: list[int], ranks: list[int], begins: list[bool], released: list[bool]
) -> Iterator[tuple[int, int]]:
    """Yield each row that releases a call out of turn, and the index of the call that goes
    first.
    """
    waiting: list[int] = []
    # Entries of a heap can't be removed from its middle; they are marked, and dropped at the top.
    over = bytearray(len(rows))
    for row, rank, begin, release in zip(rows, ranks, begins, released, strict=True):
        if begin:
            heappush(waiting, rank)
            continue
        over[rank] = True
        # The heap still holds the released call itself, so that it is never empty here.
        while release and waiting[0] < rank and over[waiting[0]]:
            heappop(waiting)
        if release and waiting[0] < rank:
            yield row, waiting[0]
