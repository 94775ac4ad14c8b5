"""Checks of campaigns: their states (C), their ends, and where everybody ends up."""

from __future__ import annotations

from collections.abc import Iterator

from dialsim.interface.status import CallStatus, CampaignStatus
from engine.records import CampaignRecord
from engine.violations import Violation

S = CampaignStatus
STEPS = {
    (S.DRAFT, S.SCHEDULED, "schedule"): "C1",
    (S.SCHEDULED, S.RUNNING, "start"): "C2",
    (S.RUNNING, S.COMPLETED, "all_final"): "C3",
    **{(status, S.PAUSED, "pause"): "C4" for status in (S.SCHEDULED, S.RUNNING)},
    **{(S.PAUSED, status, "resume"): "C5" for status in (S.SCHEDULED, S.RUNNING)},
    **{
        (status, S.CANCELLED, cause): rule
        for status in (S.DRAFT, S.SCHEDULED, S.RUNNING, S.PAUSED)
        for cause, rule in (("cancel", "C6"), ("delete", "C8"))
    },
    **{(status, S.EXPIRED, "end_date_time"): "C7" for status in (S.SCHEDULED, S.RUNNING, S.PAUSED)},
    **{(status, status, "delete"): "C8" for status in S if status.final},
}
UNREACHED = (CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a campaign itself."""
    yield from _states(campaign)
    yield from _starts(campaign)
    yield from _completions(campaign)
    yield from _ending(campaign)
    yield from _fates(campaign)


def _states(campaign: CampaignRecord) -> Iterator[Violation]:
    """Legal steps only, each from where the one before led to (C)."""
    status, last = S.DRAFT, campaign.trace.world.scenario.clock.start
    for change in campaign.changes:
        if change.from_status is not status:
            yield campaign.breach("C", change.at, f"{change.from_status} where it was {status}")
        if change[3:] not in STEPS:
            text = f"{change.from_status} to {change.to_status} by {change.cause}"
            yield campaign.breach("C", change.at, text)
        if change.at < last or change.at > campaign.trace.end:
            yield campaign.breach("T5", change.at, "a change out of the run's time")
        status, last = change.to_status, change.at


def _starts(campaign: CampaignRecord) -> Iterator[Violation]:
    """RUNNING for the first time at the first instant that C2 allows, or by a resume (C5)."""
    ran, waits_since = False, None
    for change in campaign.changes:
        now = change.at
        may_run = (
            now >= campaign.start_at
            and campaign.windows.is_open(now)
            and (campaign.end_at is None or now < campaign.end_at)
        )
        if change.to_status is S.RUNNING and not ran and not may_run:
            yield campaign.breach("C2", now, "RUNNING before it may")
        if change.cause == "resume" and change.to_status is S.SCHEDULED and (ran or may_run):
            yield campaign.breach("C5", now, "SCHEDULED although it may run")
        if waits_since is not None:
            earliest = campaign.windows.next_open(max(waits_since, campaign.start_at))
            if earliest < now and (campaign.end_at is None or earliest < campaign.end_at):
                yield campaign.breach("C2", now, "SCHEDULED longer than it had to be")
        waits_since = now if change.to_status is S.SCHEDULED else None
        ran = ran or change.to_status is S.RUNNING


def _completions(campaign: CampaignRecord) -> Iterator[Violation]:
    """COMPLETED in the very instant in which the last recipient is final, or on the resume (C3)."""
    for before, change in zip([None, *campaign.changes], campaign.changes, strict=False):
        if change.cause == "all_final" and before is not None:
            last = max([before.at, *(row.at for row in campaign.rows)])
            if change.at != last:
                yield campaign.breach(
                    "C3", change.at, f"COMPLETED, but the last change was at {last}"
                )


def _ending(campaign: CampaignRecord) -> Iterator[Violation]:
    """The end date leaves nothing waiting and nothing to come (C7), nor does a cancellation."""
    closed, end = campaign.closed_at, campaign.trace.end
    final = campaign.status_after(end).final
    if closed is not None:
        for row in campaign.rows:
            if row.at >= closed and row.change.cause in (
                "scheduled",
                "retry",
                "released",
                "dialled",
            ):
                if row.at == closed == campaign.scheduled.at and row.change.cause == "scheduled":
                    continue  # C7: an end date already past at the request
                text = f"{row.change.cause} after the campaign was over"
                yield campaign.breach("C6 C7 C8", row.at, text, (row.recipient, row.call))
    if campaign.end_at is not None and campaign.end_at <= end:
        late = campaign.status_after(campaign.end_at)
        if late is S.SCHEDULED or (late is S.DRAFT):
            yield campaign.breach("C7", campaign.end_at, f"still {late} after its end date")
    if not (final or campaign.trace.cut or campaign.stalled or campaign.scheduled is None):
        yield campaign.breach("T5", end, "neither final nor stalled, though nothing cut the run")
    if campaign.stalled and (final or campaign.scheduled is None):
        yield campaign.breach("T5", end, "stalled, but final or never scheduled")


def _fates(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every recipient of a campaign that is over is in exactly one final state."""
    over = campaign.status_after(campaign.trace.end).final and not campaign.trace.cut
    for recipient in range(campaign.count) if campaign.scheduled else ():
        calls = [rows for rows in campaign.people.get(recipient, []) if rows]
        ends = [rows[-1].change.to_status for rows in calls]
        attempts = sum(rows[-1].change.cause == "ended" for rows in calls)
        again = ends and (ends[-1] in UNREACHED or calls[-1][-1].change.cause == "queue_timeout")
        fates = {
            "reached": CallStatus.COMPLETED in ends,
            "exhausted": attempts >= campaign.max_attempts and CallStatus.COMPLETED not in ends,
            "withdrawn": bool(calls)
            and calls[-1][-1].change.cause in ("cancelled", "deleted", "expired"),
            "dropped": again
            and attempts < campaign.max_attempts
            and campaign.closed_at is not None,
        }
        held = [fate for fate, holds in fates.items() if holds]
        if len(held) > 1 or (over and len(held) != 1):
            text = f"recipient {recipient} is {' and '.join(held) or 'in no final state'}"
            yield campaign.breach("C3", campaign.trace.end, text)
