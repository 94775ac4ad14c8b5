"""Checks of calls one by one, and of a person's calls one after the other (P, R, Q5, Q6)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dialsim.engine.trace import Change
from dialsim.interface.status import CallStatus
from engine.records import CampaignRecord
from engine.rows import Row
from engine.violations import Violation

WAITS = ("scheduled", "retry", "window_closed", "paused")
DROPPED = ("cancelled", "deleted", "expired")
FOLLOWS = {
    **{cause: {"released", *DROPPED} for cause in WAITS},
    "released": {"dialled", "queue_timeout", "window_closed", "paused", *DROPPED},
    "dialled": {"ringing", "answered", "ended", "paused", *DROPPED},
    "ringing": {"answered", "ended"},
    "answered": {"ended"},
    "ended": set(),
    "queue_timeout": set(),
    **{cause: set() for cause in DROPPED},
}
BEFORE_TIMEOUTS = {"window_closed", "paused", *DROPPED}  # T4: steps 1 to 3
UNREACHED = (CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every breach by a campaign's calls."""
    start, end = campaign.trace.world.scenario.clock.start, campaign.trace.end
    for recipient, calls in sorted(campaign.people.items()):
        missing = [number for number, rows in enumerate(calls, start=1) if not rows]
        if missing:
            yield campaign.breach("R2", end, "no such call", (recipient, missing[0]))
            continue
        for rows in calls:
            yield from _progress(campaign, rows)
            yield from _waits(campaign, rows)
        for row in (row for rows in calls for row in rows if not start <= row.at <= end):
            yield campaign.breach("T5", row.at, "out of the run's time", row[3:5])
        yield from _first(campaign, recipient, calls)
        yield from _next(campaign, calls)
    expected = campaign.count if campaign.scheduled else 0
    if len(campaign.people) != expected:
        text = f"{len(campaign.people)} people have calls, not {expected}"
        yield campaign.breach("C1", campaign.trace.end, text)


def _progress(campaign: CampaignRecord, rows: list[Row]) -> Iterator[Violation]:
    """One legal change after the other, each from where the one before led to (P)."""
    status = None
    for row in rows:
        if row.change.from_status != status:
            text = f"{row.change.cause} from {row.change.from_status}, but it was {status}"
            yield campaign.breach("P", row.at, text, row[3:5])
        status = row.change.to_status
    for row, then in pairwise(rows):
        text = f"{then.change.cause} after {row.change.cause}"
        if then.at < row.at or then.change.cause not in FOLLOWS[row.change.cause]:
            yield campaign.breach("P", then.at, text, then[3:5])
        if row.change.cause == "dialled" and then.at == row.at and _by_itself(then.change):
            yield campaign.breach("P1", then.at, "set up in no time", then[3:5])
        if row.change.cause == "ringing" and then.at == row.at:
            yield campaign.breach("P1", then.at, "a row for ringing of length 0", then[3:5])
        answered = row.change.cause == "answered"
        if then.change.cause == "ended" and answered != (then.change.to_status == "COMPLETED"):
            yield campaign.breach("P2", then.at, f"{then.change.to_status} {text}", then[3:5])
    last = rows[-1]
    if _by_itself(last.change, ended=False) and not campaign.trace.cut:
        yield campaign.breach("P", last.at, f"nothing after {last.change.cause}", last[3:5])


def _by_itself(change: Change, *, ended: bool = True) -> bool:
    """Whether a change is one of those by which a call makes progress."""
    return change.cause in (
        ("ringing", "answered", "ended") if ended else ("dialled", "ringing", "answered")
    )


def _waits(campaign: CampaignRecord, rows: list[Row]) -> Iterator[Violation]:
    """Released and dialled in a window of a RUNNING campaign; queued no longer than it may be."""
    timeout = campaign.trace.world.scenario.engine.queue_timeout
    for row in rows:
        if row.change.cause in ("released", "dialled"):
            if not campaign.windows.is_open(row.at):
                yield campaign.breach("T3", row.at, f"{row.change.cause} outside", row[3:5])
            if row.at < campaign.start_at:
                yield campaign.breach("C1", row.at, f"{row.change.cause} too early", row[3:5])
            status = campaign.status_after(row.at)
            if status != "RUNNING":
                yield campaign.breach("Q2", row.at, f"{row.change.cause} while {status}", row[3:5])
    for row, then in zip(rows, [*rows[1:], None], strict=True):
        if row.change.cause != "released":
            continue
        until, cause = (
            (campaign.trace.end, "nothing") if then is None else (then.at, then.change.cause)
        )
        lost_at, closes = row.at + timeout, campaign.windows.next_close(row.at)
        in_time = until < lost_at or (until == lost_at and cause in BEFORE_TIMEOUTS)
        if (cause == "queue_timeout") != (until == lost_at and not in_time) or until > lost_at:
            yield campaign.breach(
                "Q5", until, f"{cause}, {until - row.at} ms in the queue", row[3:5]
            )
        if until > closes or (until == closes and cause not in BEFORE_TIMEOUTS):
            yield campaign.breach("Q6", closes, "queued in a closed window", row[3:5])
        if cause == "window_closed" and until != closes:
            yield campaign.breach("Q6", until, "taken back, but the window is open", row[3:5])


def _first(campaign: CampaignRecord, recipient: int, calls: list[list[Row]]) -> Iterator[Violation]:
    """One call is there from the request on (C1), the others are retries (R2)."""
    made = calls[0][0]
    if campaign.scheduled is None or made.at != campaign.scheduled.at:
        yield campaign.breach("C1", made.at, "made, but not by the request", (recipient, 1))
    for rows in calls:
        expected, rule = ("scheduled", "C1") if rows is calls[0] else ("retry", "R2")
        if rows[0].change.cause != expected:
            yield campaign.breach(rule, rows[0].at, f"made by {rows[0].change.cause}", rows[0][3:5])


def _next(campaign: CampaignRecord, calls: list[list[Row]]) -> Iterator[Violation]:
    """Retries exactly where and when the rules want them (P5, R1, R2, R3)."""
    attempts = 0
    for rows, following in zip(calls, [*calls[1:], None], strict=True):
        last = rows[-1]
        attempts += last.change.cause == "ended"
        if attempts > campaign.max_attempts:
            yield campaign.breach("R1", last.at, f"attempt {attempts}", last[3:5])
        failed = last.change.to_status in UNREACHED or last.change.cause == "queue_timeout"
        due = last.at + campaign.retry_interval
        over = campaign.closed_at is not None and campaign.closed_at <= due
        wanted = failed and attempts < campaign.max_attempts and not over
        if following is None:
            if wanted and due <= campaign.trace.end:
                yield campaign.breach("R1", due, "no new call", last[3:5])
        elif not wanted:
            rule = "R3" if last.change.to_status == "COMPLETED" else "R1"
            text = f"another call after {last.change.to_status}"
            yield campaign.breach(rule, following[0].at, text, following[0][3:5])
        elif following[0].at != due:
            text = f"made {following[0].at - last.at} ms after the call before"
            yield campaign.breach("R2", following[0].at, text, following[0][3:5])
