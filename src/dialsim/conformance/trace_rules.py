"""Rules that only a run shows: on statuses of campaigns, changes of calls, people, and the queue.

Rules on the queue (Q) check an organization's lines and the order of release.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

import numpy as np

from dialsim.conformance.table import (
    FAR,
    NOT_HAPPENED,
    STATUSES,
    Indices,
    Instants,
    Mask,
    Rows,
    Violation,
    of_campaign,
    rule,
)
from dialsim.conformance.trace_table import NOTHING, TO_STATUS, CampaignRun, Load, TraceTable, kinds
from dialsim.engine.trace import CHANGES
from dialsim.interface import CampaignStatus

S = CampaignStatus
_NOT_FINAL = (S.DRAFT, S.SCHEDULED, S.RUNNING, S.PAUSED)
_STEPS = {
    "schedule": ("C1", {(S.DRAFT, S.SCHEDULED)}),
    "start": ("C2", {(S.SCHEDULED, S.RUNNING)}),
    "all_final": ("C3", {(S.RUNNING, S.COMPLETED)}),
    "pause": ("C4", {(S.SCHEDULED, S.PAUSED), (S.RUNNING, S.PAUSED)}),
    "resume": ("C5", {(S.PAUSED, S.SCHEDULED), (S.PAUSED, S.RUNNING)}),
    "cancel": ("C6", {(status, S.CANCELLED) for status in _NOT_FINAL}),
    "end_date_time": ("C7", {(status, S.EXPIRED) for status in _NOT_FINAL[1:]}),
    "delete": ("C8", {(status, status if status.final else S.CANCELLED) for status in S}),
}
"""Rule number and legal steps (from, to) of each cause of a change of a campaign's status."""


@rule("C1 C2 C3 C4 C5 C6 C7 C8 T5", "changes")
def steps_of_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that each change of a campaign's status is legal and starts from the current status."""
    for campaign in table.campaigns:
        status, last = S.DRAFT, table.trace.world.scenario.clock.start
        for change in campaign.changes:
            step = f"{change.cause} from {change.from_status} to {change.to_status}"
            number, legal = _STEPS.get(change.cause, ("C1", set()))
            if change.from_status is not status:
                yield of_campaign(
                    number, campaign, change.at, f"{step}, but the campaign was {status}"
                )
            if (change.from_status, change.to_status) not in legal:
                yield of_campaign(number, campaign, change.at, f"{step} is no legal step")
            if not last <= change.at <= table.trace.end:
                yield of_campaign("T5", campaign, change.at, f"{step} outside the run's time")
            status, last = change.to_status, change.at


@rule("C2 C5", "changes")
def starts_of_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that RUNNING begins at the first instant that C2 allows, or by a resume (C5)."""
    for campaign in table.campaigns:
        ran, waits_since = False, None
        for change in campaign.changes:
            may_run = _may_start(campaign, change.at) == change.at
            if change.to_status is S.RUNNING and not ran and not may_run:
                yield of_campaign("C2", campaign, change.at, "RUNNING before C2 allows it")
            if change.cause == "resume" and change.to_status is S.SCHEDULED and (ran or may_run):
                text = "SCHEDULED by a resume, although it may run"
                yield of_campaign("C5", campaign, change.at, text)
            if waits_since is not None:
                earliest = _may_start(campaign, waits_since)
                if earliest is not None and earliest < change.at:
                    text = "SCHEDULED longer than it had to be"
                    yield of_campaign("C2", campaign, change.at, text)
            waits_since = change.at if change.to_status is S.SCHEDULED else None
            ran = ran or change.to_status is S.RUNNING


def _may_start(campaign: CampaignRun, instant: int) -> int | None:
    """Return the first instant from `instant` on at which C2 allows the campaign to run."""
    if campaign.hours is None:
        return None
    # Derived from the windows alone, not from the engine's own calculation, which is under test.
    opens = int(campaign.hours.next_open(np.array([max(instant, campaign.start_at or 0)]))[0])
    return opens if campaign.end_at is None or opens < campaign.end_at else None


@rule("C3", "changes")
def completions_of_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that COMPLETED comes in the instant of the last settled recipient, or of a resume."""
    for campaign, part in zip(table.campaigns, table.changes.parts, strict=True):
        for before, change in zip(campaign.changes, campaign.changes[1:], strict=False):
            if change.cause == "all_final":
                # A resume of a campaign with nothing left completes it in the same instant, after
                # the last change of a call.
                last = max(before.at, int(table.changes.at[part].max(initial=0)))
                if change.at != last:
                    late = f"{change.at - last} ms after the last change"
                    yield of_campaign("C3", campaign, change.at, f"COMPLETED {late}")


