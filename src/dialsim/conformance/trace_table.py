"""Table of a run's calls, made from the raw rows of its trace, with tables that only a run has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialsim.conformance.table import (
    DIALLED,
    FAR,
    LOST,
    NOT_HAPPENED,
    STATUSES,
    WAITS,
    WINDOW_CLOSED,
    WITHDRAWN,
    CampaignFacts,
    CheckedCalls,
    DialRows,
    Indices,
    Instants,
    Mask,
    OpeningHours,
    QueueStays,
    SharedLines,
    dial_gap,
    retry_due,
)
from dialsim.engine import trace as rows_of
from dialsim.engine.trace import CHANGES, CampaignChange, Trace
from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.schedule import ScheduleRequest

NOTHING = len(CHANGES)
"""Kind of change that stands for none: before a call's first row, and after its last one."""
TO_STATUS = np.array([*(STATUSES.index(change.to_status) for change in CHANGES), -1])


@cache
def kinds(*causes: str) -> Mask:
    """Return a table by kind of change: True for these causes; `nothing` stands for `NOTHING`."""
    table = np.array([*(change.cause in causes for change in CHANGES), "nothing" in causes])
    table.flags.writeable = False
    return table


# A dial was withdrawn, and is no attempt (P5), if a change of any other cause follows it.
_STANDS = kinds("ringing", "answered", "ended", "nothing")
_WAY = np.full(len(CHANGES) + 1, WITHDRAWN)
_WAY[kinds("dialled")] = DIALLED
_WAY[kinds("queue_timeout")] = LOST
_WAY[kinds("window_closed")] = WINDOW_CLOSED
_WAY[NOTHING] = WAITS


class CampaignRun(CampaignFacts):
    """A campaign of a run: its block, its request and its changes of status."""

    def __init__(self, table: TraceTable, block: CampaignBlock, owner: OrganizationBlock) -> None:
        trace, position = table.trace, (block.organization, block.position)
        self.block = block
        self._end = trace.end
        self.count = block.people.count
        self.changes: list[CampaignChange] = [
            row for row in trace.campaigns if (row.organization, row.campaign) == position
        ]
        self.scheduled = trace.requests.get(position)
        self.stalled = position in trace.stalled
        request = self.request
        self.end_at: int | None = None
        if self.scheduled and request and request.end_date_time is not None:
            self.end_at = max(self.scheduled.at, request.end_date_time)
        # A history in one campaign of the file moves release instants in all of them, but not in a
        # campaign that was added later (C1).
        of_file = owner.campaigns[: len(owner.settings.campaigns)]
        together = of_file if block.position < len(of_file) else [block]
        start_at = self.scheduled.start_at if self.scheduled else 0
        began_before = any(each.people.history for each in together)
        super().__init__(
            organization=owner.name,
            name=block.name,
            hours=OpeningHours(request.weekday_ranges) if request else None,
            start_at=start_at,
            first_due=request.start_date_time if request and began_before else start_at,
            max_attempts=request.max_attempts if request else 0,
            retry_interval=request.retry_interval if request else 0,
            caller_ids=None if request is None else _caller_ids(trace.world, block, request),
            voices=frozenset(request.tts_voice_keys or (block.agent.voice_key,))
            if request
            else None,
        )
        if self.closing is None:
            self.horizon = trace.end + 1
        else:
            end, number = self.closing
            self.ends = ((end + int(table.is_excused(np.array([end]))[0]), number),)
            self.horizon = min(self.closing[0], trace.end + 1)

    @property
    def request(self) -> ScheduleRequest | None:
        """Schedule request in force; None before scheduling."""
        return self.scheduled.request if self.scheduled else None

    @cached_property
    def closing(self) -> tuple[int, str] | None:
        """Instant and rule of the first cancellation, deletion or end date; None without one."""
        rules = {"cancel": "C6", "delete": "C8"}
        stops = [(row.at, rules[row.cause]) for row in self.changes if row.cause in rules]
        if self.end_at is not None and self.end_at <= self._end:
            before = [change for change in self.changes if change.at < self.end_at]
            if not (before and before[-1].to_status.final):
                stops.append((self.end_at, "C7"))
        return min(stops, default=None)

    def status_after(self, instant: int) -> CampaignStatus:
        """Return the campaign's status after all work of an instant."""
        passed = [change.to_status for change in self.changes if change.at <= instant]
        return passed[-1] if passed else CampaignStatus.DRAFT

    def runs_after(self, at: Instants) -> Mask:
        """Return True for instants after whose work the campaign is RUNNING."""
        runs = np.array([False, *(c.to_status is CampaignStatus.RUNNING for c in self.changes)])
        changed_at = np.array([change.at for change in self.changes], dtype=np.int64)
        after: Mask = runs[np.searchsorted(changed_at, at, side="right")]
        return after

    def is_open(self, at: Instants) -> Mask:
        """Return True for instants in a window; False for all without a schedule request."""
        return np.zeros(len(at), dtype=bool) if self.hours is None else self.hours.are_open(at)


