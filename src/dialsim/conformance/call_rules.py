"""Rules on single calls and on a person's calls, in a run or in a log (T, C, P, Q, R)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from dialsim.conformance.table import (
    FAR,
    LOST,
    NOT_HAPPENED,
    WINDOW_CLOSED,
    WITHDRAWN,
    CheckedCalls,
    Instants,
    Violation,
    instant,
    names_of,
    rule,
)
from dialsim.interface import CallStatus


@rule("T3", "dials", "settings")
def moves_outside_windows(table: CheckedCalls) -> Iterator[Violation]:
    """Check that calls are released and dialled only while a window is open."""
    for verb, (call, since, until, *_) in table.moves:
        wrong = np.zeros(len(call), dtype=bool)
        for one, rows in table.by_campaign(call):
            if one.hours is not None:
                wrong[rows] = one.hours.next_open(since[rows]) > until[rows]
        text = f"{verb} by {{until_at}}, while no window was open"
        yield from table.of_calls("T3", wrong, until, text, call, until_at=until)


@rule("C1", "dials", "settings")
def moves_before_the_start(table: CheckedCalls) -> Iterator[Violation]:
    """Check that no call is released or dialled before its campaign starts."""
    start = table.of_campaigns(lambda one: one.start_at, -FAR)
    for verb, (call, _, until, *_) in table.moves:
        text = f"{verb} by {{until_at}}, but the campaign starts at {{start_at}}"
        values = {"until_at": until, "start_at": start[call]}
        yield from table.of_calls("C1", until < start[call], until, text, call, **values)


@rule("C7", "dials", "settings")
def calls_after_the_end(table: CheckedCalls) -> Iterator[Violation]:
    """Check that no call is made, dialled or lost in the queue once its campaign is over."""
    retries, lost = np.flatnonzero(table.call_no > 1), np.flatnonzero(table.is_lost)
    for verb, call, at in (
        ("made", retries, table.created[retries]),
        ("lost in the queue", lost, table.ended[lost]),
        *((verb, rows.call, rows.since) for verb, rows in table.moves),
    ):
        for one, rows in table.by_campaign(call):
            for end, number in one.ends:
                text = f"{verb} after the campaign was over at {instant(end)}"
                yield from table.of_calls(number, rows[at[rows] >= end], at, text, call)


@rule("Q1", "dials", "ended", "lines")
def calls_without_a_line(table: CheckedCalls) -> Iterator[Violation]:
    """Check that no more calls hold a line at once than there are lines."""
    call, _, begins, ends, *_ = table.dials
    for lines in table.shared_lines:
        rows = np.flatnonzero(np.isin(table.campaign[call], lines.campaigns) & (ends > begins))
        if lines.limits is None or not len(rows):
            continue
        at = np.concatenate([begins[rows], ends[rows]])
        change = np.repeat([1, -1], len(rows))
        # A call that ends frees its line for a dial in the same instant.
        order = np.lexsort((change, at))
        busy, limits = np.cumsum(change[order]), lines.limits(at[order])
        over = np.where(change[order] == 1, busy - limits, 0)
        # One violation at the peak: each further call above the limit would only repeat it.
        peak = int(np.argmax(over))
        if over[peak] > 0:
            text = f"{busy[peak]} calls at once, but {lines.source} {limits[peak]}"
            yield from table.of_calls("Q1", rows[order[[peak]]], begins, text, call)


@rule("Q4", "initiated", "engine")
def dials_too_close_together(table: CheckedCalls) -> Iterator[Violation]:
    """Check the minimum time between two dials of an organization."""
    call, at, *_ = table.dials
    for lines in table.shared_lines if table.dial_gap else ():
        rows = np.flatnonzero(np.isin(table.campaign[call], lines.campaigns))
        rows = rows[np.argsort(at[rows], kind="stable")]
        near = rows[1:][np.diff(at[rows]) < table.dial_gap]
        text = f"dialled less than {table.dial_gap} ms after the previous dial"
        yield from table.of_calls("Q4", near, at, text, call)


@rule("Q2", "queued", "engine", "settings")
def releases_between_release_instants(table: CheckedCalls) -> Iterator[Violation]:
    """Check that calls are released only on the campaign's release instants."""
    call, since, until, *_ = table.stays
    due, interval = table.of_campaigns(lambda one: one.first_due, FAR)[call], table.release_interval
    if interval:
        off = (since == until) & (due != FAR) & ((since - due) % interval != 0)
        text = f"released between release instants, which are {interval} ms apart"
        yield from table.of_calls("Q2", off, since, text, call)


