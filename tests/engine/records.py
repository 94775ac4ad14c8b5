"""A trace put in order for the checks of `violations`: organizations, campaigns, people's rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from dialsim.engine.trace import CampaignChange, ScheduledCampaign, Trace
from dialsim.engine.windows import Windows
from dialsim.interface.status import CampaignStatus
from engine.rows import Row, rows
from engine.violations import Violation


@dataclass
class CampaignRecord:
    """One campaign's part of a trace; `people[r][k]` are the rows of call k + 1 of recipient r."""

    trace: Trace
    name: str
    count: int
    changes: list[CampaignChange]
    scheduled: ScheduledCampaign | None
    stalled: bool
    rows: list[Row] = field(default_factory=list)
    people: defaultdict[int, list[list[Row]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        request = self.scheduled and self.scheduled.request
        self.windows = Windows.of(request.time_windows) if request else Windows([])
        self.start_at = self.scheduled.start_at if self.scheduled else 0
        self.end_at = None
        if request and request.end_date_time is not None:
            self.end_at = max(self.scheduled.at, request.end_date_time)
        self.max_attempts = request.max_attempts if request else 0
        self.retry_interval = request.retry_interval if request else 0

    def status_after(self, instant: int) -> CampaignStatus:
        """The status when all of an instant's work is done."""
        index = bisect_right([change.at for change in self.changes], instant)
        return self.changes[index - 1].to_status if index else CampaignStatus.DRAFT

    @property
    def closed_at(self) -> int | None:
        """When it was cancelled or deleted, or its end date came: nobody is called again."""
        stops = [change.at for change in self.changes if change.cause in ("cancel", "delete")]
        if self.end_at is not None and self.end_at <= self.trace.end:
            before = [change for change in self.changes if change.at < self.end_at]
            if not (before and before[-1].to_status.final):
                stops.append(self.end_at)
        return min(stops, default=None)

    def breach(
        self, rule: str, at: int, how: str, call: tuple[int, int] | None = None
    ) -> Violation:
        """A violation by the campaign, or by a call (recipient from 0, call from 1) of it."""
        who = self.name if call is None else f"{self.name} recipient {call[0]} call {call[1]}"
        return Violation(rule, at, who, how)


@dataclass
class OrganizationRecord:
    """One organization's part of a trace; `limits` are (instant, maxConcurrentCalls) from then."""

    trace: Trace
    name: str
    limits: list[tuple[int, int]]
    campaigns: list[CampaignRecord]

    def limit_after(self, instant: int) -> int:
        """The limit when all of an instant's work is done."""
        return self.limits[bisect_right([at for at, _ in self.limits], instant) - 1][1]


def records(trace: Trace) -> list[OrganizationRecord]:
    """All organizations of a trace."""
    found = [
        OrganizationRecord(
            trace=trace,
            name=block.name,
            limits=[(row.at, row.limit) for row in trace.limits if row.organization == o],
            campaigns=[
                CampaignRecord(
                    trace=trace,
                    name=f"{block.name}/{part.name}",
                    count=part.people.count,
                    changes=[row for row in trace.campaigns if row[1:3] == (o, c)],
                    scheduled=trace.requests.get((o, c)),
                    stalled=(o, c) in trace.stalled,
                )
                for c, part in enumerate(block.campaigns)
            ],
        )
        for o, block in enumerate(trace.world.organizations)
    ]
    for row in rows(trace):
        campaign = found[row.organization].campaigns[row.campaign]
        campaign.rows.append(row)
        calls = campaign.people[row.recipient]
        while len(calls) < row.call:
            calls.append([])
        calls[row.call - 1].append(row)
    return found
