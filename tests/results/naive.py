"""The same readings once more, row by row in plain Python: what the columns are held to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from dialsim.engine.trace import CHANGES, Change, Trace
from dialsim.scenario.campaign import Past
from oracle.given import DAY, THAI, Windows

Row = tuple[int, int, int, int, int, Change, int]
"""at, organization, campaign, recipient, call, change, place in the log"""


@dataclass
class NaiveCall:
    """Row of a call in the calls table."""

    created_at: int
    status: str = "SCHEDULED"
    queued_at: int | None = None
    initiated_at: int | None = None
    ringing_at: int | None = None
    call_started_at: int | None = None
    call_ended_at: int | None = None
    attempt: int | None = None
    caller_id: str | None = None
    waits: list[int] = field(default_factory=list)
    cause: str = "scheduled"

    @property
    def talk_ms(self) -> int | None:
        if self.call_started_at is None or self.call_ended_at is None:
            return None
        return self.call_ended_at - self.call_started_at


def log(trace: Trace) -> Iterator[Row]:
    """All rows, campaign by campaign, as they happened."""
    for o, logs in enumerate(trace.calls):
        for c, calls in enumerate(logs):
            rows = calls.rows()
            for i in range(len(calls)):
                change = CHANGES[int(rows.kind[i])]
                yield int(rows.at[i]), o, c, int(rows.recipient[i]), int(rows.call[i]), change, i


def sorted_log(trace: Trace) -> list[Row]:
    """All rows by (at, organization, campaign, recipient, call, occurrence) (T4)."""
    return sorted(log(trace), key=lambda row: (*row[:5], row[6]))


def calls(trace: Trace) -> dict[tuple[int, int, int, int], NaiveCall]:
    """Every call by organization, campaign, recipient and number."""
    found: dict[tuple[int, int, int, int], NaiveCall] = {}
    made: dict[tuple[int, int, int], int] = {}
    dials: dict[tuple[int, int], int] = {}
    for at, o, c, recipient, number, change, _ in log(trace):
        call = found.setdefault((o, c, recipient, number), NaiveCall(at))
        call.status, call.cause = change.to_status.value, change.cause
        if change.cause == "released":
            call.queued_at = at
        elif change.cause == "dialled":
            dial = dials.get((o, c), 0)
            dials[o, c] = dial + 1
            past = history(trace, o, c, recipient)
            before = made.get((o, c, recipient), 0) + (past.call_attempt if past else 0)
            call.initiated_at, call.attempt = at, before + 1
            call.caller_id = trace.world.numbers[trace.calls[o][c].dial_numbers[dial]]
        elif change.cause == "ringing":
            call.ringing_at = at
        elif change.cause == "answered":
            call.call_started_at = at
        elif change.cause == "ended":
            call.call_ended_at = at
            made[o, c, recipient] = made.get((o, c, recipient), 0) + 1
        elif change.cause == "queue_timeout":
            call.call_ended_at = at
        elif change.from_status == "INITIATED":
            call.initiated_at = call.attempt = call.caller_id = None
        if change.cause in ("dialled", "queue_timeout"):
            assert call.queued_at is not None
            call.waits.append(at - call.queued_at)
    return dict(sorted(found.items()))


def history(trace: Trace, organization: int, campaign: int, recipient: int) -> Past | None:
    """Return the history of a recipient."""
    block = trace.world.organizations[organization].campaigns[campaign]
    return block.people.history.get(recipient)


def removed(trace: Trace, organization: int, campaign: int, recipient: int) -> bool:
    """True if the request dropped a recipient as a duplicate (D3)."""
    scheduled = trace.requests.get((organization, campaign))
    return scheduled is not None and recipient in scheduled.removed


def state(trace: Trace, position: tuple[int, int], recipient: int) -> str:
    """Return the final state of a recipient who was not removed."""
    own = [call for place, call in calls(trace).items() if place[:3] == (*position, recipient)]
    statuses = [
        row.to_status.value
        for row in sorted(trace.campaigns, key=lambda row: row.at)
        if (row.organization, row.campaign) == position
    ]
    past = history(trace, *position, recipient)
    if past and past.latest_call_status in ("COMPLETED", "ANALYSIS_FAILED"):
        return "reached"
    if position not in trace.requests:
        return "cancelled" if "CANCELLED" in statuses else "unscheduled"
    request, last_cause = trace.requests[position].request, own[-1].cause if own else "ended"
    made = sum(call.cause == "ended" for call in own) + (past.call_attempt if past else 0)
    not_retried = last_cause in ("ended", "queue_timeout")
    ended = request.end_date_time is not None and request.end_date_time <= trace.end
    rules = [
        ("reached", any(call.call_started_at is not None for call in own)),
        ("exhausted", made >= request.max_attempts),
        ("expired", last_cause == "expired"),
        ("cancelled", last_cause in ("cancelled", "deleted")),
        ("cancelled", not_retried and "CANCELLED" in statuses),
        ("expired", not_retried and ended),
        ("stalled", position in trace.stalled),
        ("pending", True),
    ]
    return next(name for name, holds in rules if holds)


def cost(call: NaiveCall, costs: Any) -> float:
    """Return the cost of a call."""
    minutes = ceil((call.talk_ms or 0) / costs.billing_increment) * costs.billing_increment / 60_000
    return (call.attempt is not None) * costs.per_dial + minutes * costs.per_minute


def calling_days(trace: Trace, position: tuple[int, int]) -> int:
    """Thai dates with a dial."""
    return len(
        {
            (at + THAI) // DAY
            for at, o, c, _, _, change, _ in log(trace)
            if change.cause == "dialled" and (o, c) == position
        }
    )


CAUSES = ("pauses", "windows", "lines", "pacing", "queue", "retry_interval", "calls")


class NaiveTime:
    """A campaign's time, walked through instant by instant."""

    def __init__(self, trace: Trace, position: tuple[int, int], start: int, end: int) -> None:
        self.trace = trace
        self.position = position
        self.request = trace.requests[position].request
        self.windows = Windows(
            [item.model_dump(by_alias=True) for item in self.request.time_windows]
        )
        self.default = Windows(None)
        rows = sorted(log(trace), key=lambda row: (row[0], row[1], row[2], row[6]))
        self.rows = [row for row in rows if row[1] == position[0]]
        edges = {row[0] for row in self.rows} | {row.at for row in trace.limits}
        edges |= {row.at for row in trace.campaigns}
        self.edges = sorted(
            {start, end}
            | {edge for edge in edges if start < edge < end}
            | set(self._boundaries(start, end))
        )
        self.calls = calls(trace)
        rate = trace.world.scenario.engine.calls_per_second
        self.gap = 0 if rate is None else ceil(1000 / Fraction(repr(rate)))
        self.dials = [row[0] for row in self.rows if row[5].cause == "dialled"]

    def _boundaries(self, start: int, end: int) -> Iterator[int]:
        for windows in (self.windows, self.default):
            edge = windows.next_boundary(start)
            while edge < end:
                yield edge
                edge = windows.next_boundary(edge)

    def shares(self) -> dict[str, int]:
        """ms by cause, as `TimeUse` defines them."""
        use = dict.fromkeys((*CAUSES, "nights", "backlog"), 0)
        waited_at_closing, was_open = False, False
        for since, until in zip(self.edges[:-1], self.edges[1:], strict=True):
            is_open = self.windows.open(since)
            if was_open and not is_open:
                waited_at_closing = self.waiting(since) > 0
            was_open = is_open
            cause = self.cause(since, is_open, waited_at_closing)
            use[cause] += until - since
            if cause == "windows" and waited_at_closing:
                use["backlog"] += until - since
        return use

    def used(self) -> tuple[float, float]:
        """The shares of slots and of allowed dials used while calls waited in open windows."""
        busy = allowed = paced = time = 0
        for since, until in zip(self.edges[:-1], self.edges[1:], strict=True):
            if self.cause(since, self.windows.open(since), False) in ("lines", "pacing"):
                busy += self.under_way(since) * (until - since)
                allowed += self.limit(since) * (until - since)
                time += until - since
                paced += sum(
                    max(0, min(until, dial + self.gap) - max(since, dial)) for dial in self.dials
                )
        return busy / allowed if allowed else 0.0, paced / time if time else 0.0

    def cause(self, at: int, is_open: bool, waited_at_closing: bool) -> str:
        if not self.waiting(at):
            ahead, timed_out = self.retries_ahead(at)
            return "calls" if not ahead else "queue" if 2 * timed_out > ahead else "retry_interval"
        if self.status(at) == "PAUSED":
            return "pauses"
        if is_open:
            return "lines" if self.under_way(at) >= self.limit(at) else "pacing"
        ordinary = self.default.open(at)
        return "nights" if waited_at_closing and not ordinary else "windows"

    def statuses(self, at: int) -> dict[tuple[int, int, int], str]:
        """Of every call of the organization, after all that happens at an instant."""
        return {
            (row[2], row[3], row[4]): row[5].to_status.value for row in self.rows if row[0] <= at
        }

    def waiting(self, at: int) -> int:
        return sum(
            status in ("SCHEDULED", "QUEUED")
            for (campaign, _, _), status in self.statuses(at).items()
            if campaign == self.position[1]
        )

    def under_way(self, at: int) -> int:
        return sum(status == "INITIATED" for status in self.statuses(at).values())

    def limit(self, at: int) -> int:
        return [
            row.limit
            for row in self.trace.limits
            if row.organization == self.position[0] and row.at <= at
        ][-1]

    def status(self, at: int) -> str:
        changes = [
            row.to_status.value
            for row in sorted(self.trace.campaigns, key=lambda row: row.at)
            if (row.organization, row.campaign) == self.position and row.at <= at
        ]
        return changes[-1]

    def retries_ahead(self, at: int) -> tuple[int, int]:
        """Count the people whose call has ended and whose next is not yet created.

        And how many of their calls timed out in the queue.
        """
        until = self.request.end_date_time
        ahead = timed_out = 0
        for (o, c, recipient, number), call in self.calls.items():
            ended = call.call_ended_at
            if (o, c) != self.position or ended is None or ended > at:
                continue
            after = self.calls.get((o, c, recipient, number + 1))
            if (after is not None and at < after.created_at) or (
                after is None
                and call.call_started_at is None
                and self.attempts(recipient) < self.request.max_attempts
                and (until is None or ended < until)
            ):
                ahead += 1
                timed_out += call.cause == "queue_timeout"
        block = self.trace.world.organizations[self.position[0]].campaigns[self.position[1]]
        ahead += sum(
            at < self.calls[*self.position, recipient, 1].created_at
            if (*self.position, recipient, 1) in self.calls
            else until is None or self.edges[0] < until
            for recipient, past in block.people.history.items()
            if not past.reached
            and past.call_attempt < self.request.max_attempts
            and not removed(self.trace, *self.position, recipient)
        )
        return ahead, timed_out

    def attempts(self, recipient: int) -> int:
        """Count a recipient's attempts, before the scenario and in it."""
        past = history(self.trace, *self.position, recipient)
        place = (*self.position, recipient)
        here = sum(call.cause == "ended" for key, call in self.calls.items() if key[:3] == place)
        return here + (past.call_attempt if past else 0)
