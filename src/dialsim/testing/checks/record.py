"""Trace in the order that checks need (organizations, campaigns, rows by call), and violations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialsim.conformance.calls import STATUSES, OpeningHours, retry_due
from dialsim.engine.trace import (
    CHANGES,
    DIALLED,
    CampaignChange,
    LimitChange,
    ScheduledCampaign,
    Trace,
)
from dialsim.engine.world import CampaignBlock
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.scenario.campaign import Past
from dialsim.testing.sketch import stamp


@dataclass(frozen=True, slots=True)
class Violation:
    """Violation of a rule of the rule book (`docs/rules.md`).

    `campaign`, `recipient` (position from 0) and `call` (from 1) are None for a violation by all
    calls of an organization, a campaign or a person together; `at` is in ms, UTC.
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


NOTHING = len(CHANGES)
"""Kind that follows a call's last row, for a missing change."""

Instants = NDArray[np.int64]
Mask = NDArray[np.bool_]


def kinds(*causes: str) -> Mask:
    """Return a table by kind of change, `NOTHING` included: True for these causes."""
    return np.array([*(change.cause in causes for change in CHANGES), "nothing" in causes])


def leads_to(*statuses: CallStatus) -> Mask:
    """Return a table by kind of change: True if it leads to one of these statuses."""
    return np.array([*(change.to_status in statuses for change in CHANGES), False])


def net(status: CallStatus) -> NDArray[np.int64]:
    """Return a table by kind of change: change in the number of calls in this status."""
    return np.array([(c.to_status is status) - (c.from_status is status) for c in CHANGES])


@dataclass(frozen=True)
class RunRecord:
    """Trace, and the way it was made.

    `live` is True if commands may have come from outside, after all work of an instant (T4): states
    before the commands then count in that instant as well.
    """

    trace: Trace
    live: bool

    @property
    def cut(self) -> bool:
        """True if calls may be unfinished at its end."""
        return self.trace.cut or not self.trace.idle

    def organizations(self) -> list[OrganizationRun]:
        """Return its organizations, in the order of the scenario."""
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
        self.hours = OpeningHours(request.weekday_ranges if request else ())
        self.start_at = self.scheduled.start_at if self.scheduled else 0
        owner = trace.world.organizations[block.organization]
        # Campaigns added during a run start on their own; those of the file share one beginning
        # (C1).
        of_file = owner.campaigns[: len(owner.settings.campaigns)]
        together = of_file if block.position < len(of_file) else [block]
        began_before = any(each.people.history for each in together)  # C1
        self.first_due = request.start_date_time if request and began_before else self.start_at
        self.max_attempts = request.max_attempts if request else 0
        self.retry_interval = request.retry_interval if request else 0
        self.end_at: int | None = None
        if self.scheduled and request and request.end_date_time is not None:
            self.end_at = max(self.scheduled.at, request.end_date_time)

    def due_after(self, past: Past) -> int:
        """Return the instant at which the call that continues a history is due (R2)."""
        status = np.array([STATUSES.index(past.latest_call_status)])
        return int(retry_due(np.array([past.last_ended_at]), self.retry_interval, status)[0])

    def status_after(self, instant: int) -> CampaignStatus:
        """Return the status after all work of an instant."""
        index = bisect_right([change.at for change in self.changes], instant)
        return self.changes[index - 1].to_status if index else CampaignStatus.DRAFT

    def runs_after(self, at: Instants) -> Mask:
        """Return True where it is RUNNING after all work of an instant."""
        return self._runs[np.searchsorted(self._changed_at, at, side="right")]

    def runs_in(self, at: Instants) -> Mask:
        """Return True where it may release and dial at some time of an instant."""
        if not self.run.live:
            return self.runs_after(at)
        # A prefix sum tells if any status within the instant was RUNNING.
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
        """True if RUNNING, before the first change and after each."""
        return np.array([False, *(c.to_status is CampaignStatus.RUNNING for c in self.changes)])

    @cached_property
    def closing(self) -> tuple[int, str] | None:
        """Instant of cancellation, deletion or end date, after which no call is made, and its
        rule.
        """
        rules = {"cancel": "C6", "delete": "C8"}
        stops = [(row.at, rules[row.cause]) for row in self.changes if row.cause in rules]
        if self.end_at is not None and self.end_at <= self.run.trace.end:
            before = [change for change in self.changes if change.at < (self.end_at or 0)]
            if not (before and before[-1].to_status.final):
                stops.append((self.end_at, "C7"))
        return min(stops, default=None)

    def breach(self, rule: str, at: int, text: str) -> Violation:
        """Return a violation by the campaign itself."""
        return Violation(rule, self.organization, self.block.name, None, None, at, text)

    def breach_by(self, recipient: int, rule: str, at: int, text: str) -> Violation:
        """Return a violation that concerns a person."""
        return Violation(rule, self.organization, self.block.name, recipient, None, at, text)

    def breaches(
        self, rows: Mask, rule: str, text: str | Callable[[int], str]
    ) -> Iterator[Violation]:
        """Yield a violation by the call of each row, at its instant; `text` may be a function of
        the row.
        """
        for row in np.flatnonzero(rows).tolist():
            says = text if isinstance(text, str) else text(row)
            yield self.breach_at(row, rule, int(self.rows.at[row]), says)

    def breach_at(self, row: int, rule: str, at: int, text: str) -> Violation:
        """Return a violation by the call of a row."""
        recipient, call = int(self.rows.recipient[row]), int(self.rows.call[row])
        return Violation(rule, self.organization, self.block.name, recipient, call, at, text)