def _caller_ids(
    world: World, block: CampaignBlock, request: ScheduleRequest
) -> frozenset[str | None]:
    """Return the caller IDs that a campaign may show (P3)."""
    if request.caller_ids is not None:
        return frozenset(request.caller_ids)
    account = world.organizations[block.organization].settings.calling_account()
    shared = world.scenario.service.shared_number
    return frozenset([account.sip_number(request) or block.agent.caller_id or shared])


class CallChanges:
    """Changes of all calls as rows, sorted by campaign, recipient, call and occurrence.

    `call` is the index of the row's call. `first` and `last` mark a call's first and last row.
    `before` and `then` are the kinds of the neighbouring rows of the same call (`NOTHING` if none);
    `then_at` is the instant of the next row or the run's end. `order` is each row's position before
    sorting, in order of occurrence; `parts` are the slices of each campaign's rows. `campaign`,
    `recipient` and `call_no` have an entry per call.
    """

    def __init__(self, trace: Trace) -> None:
        logs = [log for owner in trace.calls for log in owner]
        written = [log.rows() for log in logs]
        ends = np.cumsum([len(rows) for rows in written]).tolist()
        self.parts = [slice(*bounds) for bounds in pairwise([0, *ends])]
        campaign = np.repeat(np.arange(len(logs)), [len(rows) for rows in written])
        recipient = joined([rows.recipient for rows in written])
        call_no = joined([rows.call for rows in written])
        kind = joined([rows.kind for rows in written])
        # One integer key sorts faster than lexsort; stable keeps the order of occurrence.
        key = campaign << 48 | recipient << 24 | call_no
        self.order = np.argsort(key, kind="stable")
        self.at, self.kind = joined([rows.at for rows in written])[self.order], kind[self.order]
        self.caller_id, self.voice = np.full(len(kind), -1), np.full(len(kind), -1)
        self.caller_id[kind == rows_of.DIALLED] = joined([log.dial_numbers for log in logs])
        self.voice[kind == rows_of.DIALLED] = joined([log.dial_voices for log in logs])
        self.caller_id, self.voice = self.caller_id[self.order], self.voice[self.order]
        self.first = np.diff(key[self.order], prepend=-1) != 0
        self.last = np.append(self.first[1:], True)[: len(kind)]
        self.call = np.cumsum(self.first) - 1
        self.before = np.where(self.first, NOTHING, np.roll(self.kind, 1))
        self.then = np.where(self.last, NOTHING, np.roll(self.kind, -1))
        self.then_at = np.where(self.last, trace.end, np.roll(self.at, -1))
        self.campaign, self.recipient, self.call_no = (
            column[self.order][self.first] for column in (campaign, recipient, call_no)
        )

    def of_kind(self, *causes: str) -> Mask:
        """Return True for rows whose change has one of these causes."""
        return kinds(*causes)[self.kind]

    def latest(self, rows: Mask) -> Instants:
        """Return the instant of each call's last row among `rows`; NOT_HAPPENED without one."""
        at = np.full(len(self.recipient), NOT_HAPPENED)
        # Of several values for one index numpy keeps the last one.
        at[self.call[rows]] = self.at[rows]
        return at


