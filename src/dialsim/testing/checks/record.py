"""A trace in order for the checks (organizations, campaigns, rows by call), and breaches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import (
    CHANGES,
    DIALLED,
    CampaignChange,
    LimitChange,
    ScheduledCampaign,
    Trace,
)
from dialsim.engine.world import CampaignBlock
from dialsim.interface.schedule import DayWindows
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.testing.sketch import stamp


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule of the rule book (`docs/rules.md`).

    `campaign`, `recipient` (position from 0) and `call` (from 1) are None where a breach concerns
    an organization's, a campaign's or a person's calls taken together; `at` is in ms, UTC.
    """

    rule: str
    organization: str
    campaign: str | None
    recipient: int | None
    call: int | None
    at: int
    text: str

    def __str__(self) -> str:
        who = self.organization if self.campaign is None else f"{self.organization}/{self.campaign}"
        if self.recipient is not None:
            who += f" recipient {self.recipient}"
        if self.call is not None:
            who += f" call {self.call}"
        return f"{self.rule} at {stamp(self.at)} (Thai time), {who}: {self.text}"


STATUSES = tuple(CallStatus)
NOTHING = len(CHANGES)
"""The kind of the change that did not come: what follows a call's last row."""

Instants = NDArray[np.int64]
Mask = NDArray[np.bool_]


def kinds(*causes: str) -> Mask:
    """By kind of change, `NOTHING` included: whether it has one of these causes."""
    return np.array([*(change.cause in causes for change in CHANGES), "nothing" in causes])


def leads_to(*statuses: CallStatus) -> Mask:
    """By kind of change: whether it leads to one of these statuses."""
    return np.array([*(change.to_status in statuses for change in CHANGES), False])


def net(status: CallStatus) -> NDArray[np.int64]:
    """By kind of change: by how many it changes the number of calls in this status."""
    return np.array([(c.to_status is status) - (c.from_status is status) for c in CHANGES])


@dataclass(frozen=True)
class RunRecord:
    """A trace, and how it came about.

    `live`: commands may have come from outside, after all of an instant's work (T4), so what held
    before them counts in that instant.
    """

    trace: Trace
    live: bool

    @property
    def cut(self) -> bool:
        """Whether calls may hang in the air at its end."""
        return self.trace.cut or not self.trace.idle

    def organizations(self) -> list[OrganizationRun]:
        """Its organizations, in the order of the scenario."""
        return [
            OrganizationRun(self, block.position, block.name, self._campaigns(block.position))
            for block in self.trace.world.organizations
        ]

    def _campaigns(self, organization: int) -> list[CampaignRun]:
        blocks = self.trace.world.organizations[organization].campaigns
        return [CampaignRun(self, block) for block in blocks]