@rule("C7 T5", "changes")
def ends_of_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check expiry at the end date, and that each campaign ends final, stalled or cut off."""
    end = table.trace.end
    for campaign in table.campaigns:
        if campaign.end_at is not None and campaign.end_at <= end:
            late = campaign.status_after(campaign.end_at)
            if late in (S.SCHEDULED, S.DRAFT):
                text = f"still {late} after its end date"
                yield of_campaign("C7", campaign, campaign.end_at, text)
        final, scheduled = campaign.status_after(end).final, campaign.scheduled is not None
        if scheduled and not (final or table.is_cut or campaign.stalled):
            text = "neither final nor stalled, and nothing cut the run"
            yield of_campaign("T5", campaign, end, text)
        if campaign.stalled and (final or not scheduled):
            yield of_campaign("T5", campaign, end, "stalled, but final or never scheduled")


@rule("C4 C6 C7 C8", "changes")
def calls_that_wait_on(table: TraceTable) -> Iterator[Violation]:
    """Check that a pause takes calls back (C4), and that no call waits after its campaign's end."""
    rows = table.changes
    for campaign, part in zip(table.campaigns, rows.parts, strict=True):
        at = rows.at[part]
        until = np.where(rows.last[part], FAR, rows.then_at[part])
        moving = rows.of_kind("released", "dialled")[part]
        for change in campaign.changes:
            if change.cause == "pause":
                # Calls released in the instant of the pause itself are judged by the order of T4,
                # not here.
                left = part.start + np.flatnonzero(moving & (at < change.at) & (until > change.at))
                yield from _of_rows(table, "C4", left, "goes on although it was paused")
        if campaign.closing is not None:
            end, number = campaign.closing
            waits = rows.of_kind(*_WAITS)[part] | moving
            left = part.start + np.flatnonzero(waits & (at <= end) & (until > end))
            text = "waits on although the campaign is over"
            yield from _of_rows(table, number, left, text)


def _of_rows(table: TraceTable, number: str, wrong: Rows, text: str) -> Iterator[Violation]:
    """Yield a violation for each wrong row of the changes, at its instant."""
    yield from table.of_calls(number, wrong, table.changes.at, text, table.changes.call)


_WAITS = {"scheduled", "retry", "window_closed", "paused"}
_OPEN = {*_WAITS, "released", "dialled"}
_CHANGES: dict[str, tuple[str, set[str]]] = {
    "scheduled": ("C1", set()),
    "retry": ("R2", set()),
    "released": ("Q2", _WAITS),
    "dialled": ("Q4", {"released"}),
    "ringing": ("P1", {"dialled"}),
    "answered": ("P1", {"dialled", "ringing"}),
    "ended": ("P2", {"dialled", "ringing", "answered"}),
    "queue_timeout": ("Q5", {"released"}),
    "window_closed": ("Q6", {"released"}),
    "paused": ("C4", {"released", "dialled"}),
    "cancelled": ("C6", _OPEN),
    "deleted": ("C8", _OPEN),
    "expired": ("C7", _OPEN),
}
"""Rule number of each cause of a call's change, and the causes of the changes that it may follow.
"""
_RULES = [_CHANGES.get(change.cause, ("A4", set[str]())) for change in CHANGES]
_CAUSES = (*(change.cause for change in CHANGES), "nothing")
_FOLLOWS = np.array([[before in may for _, may in _RULES] for before in _CAUSES])
_FROM = np.array([STATUSES.index(c.from_status) if c.from_status else -1 for c in CHANGES])


@rule("T5 C1 C4 C6 C7 C8 P1 P2 Q2 Q4 Q5 Q6 R2", "changes")
def changes_of_calls(table: TraceTable) -> Iterator[Violation]:
    """Check that changes of calls are in the run and legal, and start from the current status."""
    rows, trace = table.changes, table.trace
    out = (rows.at < trace.world.scenario.clock.start) | (rows.at > trace.end)
    yield from _of_rows(table, "T5", out, "a change outside the run's time")
    # A change must start from the status that the call's previous change led to.
    wrong = _FROM[rows.kind] != TO_STATUS[rows.before]
    wrong |= ~rows.first & ~_FOLLOWS[rows.before, rows.kind]
    wrong |= ~rows.first & (rows.at < np.roll(rows.at, 1))
    for row in np.flatnonzero(wrong).tolist():
        change, before = CHANGES[rows.kind[row]], rows.before[row]
        was = "not made yet" if before == NOTHING else CHANGES[before].to_status
        after = "" if before == NOTHING else f", after {CHANGES[before].cause}"
        text = (
            f"{change.cause} from {change.from_status or 'nothing'}, but the call was {was}{after}"
        )
        yield from _of_rows(table, _RULES[rows.kind[row]][0], [row], text)