def joined(parts: Sequence[Any]) -> NDArray[np.int64]:
    """Concatenate arrays; return an empty one if there are none."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts], dtype=np.int64)


class TraceTable(CheckedCalls):
    """Calls of a run, its changes of calls and campaigns, and its people.

    People are numbered over all campaigns. Columns with an entry per person are `campaign_of`,
    `recipient_of`, `newest` (index of the last call, -1 without one) and `removed` (as a duplicate,
    D3). Four more are taken from histories: `attempts_before`, `reached_before`, `due_again`
    (instant at which the next call is due) and `resumes_at` (instant at which it is made); the last
    two are `FAR` without a history.
    """

    campaigns: list[CampaignRun]

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.missing = dict.fromkeys(("bodies", "posts", "log"), "the run has no log")
        world, engine = trace.world, trace.world.scenario.engine
        self.organizations = world.organizations
        self.campaigns = [
            CampaignRun(self, block, owner)
            for owner in self.organizations
            for block in owner.campaigns
        ]
        self.queue_timeout = engine.queue_timeout
        self.release_interval = engine.release_interval
        self.dial_gap = dial_gap(engine.calls_per_second)
        self.changes = CallChanges(trace)
        self._fill_columns()
        self._fill_people()
        self._fill_side_tables()
        codes = np.array([one.block.organization for one in self.campaigns], dtype=np.int64)
        self.shared_lines = [
            SharedLines(
                np.flatnonzero(codes == owner.position).tolist(),
                lambda at, owner=owner: self.limits_in(owner.position, at),  # type: ignore[misc]
                "maxConcurrentCalls is",
            )
            for owner in self.organizations
        ]

    @property
    def is_cut(self) -> bool:
        """True if calls may be unfinished at the end of the run."""
        return self.trace.cut or not self.trace.idle

    def _fill_columns(self) -> None:
        rows = self.changes
        self.campaign, self.recipient, self.call_no = rows.campaign, rows.recipient, rows.call_no
        offsets = np.cumsum([0, *(one.count for one in self.campaigns)])
        self.person = offsets[self.campaign] + self.recipient
        self.status = TO_STATUS[rows.kind[rows.last]]
        self.attempt = np.zeros(len(self.status), dtype=np.int64)
        self.created = rows.at[rows.first]
        self.queued = rows.latest(rows.of_kind("released"))
        self.initiated = rows.latest(rows.of_kind("dialled") & _STANDS[rows.then])
        self.ringing = rows.latest(rows.of_kind("ringing"))
        self.started = rows.latest(rows.of_kind("answered"))
        self.ended = rows.latest(rows.of_kind("ended", "queue_timeout"))

    def _fill_people(self) -> None:
        counts = [one.count for one in self.campaigns]
        size = sum(counts)
        self.campaign_of = np.repeat(np.arange(len(counts)), counts)
        self.recipient_of = joined([np.arange(count) for count in counts])
        self.removed = np.zeros(size, dtype=bool)
        self.attempts_before = np.zeros(size, dtype=np.int64)
        self.reached_before = np.zeros(size, dtype=bool)
        self.due_again = np.full(size, FAR)
        self.resumes_at = np.full(size, FAR)
        for one, offset in zip(self.campaigns, np.cumsum([0, *counts]).tolist(), strict=False):
            if one.scheduled is None:
                continue
            self.removed[offset + np.array(one.scheduled.removed, dtype=np.int64)] = True
            for recipient, past in one.block.people.history.items():
                status = np.array([STATUSES.index(past.latest_call_status)])
                due = retry_due(np.array([past.last_ended_at]), one.retry_interval or 0, status)[0]
                person = offset + recipient
                self.attempts_before[person] = past.call_attempt
                self.reached_before[person] = past.reached
                self.due_again[person] = due
                self.resumes_at[person] = max(one.scheduled.at, due)
        self.past_attempts = self.attempts_before[self.person]
        self.past_reached = self.reached_before[self.person]
        self.newest = np.full(size, -1)
        self.newest[self.person] = np.arange(len(self.person))

    def _fill_side_tables(self) -> None:
        rows = self.changes
        dialled, released = rows.of_kind("dialled"), rows.of_kind("released")
        call, at, stands = rows.call[dialled], rows.at[dialled], _STANDS[rows.then[dialled]]
        over = np.where(self.ended[call] == NOT_HAPPENED, FAR, self.ended[call])
        over = np.where(stands, over, rows.then_at[dialled])
        world = self.trace.world
        # Index -1, of an unknown voice, selects the None at the end.
        caller_id = np.array([*world.numbers, None], dtype=object)[rows.caller_id[dialled]]
        voice = np.array([*world.voice_keys, None], dtype=object)[rows.voice[dialled]]
        self.dials = DialRows(call, at, at, over, caller_id, voice, stands)
        self.stays = QueueStays(
            rows.call[released], rows.at[released], rows.at[released], rows.then_at[released],
            _WAY[rows.then[released]],
        )  # fmt: skip

    def limits_after(self, organization: int, at: Instants) -> Instants:
        """Return maxConcurrentCalls after all work of each instant."""
        rows = self.trace.limits_of(organization)
        since = np.array([row.at for row in rows], dtype=np.int64)
        limits = np.array([0, *(row.limit for row in rows)])
        after: Instants = limits[np.searchsorted(since, at, side="right")]
        return after

    def limits_in(self, organization: int, at: Instants) -> Instants:
        """Return the number of lines in each instant; `FAR` (no limit) at instants of commands."""
        return np.where(self.is_excused(at), FAR, self.limits_after(organization, at))

    def is_excused(self, at: Instants) -> Mask:
        """Return True for instants at which a client sent a command.

        A command comes after all other work of its instant (T4), so the state after the instant may
        differ from the state in which the work was done.
        """
        return np.isin(at, np.array(self.trace.turns, dtype=np.int64))

    @cached_property
    def loads(self) -> list[Load]:
        """Loads of all organizations, which several rules need."""
        return [Load(self, owner) for owner in self.organizations]


class Load:
    """Calls and lines of an organization after the work of each instant with a change.

    The columns have an entry per instant `at`. `then` is the next instant, the last one being the
    run's end plus 1 ms. `limits` is the number of lines, `queued` the number of calls in the queue,
    and `busy` the number of calls that hold a line. `waiting`, `used` (queued or busy) and
    `released` (True if a call was released in the instant) have a row per campaign. From
    `counted_since` on, a call is released only if a line is free for it (Q10, Q11); `FAR` if never.
    """

    def __init__(self, table: TraceTable, owner: OrganizationBlock) -> None:
        self.table, self.owner = table, owner
        codes = [
            code for code, one in enumerate(table.campaigns)
            if one.block.organization == owner.position
        ]  # fmt: skip
        self.campaigns = [table.campaigns[code] for code in codes]
        rows, end = table.changes, table.trace.end
        parts = [rows.at[rows.parts[code]] for code in codes]
        commands = [row.at for row in table.trace.limits_of(owner.position)]
        commands += [row.at for one in self.campaigns for row in one.changes]
        # Between two of these instants nothing changes, so that all rules can be checked on them
        # alone.
        self.at: Instants = np.unique(joined([commands, *parts]))
        self.at = self.at[self.at <= end]
        self.then: Instants = np.append(self.at[1:], end + 1)[: len(self.at)]
        self.limits = table.limits_after(owner.position, self.at)
        kind = joined([rows.kind[rows.parts[code]] for code in codes])
        campaign = np.repeat(np.arange(len(codes)), [len(part) for part in parts])
        where = campaign, np.searchsorted(self.at, joined(parts))

        def tally(weights: NDArray[Any]) -> NDArray[np.int64]:
            total = np.zeros((len(codes), len(self.at) + 1), dtype=np.int64)
            # np.add.at, not +=: several rows fall into one instant.
            np.add.at(total, where, weights[kind])
            within: NDArray[np.int64] = total[:, :-1]
            return within

        def calls_in(status: CallStatus) -> NDArray[np.int64]:
            net = [(c.to_status is status) - (c.from_status is status) for c in CHANGES]
            return np.cumsum(tally(np.array(net)), axis=1)

        self.released = tally(kinds("released")) > 0
        self.dialled_at = np.sort(joined(parts)[kinds("dialled")[kind]])
        self.waiting = calls_in(CallStatus.SCHEDULED)
        queued, busy = calls_in(CallStatus.QUEUED), calls_in(CallStatus.INITIATED)
        self.queued, self.busy, self.used = queued.sum(axis=0), busy.sum(axis=0), queued + busy
        self._left = [self._people_left(code) for code in codes]
        self.counted_since = min(
            (one.scheduled.at for one in self.campaigns
             if one.scheduled and one.block.share.counts_lines), default=FAR,
        )  # fmt: skip

    def _people_left(self, code: int) -> NDArray[np.int64]:
        """Return the number of unsettled people (C3) after each instant, while no call is
        cancelled.
        """
        table, most = self.table, self.table.campaigns[code].max_attempts or 0
        over = table.removed | table.reached_before | (table.attempts_before >= most)
        settled = table.is_counted & (table.is_reached | (table.attempts >= most))
        ended = np.sort(table.ended[settled & (table.campaign == code)])
        left = int(np.sum(~over & (table.campaign_of == code)))
        return left - np.searchsorted(ended, self.at, side="right")

    def queue_room(self, limits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the capacity of the queue at each of these numbers of lines (Q2)."""
        given = self.table.trace.world.scenario.engine.queue_limit
        if given is None:
            return limits
        return np.full(len(limits), FAR if given == "unlimited" else given)

    def held(self, index: Indices, at: Instants) -> NDArray[np.int64]:
        """Return the number of lines kept for each campaign (Q11) at the instants `at`.

        `index` selects the instants of the latest changes before `at`. A campaign that can't call
        at the time keeps no lines from others, and no campaign keeps more lines than it has people
        left.
        """
        held = np.zeros((len(self.campaigns), len(index)), dtype=np.int64)
        for part, one in enumerate(self.campaigns):
            end = FAR if one.closing is None else one.closing[0]
            calls = one.runs_after(self.at[index]) & one.is_open(at) & (at < end)
            most = np.minimum(one.block.share.reserved, self._left[part][index])
            held[part] = np.where(calls, most, 0)
        return held

    def taken(self, index: Indices, at: Instants) -> NDArray[np.int64]:
        """Return the number of lines that campaigns take.

        A campaign takes a line per call under way or queued, or the lines kept for it (see `held`)
        if those are more.
        """
        taken: NDArray[np.int64] = np.maximum(self.used[:, index], self.held(index, at)).sum(axis=0)
        return taken

    def has_line(self, part: int, index: Indices, at: Instants) -> Mask:
        """Return True where a line is available for one more call of a campaign."""
        used, limits = self.used[part, index], self.limits[index]
        free = (self.busy + self.queued)[index] < limits
        free &= used < self.campaigns[part].block.share.at_most
        own = (used < self.held(index, at)[part]) | (self.taken(index, at) < limits)
        # Before the first request with shares, calls are released without a free line (Q10).
        there: Mask = (free & own) | (at < self.counted_since)
        return there
