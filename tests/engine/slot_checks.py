"""Checks of an organization's slots, queue and pace (Q1, Q2, Q4), and that nobody waits in vain."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby, pairwise
from math import ceil, inf

from engine.records import CampaignRecord, OrganizationRecord
from engine.rows import Row
from engine.violations import Violation


class Tally:
    """What an organization's calls are doing, counted row by row."""

    def __init__(self) -> None:
        self.slots = 0
        self.queued = 0
        self.waiting: dict[int, int] = {}  # SCHEDULED calls, by campaign
        self.dialled_last: int | None = None

    def count(self, row: Row) -> None:
        """One more change."""
        before, after = row.change.from_status, row.change.to_status
        self.slots += (after == "INITIATED") - (before == "INITIATED")
        self.queued += (after == "QUEUED") - (before == "QUEUED")
        waiting = self.waiting.get(row.campaign, 0)
        self.waiting[row.campaign] = waiting + (after == "SCHEDULED") - (before == "SCHEDULED")
        if row.change.cause == "dialled":
            self.dialled_last = row.at


def violations(organization: OrganizationRecord) -> Iterator[Violation]:
    """Every breach by an organization's calls taken together, instant by instant."""
    tally = Tally()
    rows = sorted(row for campaign in organization.campaigns for row in campaign.rows)
    by_instant = {at: list(group) for at, group in groupby(rows, key=lambda row: row.at)}
    instants = {at for at, _ in organization.limits} | set(by_instant)
    instants |= {change.at for part in organization.campaigns for change in part.changes}
    ordered = [*sorted(instants), organization.trace.end + 1]
    for at, then in pairwise(ordered):
        happened = by_instant.get(at, [])
        yield from _pace(organization, tally.dialled_last, happened)
        for row in happened:
            tally.count(row)
        causes = {row.change.cause for row in happened}
        limit = organization.limit_after(at)
        if "dialled" in causes and tally.slots > limit:
            yield Violation("Q1", at, organization.name, f"{tally.slots} calls on {limit} slots")
        if "released" in causes and (
            limit == 0 or tally.queued > _queue_limit(organization, limit)
        ):
            yield Violation("Q2", at, organization.name, f"{tally.queued} queued, limit {limit}")
        yield from _grid(organization, happened)
        yield from _in_vain(organization, tally, at, then)


def _queue_limit(organization: OrganizationRecord, limit: int) -> float:
    given = organization.trace.world.scenario.engine.queue_limit
    return limit if given is None else inf if given == "unlimited" else given


def _gap(organization: OrganizationRecord) -> int:
    rate = organization.trace.world.scenario.engine.calls_per_second
    return 0 if rate is None else ceil(1000 / Fraction(str(rate)))


def _pace(
    organization: OrganizationRecord, last: int | None, rows: list[Row]
) -> Iterator[Violation]:
    """Dials far enough apart (Q4)."""
    gap = _gap(organization)
    for row in rows:
        if gap and row.change.cause == "dialled":
            if last is not None and row.at - last < gap:
                yield Violation("Q4", row.at, organization.name, f"{row.at - last} ms after a dial")
            last = row.at


def _grid(organization: OrganizationRecord, rows: list[Row]) -> Iterator[Violation]:
    """Releases only at the campaign's release instants (Q2)."""
    interval = organization.trace.world.scenario.engine.release_interval
    for row in rows:
        campaign = organization.campaigns[row.campaign]
        if interval and row.change.cause == "released" and (row.at - campaign.start_at) % interval:
            yield campaign.breach("Q2", row.at, "released off the grid", row[3:5])


def _in_vain(
    organization: OrganizationRecord, tally: Tally, at: int, then: int
) -> Iterator[Violation]:
    """From `at` until `then`, where nothing changes, nobody can be dialled or released."""
    limit = organization.limit_after(at)
    if tally.queued and tally.slots < limit:
        last = tally.dialled_last
        free_at = at if last is None else max(at, last + _gap(organization))
        if free_at < then:
            yield Violation("Q4", free_at, organization.name, "a slot is free and a call is queued")
    if limit == 0 or tally.queued >= _queue_limit(organization, limit):
        return
    for position, campaign in enumerate(organization.campaigns):
        if tally.waiting.get(position) and campaign.status_after(at) == "RUNNING":
            may = _next_release(campaign, at)
            if may is not None and may < then:
                yield campaign.breach("Q2", may, "room in the queue and a call that waits for it")


def _next_release(campaign: CampaignRecord, at: int) -> int | None:
    interval = campaign.trace.world.scenario.engine.release_interval
    if not interval:
        return campaign.windows.next_open(at)
    return campaign.windows.next_open_on_grid(at, campaign.start_at, interval)
