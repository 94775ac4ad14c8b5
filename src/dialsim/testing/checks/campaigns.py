"""Checks of campaigns themselves: their states, starts and ends (rules C and T5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialsim.interface.status import CampaignStatus
from dialsim.testing.checks.record import CampaignRecord, Mask, Violation, kinds

S = CampaignStatus
_NOT_FINAL = (S.DRAFT, S.SCHEDULED, S.RUNNING, S.PAUSED)
_RULE_OF = {
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


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a campaign itself."""
    yield from _steps(campaign)
    yield from _starts(campaign)
    yield from _completions(campaign)
    yield from _pauses(campaign)
    yield from _closing(campaign)
    yield from _end(campaign)


def _steps(campaign: CampaignRecord) -> Iterator[Violation]:
    """Legal steps only, each from where the one before led to."""
    trace = campaign.run.trace
    status, last = S.DRAFT, trace.world.scenario.clock.start
    for change in campaign.changes:
        step = f"{change.cause} from {change.from_status} to {change.to_status}"
        rule = _RULE_OF.get(change.cause, "C1")
        if change.from_status is not status:
            yield campaign.breach(rule, change.at, f"{step}, but it was {status}")
        if (change.from_status, change.to_status, change.cause) not in _STEPS:
            yield campaign.breach(rule, change.at, f"{step} is no legal step")
        if not last <= change.at <= trace.end:
            yield campaign.breach("T5", change.at, f"{step} out of the run's time")
        status, last = change.to_status, change.at


def _starts(campaign: CampaignRecord) -> Iterator[Violation]:
    """RUNNING for the first time at the first instant that C2 allows, or by a resume (C5)."""
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


def _may_start(campaign: CampaignRecord, instant: int) -> int | None:
    """The first instant from `instant` on at which C2 lets the campaign run."""
    if campaign.scheduled is None:
        return None
    opens = int(campaign.hours.next_open(np.array([max(instant, campaign.start_at)]))[0])
    return opens if campaign.end_at is None or opens < campaign.end_at else None


def _completions(campaign: CampaignRecord) -> Iterator[Violation]:
    """COMPLETED in the very instant in which the last recipient is final, or on the resume (C3)."""
    for before, change in zip(campaign.changes, campaign.changes[1:], strict=False):
        if change.cause == "all_final":
            last = int(max(before.at, campaign.rows.at.max(initial=0)))
            if change.at != last:
                late = f"{change.at - last} ms after the last change"
                yield campaign.breach("C3", change.at, f"COMPLETED {late}")


def _pauses(campaign: CampaignRecord) -> Iterator[Violation]:
    """A pause leaves nobody in the queue, and no line being set up (C4)."""
    open_ = kinds("released", "dialled")
    for change in campaign.changes:
        if change.cause == "pause":
            left = _outlasting(campaign, open_, change.at) & (campaign.rows.at < change.at)
            yield from campaign.breaches(left, "C4", "goes on although it was paused")


def _outlasting(campaign: CampaignRecord, kind: Mask, instant: int) -> Mask:
    """The rows of such a kind that a call stays in after the instant's work."""
    rows = campaign.rows
    stays = (rows.then_at > instant) | rows.last
    outlasting: Mask = kind[rows.kind] & (rows.at <= instant) & stays
    return outlasting


def _closing(campaign: CampaignRecord) -> Iterator[Violation]:
    """A cancellation, a deletion and the end date leave nothing to be called (C6, C7, C8)."""
    if campaign.closing is None:
        return
    closed_at, rule = campaign.closing
    rows, made_at = campaign.rows, campaign.scheduled.at if campaign.scheduled else None
    first = kinds("scheduled")[rows.kind]
    moved = kinds("retry", "released", "dialled")[rows.kind] | (first & (closed_at != made_at))
    # a command from outside comes after the instant's work, and leaves no work of its own
    late = rows.at > closed_at if campaign.run.live else rows.at >= closed_at
    yield from campaign.breaches(moved & late, rule, "after the campaign was over")
    waits = kinds("scheduled", "retry", "window_closed", "paused", "released", "dialled")
    left = _outlasting(campaign, waits, closed_at)
    yield from campaign.breaches(left, rule, "waits on although the campaign is over")


def _end(campaign: CampaignRecord) -> Iterator[Violation]:
    """Expired by its end date (C7); final, stalled or cut short when the run is over (T5)."""
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