class CampaignRun:
    """One campaign's part of a run: its changes, its schedule, and `rows` sorted by call."""

    def __init__(self, run: RunRecord, block: CampaignBlock) -> None:
        trace, position = run.trace, (block.organization, block.position)
        self.run = run
        self.block = block
        self.organization = trace.world.organizations[block.organization].name
        self.count = block.people.count
        self.changes: list[CampaignChange] = [
            row for row in trace.campaigns if (row.organization, row.campaign) == position
        ]
        self.scheduled: ScheduledCampaign | None = trace.requests.get(position)
        self.stalled = position in trace.stalled
        self.rows = CallRecord(trace, block)
        request = self.scheduled.request if self.scheduled else None
        self.hours = OpeningHours(request.time_windows if request else ())
        self.start_at = self.scheduled.start_at if self.scheduled else 0
        self.max_attempts = request.max_attempts if request else 0
        self.retry_interval = request.retry_interval if request else 0
        self.end_at: int | None = None
        if self.scheduled and request and request.end_date_time is not None:
            self.end_at = max(self.scheduled.at, request.end_date_time)

    def status_after(self, instant: int) -> CampaignStatus:
        """The status when all of an instant's work is done."""
        index = bisect_right([change.at for change in self.changes], instant)
        return self.changes[index - 1].to_status if index else CampaignStatus.DRAFT

    def runs_after(self, at: Instants) -> Mask:
        """Whether it is RUNNING when all of each instant's work is done."""
        return self._runs[np.searchsorted(self._changed_at, at, side="right")]

    def runs_in(self, at: Instants) -> Mask:
        """Whether it may release and dial in each instant: when commands come last, at any time."""
        if not self.run.live:
            return self.runs_after(at)
        ran = np.concatenate([[0], np.cumsum(self._runs)])
        since = np.searchsorted(self._changed_at, at, side="left")
        until = np.searchsorted(self._changed_at, at, side="right")
        runs: Mask = ran[until + 1] > ran[since]
        return runs

    @cached_property
    def _changed_at(self) -> Instants:
        return np.array([change.at for change in self.changes], dtype=np.int64)

    @cached_property
    def _runs(self) -> Mask:
        """Whether it was RUNNING before its first change, and after each."""
        return np.array([False, *(c.to_status is CampaignStatus.RUNNING for c in self.changes)])

    @cached_property
    def closing(self) -> tuple[int, str] | None:
        """When it was cancelled, deleted or its end date came, and by which rule: nobody is called
        again.
        """
        rules = {"cancel": "C6", "delete": "C8"}
        stops = [(row.at, rules[row.cause]) for row in self.changes if row.cause in rules]
        if self.end_at is not None and self.end_at <= self.run.trace.end:
            before = [change for change in self.changes if change.at < (self.end_at or 0)]
            if not (before and before[-1].to_status.final):
                stops.append((self.end_at, "C7"))
        return min(stops, default=None)

    def breach(self, rule: str, at: int, text: str) -> Violation:
        """A violation by the campaign itself."""
        return Violation(rule, self.organization, self.block.name, None, None, at, text)

    def breach_by(self, recipient: int, rule: str, at: int, text: str) -> Violation:
        """A violation by what happened, or not, to a person."""
        return Violation(rule, self.organization, self.block.name, recipient, None, at, text)

    def breaches(
        self, rows: Mask, rule: str, text: str | Callable[[int], str]
    ) -> Iterator[Violation]:
        """A violation by the call of each of the rows, at its instant; `text` may take the row."""
        for row in np.flatnonzero(rows).tolist():
            says = text if isinstance(text, str) else text(row)
            yield self.breach_at(row, rule, int(self.rows.at[row]), says)

    def breach_at(self, row: int, rule: str, at: int, text: str) -> Violation:
        """A violation by the call of a row."""
        recipient, call = int(self.rows.recipient[row]), int(self.rows.call[row])
        return Violation(rule, self.organization, self.block.name, recipient, call, at, text)


class CallRecord:
    """The rows of one campaign, by (recipient, call, occurrence), and what stands beside each.

    `first` and `last` mark a call's first and last row. `before` and `then` are the kinds of the
    rows before and after in the same call (`NOTHING` if none), `then_at` the latter's instant or
    the run's end. `number` and `voice` are what a dial showed, as indexes, -1 in other rows.
    """

    def __init__(self, trace: Trace, block: CampaignBlock) -> None:
        log = trace.calls[block.organization][block.position]
        rows = log.rows()
        self.order = np.argsort(rows.recipient.astype(np.int64) << 24 | rows.call, kind="stable")
        self.at = rows.at[self.order]
        self.recipient = rows.recipient[self.order]
        self.call = rows.call[self.order]
        self.kind = rows.kind[self.order].astype(np.int64)
        same = (self.recipient[1:] == self.recipient[:-1]) & (self.call[1:] == self.call[:-1])
        self.first = np.concatenate([[True], ~same])[: len(self.at)]
        self.last = np.concatenate([~same, [True]])[-len(self.at) or 1 :]
        self.before = np.where(self.first, NOTHING, np.roll(self.kind, 1))
        self.then = np.where(self.last, NOTHING, np.roll(self.kind, -1))
        self.then_at = np.where(self.last, trace.end, np.roll(self.at, -1))
        self.number = self._of_dials(rows.kind == DIALLED, log.dial_numbers)
        self.voice = self._of_dials(rows.kind == DIALLED, log.dial_voices)

    def _of_dials(self, dialled: Mask, shown: object) -> NDArray[np.int64]:
        values = np.full(len(dialled), -1, dtype=np.int64)
        values[dialled] = np.array(shown, dtype=np.int64)
        return values[self.order]