@rule("P2", "changes")
def calls_without_an_end(table: TraceTable) -> Iterator[Violation]:
    """Check that every call that was dialled has ended."""
    rows = table.changes
    if not table.is_cut:
        endless = rows.last & rows.of_kind("dialled", "ringing", "answered")
        yield from _of_rows(table, "P2", endless, "dialled, but never ended")


@rule("Q2", "changes")
def moves_while_not_running(table: TraceTable) -> Iterator[Violation]:
    """Check that calls are released and dialled only while their campaign is RUNNING."""
    for verb, (call, at, *_) in table.moves:
        for campaign, rows in table.by_campaign(call):
            runs = campaign.runs_after(at[rows])  # type: ignore[attr-defined]
            idle = rows[~runs & ~table.is_excused(at[rows])]
            yield from table.of_calls("Q2", idle, at, f"{verb} while it was not RUNNING", call)


def _of_people(
    table: TraceTable, number: str, wrong: Mask, at: Instants, text: str
) -> Iterator[Violation]:
    for person in np.flatnonzero(wrong).tolist():
        campaign = table.campaigns[table.campaign_of[person]]
        recipient = int(table.recipient_of[person])
        yield of_campaign(number, campaign, at[person], text, recipient)


@rule("C1 D3 R1 R2", "changes")
def first_calls(table: TraceTable) -> Iterator[Violation]:
    """Check that each person has a first call by the request, or one that continues the history."""
    rows = table.changes
    asked_at = np.array([c.scheduled.at if c.scheduled else FAR for c in table.campaigns])
    most = np.array([campaign.max_attempts for campaign in table.campaigns])
    ends = np.array([FAR if c.closing is None else c.closing[0] for c in table.campaigns])
    at, due = asked_at[table.campaign_of], table.resumes_at
    is_asked, has_calls, is_fresh = at != FAR, table.newest >= 0, table.due_again == FAR
    lacks = is_asked & ~table.removed & ~has_calls
    yield from _of_people(table, "C1", lacks & is_fresh, at, "no call was made")
    wrong = is_asked & table.removed & has_calls
    yield from _of_people(table, "D3", wrong, at, "called although removed as a duplicate")
    done = table.reached_before | (table.attempts_before >= most[table.campaign_of])
    lacks &= ~done & (due < ends[table.campaign_of]) & (due <= table.trace.end)
    yield from _of_people(table, "R1", lacks, due, "no call follows the history")

    first, kind = table.call_no == 1, rows.kind[rows.first]
    unasked = asked_at[table.campaign] == FAR
    yield from table.of_calls("C1", unasked, table.created, "a call without a request")
    continues = first & ~is_fresh[table.person]
    late = continues & (table.created != due[table.person])
    yield from table.of_calls("R2", late, table.created, "the call was not made when it was due")
    # A person with a history gets the first call as a retry (C1).
    by_request = first & is_fresh[table.person] & ~unasked
    wrong = by_request & ~kinds("scheduled")[kind]
    wrong |= kinds("scheduled")[kind] & (table.created != asked_at[table.campaign]) & ~unasked
    yield from table.of_calls("C1", wrong, table.created, "made, but not by the request")
    wrong = ~by_request & ~unasked & ~kinds("retry")[kind]
    yield from table.of_calls("R2", wrong, table.created, "made, but not by a retry")
    expected = np.ones(len(first), dtype=np.int64)
    one, two = table.follows
    expected[two] = table.call_no[one] + 1
    text, wrong = "call {found} where call {expected} comes next", table.call_no != expected
    values = {"found": table.call_no, "expected": expected}
    yield from table.of_calls("R2", wrong, table.created, text, **values)