class CallRecord:
    """Rows of one campaign, by (recipient, call, occurrence), with their neighbours.

    `first` and `last` mark a call's first and last row. `before` and `then` are the kinds of the
    neighbouring rows of the same call (`NOTHING` if none); `then_at` is the instant of the next row
    or the run's end. `number` and `voice` are a dial's caller ID and voice, as indices, -1 in other
    rows.
    """

    def __init__(self, trace: Trace, block: CampaignBlock) -> None:
        log = trace.calls[block.organization][block.position]
        rows = log.rows()
        # One integer key sorts faster than lexsort; stable keeps the order of occurrence.
        self.order = np.argsort(rows.recipient.astype(np.int64) << 24 | rows.call, kind="stable")
        self.at = rows.at[self.order]
        self.recipient = rows.recipient[self.order]
        self.call = rows.call[self.order]
        self.kind = rows.kind[self.order].astype(np.int64)
        same = (self.recipient[1:] == self.recipient[:-1]) & (self.call[1:] == self.call[:-1])
        self.first = np.concatenate([[True], ~same])[: len(self.at)]
        # `or 1`: with no rows `[-0:]` would be the whole array instead of nothing.
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
        """Return maxConcurrentCalls after all work of each instant."""
        since = np.array([row.at for row in self._limits], dtype=np.int64)
        limits = np.array([0, *(row.limit for row in self._limits)])
        after: NDArray[np.int64] = limits[np.searchsorted(since, at, side="right")]
        return after

    def limits_in(self, at: Instants) -> NDArray[np.int64]:
        """Return the highest maxConcurrentCalls in each instant, to which calls may have been
        dialled.
        """
        limits = self.limits_after(at)
        if self.run.live:
            # A command may have lowered the limit after the instant's dials.
            limits = np.maximum(limits, self.limits_after(at - 1))
            for row in self._limits:
                limits[at == row.at] = np.maximum(limits[at == row.at], row.limit)
        return limits

    @cached_property
    def _limits(self) -> list[LimitChange]:
        return [row for row in self.run.trace.limits if row.organization == self.position]

    def breach(self, rule: str, at: int, text: str) -> Violation:
        """Return a violation by the organization's calls together."""
        return Violation(rule, self.name, None, None, None, at, text)