@rule("Q5", "queued", "ended", "status", "engine")
def stays_of_another_length(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a call is lost exactly when it has waited for the queue timeout."""
    call, since, until, left, way = table.stays
    waited, timeout = left - since, table.queue_timeout
    # A pause or the end of a window comes before a timeout of the same instant (T4).
    due = (waited == timeout) & ~np.isin(way, (WITHDRAWN, WINDOW_CLOSED))
    wrong = (((way == LOST) != due) | (waited > timeout)) & (since == until)
    text = f"{{way}} after {{waited}} ms in the queue; the queue timeout is {timeout} ms"
    values = {"waited": waited, "way": _WAYS[way]}
    yield from table.of_calls("Q5", wrong, left, text, call, **values)


_WAYS = np.array(["lost", "dialled", "taken back", "taken back", "still there"])


@rule("Q6", "ended", "status", "settings")
def stays_outside_windows(table: CheckedCalls) -> Iterator[Violation]:
    """Check that calls are taken back from the queue when their window closes, and not before."""
    call, _, until, left, way = table.stays
    closes = np.full(len(call), FAR)
    for one, rows in table.by_campaign(call):
        if one.hours is not None:
            closes[rows] = one.hours.next_close(until[rows])
    late = (left > closes) | ((left == closes) & ~np.isin(way, (WITHDRAWN, WINDOW_CLOSED)))
    early = (way == WINDOW_CLOSED) & (left < closes) & (closes != FAR)
    text = "queued call {way} at {left_at}, but the window closes at {closes_at}"
    values = {"way": _WAYS[way], "left_at": left, "closes_at": closes}
    yield from table.of_calls("Q6", late | early, left, text, call, **values)


@rule("P1", "initiated")
def instants_out_of_order(table: CheckedCalls) -> Iterator[Violation]:
    """Check that the instants of a call are in order, and that setup takes time."""
    # Setup takes at least 1 ms, and a run has no instant of ringing that lasts 0 ms (P1). Another
    # dialler may record such ringing.
    strict = ("dialled", "ringing") if table.is_complete else ("dialled",)
    steps = {"created": table.created, "queued": table.queued, "dialled": table.initiated,
             "ringing": table.ringing, "answered": table.started, "ended": table.ended}  # fmt: skip
    for (name, one), (later, two) in combinations(steps.items(), 2):
        wrong = (two <= one if name in strict else two < one) & (two != NOT_HAPPENED)
        text = f"{later} at {{two_at}}, not after it was {name} at {{one_at}}"
        wrong &= one != NOT_HAPPENED
        yield from table.of_calls("P1", wrong, two, text, one_at=one, two_at=two)


@rule("P2", "status", "started")
def starts_against_the_status(table: CheckedCalls) -> Iterator[Violation]:
    """Check that answered calls, and no others, have the start of a conversation."""
    has_start = table.started != NOT_HAPPENED
    unanswered = table.is_unanswered | table.has_status(CallStatus.CANCELLED, CallStatus.EXPIRED)
    lacks = table.has_status(CallStatus.COMPLETED) & ~has_start & table.is_complete
    text = "{status}, but the start of its conversation is {started_at}"
    values = {"status": names_of(table.status), "started_at": table.started}
    yield from table.of_calls("P2", (unanswered & has_start) | lacks, table.ended, text, **values)


@rule("P3", "initiated", "caller_id")
def caller_ids_of_dials(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a dial shows a caller ID of its campaign, and a retry not the previous one."""
    call, at, _, _, shown, _, stands = table.dials
    is_known = pd.notna(shown)
    order = np.lexsort((table.call_no[call], table.person[call]))
    # A withdrawn dial does not count as the previous call (P5).
    order = order[stands[order] & is_known[order]]
    one, two = order[:-1], order[1:]
    again, wrong = np.zeros(len(call), dtype=bool), np.zeros(len(call), dtype=bool)
    again[two] = (table.person[call[one]] == table.person[call[two]]) & (shown[one] == shown[two])
    for campaign, rows in table.by_campaign(call):
        known = campaign.caller_ids
        if known is not None:
            wrong[rows] = [text not in known for text in shown[rows]]
        again[rows] &= (pd.Series(shown[rows]).nunique() if known is None else len(known)) > 1
    wrong &= is_known
    text = "dialled from {caller_id}, which is none of the campaign's caller IDs"
    yield from table.of_calls("P3", wrong, at, text, call, caller_id=shown)
    text = "{caller_id} was the caller ID of the previous call as well"
    yield from table.of_calls("P3", again, at, text, call, caller_id=shown)


@rule("C4", "changes")
def redials_with_another_caller_id(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a call whose dial was withdrawn keeps its caller ID."""
    call, at, _, _, shown, *_ = table.dials
    other = (call[1:] == call[:-1]) & (shown[1:] != shown[:-1])
    text = "the redial shows another caller ID"
    yield from table.of_calls("C4", np.flatnonzero(other) + 1, at, text, call)


@rule("P4", "initiated", "voice_key", "scenario")
def voices_of_dials(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a dial has a voice of its campaign."""
    call, at, _, _, _, voice, _ = table.dials
    wrong = np.zeros(len(call), dtype=bool)
    for one, rows in table.by_campaign(call):
        if one.voices is not None:
            wrong[rows] = [key not in one.voices for key in voice[rows]]
    # A log may lack voices; a trace has all of them.
    wrong &= pd.notna(voice) | ("changes" not in table.missing)
    yield from table.of_calls("P4", wrong, at, "the voice is none of the campaign's voices", call)


@rule("P5", "ended", "status")
def queue_timeouts_counted_as_attempts(table: CheckedCalls) -> Iterator[Violation]:
    """Check that calls lost in the queue have no attempt number."""
    wrong = table.is_lost & (table.attempt > 0)
    yield from table.of_calls("P5", wrong, table.ended, "a queue timeout is counted as an attempt")


def _begins(table: CheckedCalls) -> Instants:
    """Return the first known instant of each call: its creation, else its dial, else its end."""
    dialled = np.full(len(table.person), NOT_HAPPENED)
    dialled[table.dials.call] = table.dials.until
    begins = np.where(dialled != NOT_HAPPENED, dialled, table.ended)
    return np.where(table.created != NOT_HAPPENED, table.created, begins)


@rule("R3", "answers", "ended")
def calls_after_an_answer(table: CheckedCalls) -> Iterator[Violation]:
    """Check that people who were reached are not called again."""
    one, two = table.follows
    again = np.zeros(len(table.person), dtype=bool)
    again[two] = table.is_reached[one]
    text = "called again, although an earlier call was answered"
    yield from table.of_calls("R3", again | table.past_reached, _begins(table), text)


@rule("R1", "outcomes", "ended", "settings")
def calls_after_the_last_attempt(table: CheckedCalls) -> Iterator[Violation]:
    """Check that no call follows the last attempt, or a call that allows no retry."""
    before = table.attempts - table.is_counted
    most = table.of_campaigns(lambda one: one.max_attempts or None, FAR)
    wrong = table.sequence[(before >= most)[table.sequence]]
    text = "call after attempt {before} of this person, but maxAttempts is {most}"
    yield from table.of_calls("R1", wrong, _begins(table), text, before=before, most=most)
    if table.is_complete:
        one, two = table.follows
        over = ~(table.is_unanswered | table.is_lost | table.is_reached)[one]
        previous = np.full(len(table.status), -1)
        previous[two] = table.status[one]
        text, values = "another call after {previous}", {"previous": names_of(previous)}
        yield from table.of_calls("R1", two[over], _begins(table), text, **values)


def _at_another_instant(table: CheckedCalls, at: Instants, *, early: bool) -> Iterator[Violation]:
    """Yield violations by retries whose `at` is before (`early`) or after the due instant (R2)."""
    one, two = table.follows
    interval = table.of_campaigns(lambda each: each.retry_interval, -1)[one]
    passed, due = at[two] - table.ended[one], table.retry_due(one) - table.ended[one]
    wrong = (table.ended[one] != NOT_HAPPENED) & ~table.is_reached[one] & (interval >= 0)
    wrong &= (at[two] != NOT_HAPPENED) & (passed < due if early else passed > due)
    text = "made {passed} ms after the call before, not {due} ms"
    yield from table.of_calls("R2", wrong, at[two], text, two, passed=passed, due=due)


@rule("R2", "outcomes", "ended", "settings")
def early_retries(table: CheckedCalls) -> Iterator[Violation]:
    """Check that no retry is made, dialled or lost in the queue before it is due."""
    yield from _at_another_instant(table, _begins(table), early=True)


@rule("R2", "created", "ended", "settings")
def late_retries(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a retry is made at its due instant, and not later."""
    yield from _at_another_instant(table, table.created, early=False)


@rule("R1", "created", "ended", "status", "settings")
def retries_owed(table: CheckedCalls) -> Iterator[Violation]:
    """Check that a call that was not answered is followed by its retry, if attempts are left."""
    order = table.sequence
    newest = order[np.append(np.diff(table.person[order]) != 0, True)[: len(order)]]
    attempts = np.maximum(table.attempts, table.attempt)
    wrong = (table.is_unanswered | table.is_lost) & (table.ended != NOT_HAPPENED)
    wrong &= attempts < table.of_campaigns(lambda one: one.max_attempts, 0)
    due = np.full(len(wrong), FAR)
    due[newest] = table.retry_due(newest)
    wrong &= due < table.of_campaigns(lambda one: one.horizon, NOT_HAPPENED)
    text = "no call follows, although one was due at {due_at}"
    yield from table.of_calls("R1", wrong, due, text, due_at=due)