@dataclass(frozen=True)
class OrganizationRun:
    """One organization's part of a run."""

    run: RunRecord
    position: int
    name: str
    campaigns: list[CampaignRun]

    def limits_after(self, at: Instants) -> NDArray[np.int64]:
        """maxConcurrentCalls when all of each instant's work is done."""
        since = np.array([row.at for row in self._limits], dtype=np.int64)
        limits = np.array([0, *(row.limit for row in self._limits)])
        after: NDArray[np.int64] = limits[np.searchsorted(since, at, side="right")]
        return after

    def limits_in(self, at: Instants) -> NDArray[np.int64]:
        """The limit to which calls are dialled in each instant: when commands come last, the
        highest that it was.
        """
        limits = self.limits_after(at)
        if self.run.live:
            limits = np.maximum(limits, self.limits_after(at - 1))
            for row in self._limits:
                limits[at == row.at] = np.maximum(limits[at == row.at], row.limit)
        return limits

    @cached_property
    def _limits(self) -> list[LimitChange]:
        return [row for row in self.run.trace.limits if row.organization == self.position]

    def breach(self, rule: str, at: int, text: str) -> Violation:
        """A violation by the organization's calls taken together."""
        return Violation(rule, self.name, None, None, None, at, text)


MINUTE = 60_000
DAY = 24 * 60 * MINUTE
WEEK = 7 * DAY
_THURSDAY_TO_MONDAY = 3 * DAY + 7 * 60 * MINUTE  # 1 January 1970 was a Thursday; Thai time is UTC+7


class OpeningHours:
    """Opening hours of a campaign, asked of many instants at once (T2, T3).

    All arguments and results are instants in ms UTC, int64."""

    def __init__(self, windows: Iterable[DayWindows]) -> None:
        open_minutes = np.zeros(WEEK // MINUTE + 1, dtype=np.int8)
        for item in windows:
            for span in item.time:
                midnight = (item.day_of_week - 1) * DAY // MINUTE
                open_minutes[midnight + span.start_minute : midnight + span.end_minute] = 1
        edges = np.diff(open_minutes, prepend=np.int8(0))
        self._starts = np.flatnonzero(edges == 1) * MINUTE
        self._ends = np.flatnonzero(edges == -1) * MINUTE

    def are_open(self, at: Instants) -> NDArray[np.bool_]:
        """Whether calls may start, at each instant."""
        position = _week_position(at)
        after = np.searchsorted(self._starts, position, side="right")
        return after > np.searchsorted(self._ends, position, side="right")

    def next_close(self, at: Instants) -> Instants:
        """The first closed instant from each instant on."""
        position = _week_position(at)
        ends = np.append(self._ends, WEEK)
        closes = at + ends[np.searchsorted(self._ends, position, side="right")] - position
        return np.where(self.are_open(at), closes, at)

    def next_open(self, at: Instants) -> Instants:
        """The first open instant from each instant on; there must be some open minute."""
        position = _week_position(at)
        starts = np.append(self._starts, self._starts[0] + WEEK)
        opens = at + starts[np.searchsorted(self._starts, position, side="left")] - position
        return np.where(self.are_open(at), at, opens)

    def next_release(self, at: Instants, until: Instants, origin: int, interval: int) -> Instants:
        """The first open instant from each of `at` on among origin + k × interval (Q2).

        Where there is none before `until`, an instant from `until` on.
        """
        found = _on_grid(at, origin, interval)
        searched = np.flatnonzero((found < until) & ~self.are_open(found))
        while len(searched):
            found[searched] = _on_grid(self.next_open(found[searched]), origin, interval)
            ahead = found[searched] < until[searched]
            searched = searched[ahead & ~self.are_open(found[searched])]
        return found


def _week_position(at: Instants) -> Instants:
    """Milliseconds since Monday 00:00, Thai time."""
    return (at + _THURSDAY_TO_MONDAY) % WEEK


def _on_grid(at: Instants, origin: int, interval: int) -> Instants:
    """The first instant from each of `at` on that is origin + k × interval, k ≥ 0."""
    steps = -((origin - at) // interval)
    return origin + np.maximum(steps, 0) * interval