@rule("C3", "changes")
def people_left_behind(table: TraceTable) -> Iterator[Violation]:
    """Check that all people of a completed campaign are settled."""
    end = table.trace.end
    completed = np.array(
        [any(row.cause == "all_final" for row in one.changes) for one in table.campaigns]
    )
    is_closed = np.array([one.closing is not None for one in table.campaigns])
    most = np.array([one.max_attempts for one in table.campaigns])[table.campaign_of]
    has_calls = table.newest >= 0
    # An entry is appended, so that index -1 (no call) is valid even if there are no calls at all.
    attempts = np.where(has_calls, np.append(table.attempts, 0)[table.newest], 0)
    attempts = np.maximum(attempts, table.attempts_before)
    reached = np.append(table.is_reached, False)[table.newest] & has_calls
    waits = np.append(table.ended == NOT_HAPPENED, False)[table.newest] & has_calls
    # No call follows after an end date, however many attempts are left (C7).
    left = (attempts < most) & ~reached & ~table.reached_before & ~is_closed[table.campaign_of]
    wrong = (left | waits) & completed[table.campaign_of] & ~table.removed
    text = "not settled, but the campaign is COMPLETED"
    yield from _of_people(table, "C3", wrong, np.full(len(wrong), end), text)


def _of_owner(load: Load, number: str, at: int, text: str) -> Violation:
    """Return a violation by all calls of an organization together."""
    return Violation(number, load.owner.name, None, None, None, at, text)


@rule("Q2", "changes")
def releases_into_a_full_queue(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released into a full queue, or while there are no lines."""
    for load in table.loads:
        limits = table.limits_in(load.owner.position, load.at)
        over = (limits == 0) | (load.queued > load.queue_room(limits))
        for index in np.flatnonzero(load.released.any(axis=0) & over).tolist():
            text = f"{load.queued[index]} calls in the queue, with {limits[index]} lines"
            yield _of_owner(load, "Q2", int(load.at[index]), text)


@rule("Q10 Q11", "changes")
def lines_of_other_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that no campaign uses more lines than `atMost`, or a line kept for another campaign."""
    for load in table.loads:
        every = np.arange(len(load.at))
        held, taken = load.held(every, load.at), load.taken(every, load.at)
        is_judged = (load.at >= load.counted_since) & ~table.is_excused(load.at)
        for part, campaign in enumerate(load.campaigns):
            used, released = load.used[part], load.released[part] & is_judged
            for number, wrong, text in (
                ("Q10", used > campaign.block.share.at_most, "more lines than atMost"),
                ("Q10", released & (load.busy + load.queued > load.limits),
                 "released although no line is free"),
                ("Q11", released & (used > held[part]) & (taken > load.limits),
                 "released on a line that is kept for another campaign"),
            ):  # fmt: skip
                for at in load.at[wrong]:
                    yield of_campaign(number, campaign, at, text)


@rule("Q7 Q8 Q9", "changes")
def releases_out_of_turn_between_campaigns(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released while a call of a campaign that goes first waits."""
    numbers = {"priority": "Q7", "weighted": "Q8", "deadline": "Q9"}
    sharing = table.trace.world.scenario.engine.sharing
    if sharing not in numbers:
        return
    number = numbers[sharing]
    for load in table.loads:
        at, used, every = load.at, load.used, np.arange(len(load.at))
        is_judged = ~table.is_excused(at)
        # A release on a line that is reserved for the campaign takes nothing from others.
        beyond = (used > load.held(every, at)) | (load.counted_since == FAR)
        for theirs, other in enumerate(load.campaigns):
            waits = (load.waiting[theirs] > 0) & other.runs_after(at) & other.is_open(at)
            # A campaign can go first only at one of its own release instants.
            waits &= (at - (other.first_due or 0)) % (table.release_interval or 1) == 0
            waits &= (at >= (other.start_at or 0)) & (used[theirs] < other.block.share.at_most)
            for mine, campaign in enumerate(load.campaigns):
                one, two = campaign.block.share, other.block.share
                is_ahead = other.block.position < campaign.block.position
                # Cross-multiplied, so that shares are compared without the rounding of a division.
                left, right = used[mine] * two.weight, (used[theirs] + 1) * one.weight
                first = {
                    "Q7": two.priority < one.priority,
                    "Q8": (left > right) | ((left == right) & is_ahead),
                    "Q9": _deadline(other) < _deadline(campaign),
                }[number]
                wrong = load.released[mine] & is_judged & beyond[mine] & waits & first
                for moment in at[wrong]:
                    text = f"released while a call of {other.name} waits, which goes first"
                    yield of_campaign(number, campaign, moment, text)


def _deadline(campaign: CampaignRun) -> tuple[float, int]:
    request = campaign.request
    end = None if request is None else request.end_date_time
    return inf if end is None else end, campaign.block.position


@rule("Q4", "changes")
def lines_idle_in_vain(table: TraceTable) -> Iterator[Violation]:
    """Check that no line stays free longer than the pace requires while a call is queued."""
    gap = table.dial_gap
    for load in table.loads:
        # A sentinel before all instants stands for "no dial so far".
        dials = np.append(-gap, load.dialled_at)
        last = dials[np.searchsorted(dials, load.at, side="right") - 1]
        free_at = np.maximum(load.at, last + gap)
        idle = (load.queued > 0) & (load.busy < load.limits) & (free_at < load.then)
        for at in free_at[idle]:
            text = "a line is free and a call in the queue, but it is not dialled"
            yield _of_owner(load, "Q4", int(at), text)


@rule("Q2", "changes")
def calls_not_released(table: TraceTable) -> Iterator[Violation]:
    """Check that no releasable call waits while the queue has room and a line is available."""
    interval = table.release_interval or 1
    for load in table.loads:
        room = (load.limits > 0) & (load.queued < load.queue_room(load.limits))
        for part, campaign in enumerate(load.campaigns):
            if campaign.hours is None:
                continue
            index = np.flatnonzero(room & (load.waiting[part] > 0) & campaign.runs_after(load.at))
            at, then, origin = load.at[index], load.then[index], campaign.first_due or 0
            may = campaign.hours.next_release(at, then, origin, interval)
            soon = may < then
            # Lines are looked up only where nothing else prevented a release.
            soon[soon] = load.has_line(part, index[soon], may[soon])
            for moment in may[soon]:
                text = "the queue has room and a call waits, but it is not released"
                yield of_campaign("Q2", campaign, moment, text)


@rule("Q3", "changes")
def releases_out_of_turn(table: TraceTable) -> Iterator[Violation]:
    """Check that no call is released while a call of its campaign that goes first waits."""
    rows = table.changes
    begins = rows.of_kind("scheduled", "retry", "window_closed", "paused")
    ends = np.roll(begins, 1) & ~rows.first & ~begins  # the call's row after its wait began
    waits = np.flatnonzero(begins)
    in_turn = waits[_turns(table, rows.call[waits])]
    rank = np.empty(len(begins), dtype=np.int64)
    rank[in_turn] = np.arange(len(in_turn))
    rank[ends] = rank[np.flatnonzero(ends) - 1]
    is_release = rows.of_kind("released")
    for part in rows.parts:
        moves = part.start + np.flatnonzero((begins | ends)[part])
        moves = moves[np.argsort(rows.order[moves])]  # in order of occurrence
        columns = (moves, rank[moves], begins[moves], is_release[moves])
        for row, ahead in _overtaking(*(column.tolist() for column in columns)):
            first = table.recipient[rows.call[in_turn[ahead]]]
            text = f"released while recipient {first} waits, who goes first"
            yield from table.of_calls("Q3", [row], rows.at, text, rows.call)


def _turns(table: TraceTable, call: Indices) -> Indices:
    """Return the order of release of waiting calls (Q3): by class, due instant and upload order."""
    rows = table.changes
    first_due = table.of_campaigns(lambda one: one.first_due, NOT_HAPPENED)
    due = np.where(kinds("scheduled")[rows.kind[rows.first]], first_due, table.created)
    # C1: the call that continues a history may have been due before it could be made.
    due = np.minimum(due, np.where(table.call_no == 1, table.due_again[table.person], FAR))
    attempts = (table.attempts - table.is_counted)[call]
    order = table.trace.world.scenario.engine.order
    goes_last = {"freshFirst": attempts > 0, "retriesFirst": attempts == 0}
    last = goes_last.get(order, np.zeros(len(call), dtype=bool))
    return np.lexsort((table.recipient[call], due[call], last))


def _overtaking(
    rows: list[int], ranks: list[int], begins: list[bool], released: list[bool]
) -> Iterator[tuple[int, int]]:
    """Yield each row that releases a call out of turn, and the rank of the call that goes first."""
    waiting: list[int] = []
    # Entries of a heap can't be removed from its middle; they are marked, and dropped at the top.
    over: set[int] = set()
    for row, rank, begin, release in zip(rows, ranks, begins, released, strict=True):
        if begin:
            heappush(waiting, rank)
            continue
        over.add(rank)
        # The heap still holds the released call itself, so that it is never empty here.
        while release and waiting[0] < rank and waiting[0] in over:
            heappop(waiting)
        if release and waiting[0] < rank:
            yield row, waiting[0]
