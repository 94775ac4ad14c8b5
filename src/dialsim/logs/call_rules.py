"""Rules on calls together: windows, spans, lines, retries (T3, C1, C7, Q1, R1 to R3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.calls import (
    STATUSES,
    OpeningHours,
    attempts_so_far,
    retry_due,
    shows_the_same,
)
from dialsim.interface.instants import MINUTE
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.logs.bodies import NO_INSTANT, Settings
from dialsim.logs.findings import (
    FAR,
    LONGEST_RING_MS,
    Finding,
    LogColumns,
    codes,
    instant,
)

_FINAL = (CampaignStatus.COMPLETED.value, CampaignStatus.CANCELLED.value,
          CampaignStatus.EXPIRED.value)  # fmt: skip


def findings(view: LogColumns) -> Iterator[Finding]:
    """Yield violations by campaigns and by persons."""
    yield from _windows(view)
    yield from _span(view)
    yield from _lines(view)
    yield from _after_the_end(view)
    yield from _people(view)
    if view.log.columns:
        yield from _dials(view)
        yield from _bodies_owed(view)


def first_dial(view: LogColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the limits (both included) of the dial of each call; `FAR` without a dial."""
    initiated = view.instants("initiated_at")
    if view.log.columns:
        known = initiated != NO_INSTANT
        return np.where(known, initiated, FAR), np.where(known, initiated, FAR)
    started, ended = view.instants("started_at"), view.instants("ended_at")
    latest = np.where(started != NO_INSTANT, started, ended)
    known = view.is_counted & (latest != NO_INSTANT)
    safe = np.where(known, latest, LONGEST_RING_MS + 1)
    return np.where(known, safe - LONGEST_RING_MS, FAR), np.where(known, safe - 1, FAR)


def _windows(view: LogColumns) -> Iterator[Finding]:
    """Check that calls are dialled in a window (T3), and time out in a window (Q6)."""
    since, until = first_dial(view)
    ended = view.instants("ended_at")
    for code, one in enumerate(view.settings):
        if one is None or one.windows is None or not is_sound(one):
            continue
        hours = OpeningHours(one.windows)
        here = view.campaign == code
        dialled = np.flatnonzero(here & (since != FAR))
        closed = dialled[hours.next_open(since[dialled]) > until[dialled]]

        def text(row: int) -> str:
            if since[row] == until[row]:
                return f"dialled at {instant(since[row])}, while no window was open"
            return (
                f"answered or ended at {instant(until[row] + 1)}, but no window was open in the "
                f"{LONGEST_RING_MS // MINUTE} minutes before"
            )

        yield from view.of_calls("T3", closed, until, text)
        lost = np.flatnonzero(here & view.is_queue_timeout)
        yield from view.of_calls(
            "Q6", lost[~hours.are_open(ended[lost] - 1)], ended,
            lambda row: f"lost in the queue at {instant(ended[row])}, while no window was open",
        )  # fmt: skip


def is_sound(one: Settings) -> bool:
    """Return whether all time windows are ranges of a day."""
    return all(
        1 <= span.day <= 7 and 0 <= span.start < span.end <= 1440 for span in one.windows or ()
    )


def _span(view: LogColumns) -> Iterator[Finding]:
    """Check that calls come after the campaign's start (C1) and before its end date (C7)."""
    since, until = first_dial(view)
    ended = view.instants("ended_at")
    start = view.setting(lambda one: one.start_at, -1)
    end = view.setting(lambda one: one.end_at, FAR)
    yield from view.of_calls(
        "C1", (until != FAR) & (until < start), until,
        lambda row: f"dialled by {instant(until[row])}, but the campaign starts at "
        f"{instant(start[row])}",
    )  # fmt: skip
    lost = view.is_queue_timeout
    yield from view.of_calls(
        "C1", lost & (ended <= start), ended,
        lambda row: f"lost in the queue at {instant(ended[row])}, but the campaign starts at "
        f"{instant(start[row])}",
    )  # fmt: skip
    yield from view.of_calls(
        "C7", (since != FAR) & (since >= end), since,
        lambda row: f"dialled at {instant(since[row])} or later, but the campaign's end is "
        f"{instant(end[row])}",
    )  # fmt: skip
    yield from view.of_calls(
        "C7", lost & (ended >= end), ended,
        lambda row: f"lost in the queue at {instant(ended[row])}, but the campaign's end is "
        f"{instant(end[row])}",
    )  # fmt: skip


def _lines(view: LogColumns) -> Iterator[Finding]:
    """Check that no more calls than lines are under way (Q1).

    The number of lines comes from a scenario, or from bodies if all show one number; it is known
    from the first end of a call on.
    """
    log, ended = view.log, view.instants("ended_at")
    begins = view.instants("initiated_at" if log.columns else "started_at")
    held = (begins != NO_INSTANT) & (ended > begins) & view.is_counted
    for codes_of_owner in owners(view):
        rows = np.flatnonzero(held & np.isin(view.campaign, codes_of_owner))
        limit, says, since = known_limit(view, codes_of_owner)
        if limit is None or not len(rows):
            continue
        at = np.concatenate([begins[rows], ended[rows]])
        change = np.repeat([1, -1], len(rows))
        # Calls that end on an instant free their line on it.
        order = np.lexsort((change, at))
        busy = np.cumsum(change[order])
        over = (busy > limit) & (change[order] == 1) & (at[order] > since)
        if not over.any():
            continue
        # One finding at the peak: each further call above the limit would only repeat it.
        peak = rows[order[[np.argmax(np.where(over, busy, 0))]]]
        text = f"{busy[over].max()} calls at once, but {says} {limit}"
        yield from view.of_calls("Q1", peak, begins, text)


def owners(view: LogColumns) -> list[list[int]]:
    """Return the campaigns of each organization, or of each agent where none is known."""
    # Campaigns of a table that names no organizations belong to one
    named = pd.Series(
        [one.organization or one.agent_id or one.id or "" for one in view.log.campaigns]
    )
    return [[*group] for group in named.groupby(named).groups.values()]


def known_limit(view: LogColumns, codes_of_owner: list[int]) -> tuple[int | None, str, int]:
    """Return the number of lines of some campaigns, its source, and the instant from which it is
    known.
    """
    said = [view.most_lines[code] for code in codes_of_owner if code in view.most_lines]
    if said:
        return max(said), "the scenario has maxConcurrentCalls", NO_INSTANT
    ids = {view.log.campaigns[code].id for code in codes_of_owner}
    shown = {one.max_concurrent_calls for one in view.log.settings if one.id in ids}
    if len(shown) != 1 or not (limit := shown.pop()):
        return None, "", NO_INSTANT
    ended = view.instants("ended_at")
    known = np.isin(view.campaign, codes_of_owner) & (ended != NO_INSTANT)
    # Earlier the limit may have been another one, changed before the first body was sent.
    since = int(ended[known].min(initial=FAR)) + LONGEST_RING_MS
    return limit, "every body says maxConcurrentCalls", since


def _after_the_end(view: LogColumns) -> Iterator[Finding]:
    """Check that no call follows a body with a final status (C3, C6, C7), and that the status
    stays.
    """
    log = view.log
    sent, campaign = view.body("sent_at"), view.body("campaign")
    status = np.array([one.status or "" for one in log.settings], dtype=object)
    shown = status[view.body("setting")] if len(log.settings) else np.empty(0, dtype=object)
    is_final = np.isin(shown.astype(str), _FINAL) & (sent != NO_INSTANT)
    # One more entry for campaign -1, bodies of unknown calls.
    over = np.full(len(log.campaigns) + 1, FAR)
    np.minimum.at(over, campaign[is_final], sent[is_final])
    # A body may be posted, or stored, long after it was made, but never before its call ended
    ended = view.body("ended_at")
    back = (ended > over[campaign]) & ~np.isin(shown.astype(str), _FINAL)
    yield from view.of_bodies(
        "C3", back,
        lambda row: f"the campaign is {shown[row]}, but was over at "
        f"{instant(over[campaign[row]])}",
    )  # fmt: skip
    since, _ = first_dial(view)
    closed = over[view.campaign]
    yield from view.of_calls(
        "C3", (since != FAR) & (since > closed), since,
        lambda row: f"dialled at {instant(since[row])} or later, but a body shows the campaign as "
        f"over at {instant(closed[row])}",
    )  # fmt: skip


def _people(view: LogColumns) -> Iterator[Finding]:
    """Check the sequence of a person's calls (R1, R2, R3, P5)."""
    started, ended = view.instants("started_at"), view.instants("ended_at")
    who, counted = view.recipient, view.is_counted
    rows = np.flatnonzero((who >= 0) & (counted | view.is_queue_timeout) & (ended != NO_INSTANT))
    rows = rows[np.lexsort((ended[rows], who[rows]))]
    unsure = doubts(view)
    rows = rows[~np.isin(view.campaign[rows], [*unsure.campaigns])]
    rows = rows[~np.isin(who[rows], unsure.people)]
    if len(rows) < 2:
        return
    one, two = rows[:-1], rows[1:]
    same = who[one] == who[two]
    interval = view.setting(lambda settings: settings.retry_interval, 0)[two]
    _, until = first_dial(view)
    begins = np.where(until[two] != FAR, until[two], ended[two])
    due = retry_due(ended[one], interval, view.status[one])
    nth = dict(zip(two.tolist(), range(len(two)), strict=True))

    def early(row: int) -> str:
        index = nth[row]
        return (
            f"dialled or lost by {instant(begins[index])}, but the call before ended at "
            f"{instant(ended[one[index]])} and retryInterval is {interval[index]} ms"
        )

    yield from view.of_calls("R2", two[same & (begins < due)], ended, early)
    yield from view.of_calls(
        "R3", two[same & view.was_reached[one]], ended,
        lambda row: f"called again, but answered the call "
        f"{view.call_id(int(one[nth[row]]))}"
        f" at {instant(started[one[nth[row]]])}",
    )  # fmt: skip
    number = attempts_so_far(who[rows], counted[rows])
    most = view.setting(lambda settings: settings.max_attempts or None, FAR)
    at_number: dict[int, int] = dict(zip(rows.tolist(), number.tolist(), strict=True))
    yield from view.of_calls(
        "R1", rows[(number > most[rows]) & counted[rows]], ended,
        lambda row: f"attempt {at_number[row]} of this person, but maxAttempts is {most[row]}",
    )  # fmt: skip
    yield from view.of_calls(
        "R1", rows[(number >= most[rows]) & ~counted[rows]], ended,
        lambda row: f"waited for a call after attempt {at_number[row]}, but maxAttempts is "
        f"{most[row]}",
    )  # fmt: skip
    yield from _counts(view, rows, number)


def _counts(
    view: LogColumns, rows: NDArray[np.int64], number: NDArray[np.int64]
) -> Iterator[Finding]:
    """Check that `callAttempt` counts all ended attempts, and no queue timeouts (P5, W4)."""
    rank = np.full(len(view.log.calls), -1, dtype=np.int64)
    rank[rows] = number
    call, shown = view.body("call"), view.body("shown_attempts")
    safe = np.maximum(call, 0)
    known = (call >= 0) & (rank[safe] >= 0) & (shown >= 0)
    few = known & (shown < rank[safe])
    yield from view.of_bodies(
        "P5", few,
        lambda row: f"callAttempt is {shown[row]}, but {rank[call[row]]} attempts had ended",
    )  # fmt: skip
    yield from _latest(view, rank)
    if not view.log.columns:
        return
    sent = view.body("sent_at")
    who, ended, counted = view.recipient, view.instants("ended_at"), view.is_counted
    attempts = pd.DataFrame({"who": who, "at": ended})[counted & (ended != NO_INSTANT)]
    bodies = pd.DataFrame({"who": who[safe], "at": sent, "row": np.arange(len(call))})
    bodies = bodies[known & (sent != NO_INSTANT)].sort_values("at", kind="stable")
    attempts = attempts.sort_values("at", kind="stable")
    attempts["count"] = attempts.groupby("who").cumcount() + 1
    both = pd.merge_asof(bodies, attempts, on="at", by="who")
    offset = pd.Series(shown[both["row"]] - both["count"].fillna(0).to_numpy())
    # A history shifts all of a person's counts by the same number, which the log does not show.
    usual = offset.groupby(both["who"].to_numpy()).transform("min").to_numpy()
    yield from view.of_bodies(
        "P5", both["row"].to_numpy()[offset.to_numpy() != usual],
        lambda row: f"callAttempt is {shown[row]}, which is not the number of attempts by then",
        at="sent_at",
    )  # fmt: skip


def _latest(view: LogColumns, rank: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield bodies whose latestCallStatus is the end of a call that had not been made (W4).

    Where `callAttempt` counts no attempt after the call of the body, its own end is the latest.
    """
    call, shown = view.body("call"), view.body("shown_attempts")
    latest, safe = view.body("shown_status"), np.maximum(call, 0)
    ends = codes(CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED,
                 CallStatus.ANALYSIS_FAILED)  # fmt: skip
    own = view.status[safe]
    newest = (call >= 0) & view.is_counted[safe] & (rank[safe] >= 0) & (shown == rank[safe])
    answered = np.isin(own, codes(CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED))
    wrong = newest & ~answered & np.isin(latest, ends) & (latest != own)
    yield from view.of_bodies(
        "W4", wrong,
        lambda row: f"latestCallStatus is {STATUSES[latest[row]].value}, but the latest call that "
        f"callAttempt {shown[row]} counts ended {STATUSES[own[row]].value}",
    )  # fmt: skip


class Doubts(NamedTuple):
    """People who may be several with the same values, and campaigns that may list many of those.

    `campaigns` has the reason for each. Bodies have no ids of recipients, so R1 to R3 are not
    certain of such people.
    """

    people: NDArray[np.int64]
    campaigns: dict[int, str]


_FEW_UNSURE = 3  # people of a campaign who may be wrong by a value, without the list having twins
_UNSURE_SHARE = 0.02


def doubts(view: LogColumns) -> Doubts:
    """Return who may be listed twice, from calls that one person can't have had."""
    if view.log.columns:
        return Doubts(np.empty(0, dtype=np.int64), {})
    who, ended = view.recipient, view.instants("ended_at")
    shown = np.full(len(view.log.calls), FAR)
    np.minimum.at(shown, view.body("call"), view.body("shown_attempts"))
    rows = np.flatnonzero((who >= 0) & (ended != NO_INSTANT))
    rows = rows[~np.isin(view.campaign[rows], [*view.told_apart])]
    rows = rows[np.lexsort((ended[rows], who[rows]))]
    one, two = rows[:-1], rows[1:]
    same = who[one] == who[two]
    is_attempt = view.is_counted[one] & view.is_counted[two]
    doubt = (ended[one] == ended[two]) | (is_attempt & (shown[one] == shown[two]))
    doubt = same & (doubt | (shown[two] < shown[one]))
    people = np.unique(who[two[doubt]])
    listed = "the scenario lists people twice with the same values"
    campaigns = dict.fromkeys(view.listed_twice, listed)
    first, repeated = np.unique(who[two[doubt]], return_index=True), np.unique(who[two[same]])
    lines, of_campaign = view.log.calls["line"].to_numpy(), two[doubt][first[1]]
    called_again = {int(row): int(code) for row, code in zip(who, view.campaign, strict=True)}
    several = Counter(called_again[person] for person in repeated.tolist())
    for code, count in Counter(view.campaign[of_campaign].tolist()).items():
        if count > max(_FEW_UNSURE, _UNSURE_SHARE * several[code]):
            line = lines[of_campaign[view.campaign[of_campaign] == code][0]]
            text = f"people may be listed twice: calls of {count} people show it (line {line})"
            campaigns.setdefault(code, text)
    return Doubts(people, campaigns)


def _dials(view: LogColumns) -> Iterator[Finding]:
    """Check data that only a table of calls contains: dues, numbers, phases (R2, P1, P3, P5,
    Q5).
    """
    calls, who = view.log.calls, view.recipient
    created, queued = view.instants("created_at"), view.instants("queued_at")
    initiated, ringing = view.instants("initiated_at"), view.instants("ringing_at")
    started, ended = view.instants("started_at"), view.instants("ended_at")
    steps = {"created_at": created, "queued_at": queued, "initiated_at": initiated,
             "ringing_at": ringing, "started_at": started, "ended_at": ended}  # fmt: skip
    names = list(steps)
    for index, name in enumerate(names):
        for later in names[index + 1 :]:
            one, two = steps[name], steps[later]
            wrong = (one != NO_INSTANT) & (two != NO_INSTANT) & (two < one)
            if later in {"started_at", "ended_at", "ringing_at"} and name == "initiated_at":
                # Setup takes at least 1 ms (P1), so that even equal instants are wrong.
                wrong |= (one != NO_INSTANT) & (two == one)
            yield from view.of_calls(
                "P1", wrong, two,
                lambda row, name=name, later=later, one=one, two=two: (  # type: ignore[misc]
                    f"{later} {instant(two[row])} does not come after {name} {instant(one[row])}"
                ),
            )  # fmt: skip
    lost = view.is_queue_timeout
    yield from view.of_calls("P5", lost & (view.attempt > 0), ended, "a queue timeout is counted")
    order = np.lexsort((calls["call_no"].to_numpy(np.int64, na_value=0), created, who))
    one, two = order[:-1], order[1:]
    same = who[one] == who[two]
    interval = view.setting(lambda settings: settings.retry_interval, -1)[two]
    due = retry_due(ended[one], interval, view.status[one])
    known = (created[two] != NO_INSTANT) & (ended[one] != NO_INSTANT)
    off = same & (interval >= 0) & (created[two] != due)
    if view.log.form == "table":  # a foreign table may not know them all
        off &= known
    before: dict[int, int] = dict(zip(two.tolist(), one.tolist(), strict=True))
    yield from view.of_calls(
        "R2", two[off], created,
        lambda row: f"made at {instant(created[row])}, but the call before ended at "
        f"{instant(ended[before[row]])}",
    )  # fmt: skip
    numbers = calls["caller_id"].astype("str").fillna("").to_numpy()
    dialled = order[initiated[order] != NO_INSTANT]
    several = pd.Series(numbers[dialled]).groupby(view.campaign[dialled]).nunique()
    many = several.reindex(view.campaign[dialled]).to_numpy() > 1
    many |= np.isin(view.campaign[dialled], [*view.several_numbers])
    many &= numbers[dialled] != ""  # unknown ones are not the same
    yield from view.of_calls(
        "P3", dialled[shows_the_same(who[dialled], numbers[dialled]) & many], initiated,
        lambda row: f"a retry from {numbers[row]}, the number of the call before; the campaign has "
        "others",
    )  # fmt: skip


def _bodies_owed(view: LogColumns) -> Iterator[Finding]:
    """Check that every end that sends a webhook has one, and no other (W1), with equal values
    (W4).
    """
    log, call = view.log, view.body("call")
    if not len(call):
        return
    ended, sent = view.instants("ended_at"), view.body("sent_at")
    has_body = np.zeros(len(log.calls), dtype=bool)
    has_body[call[call >= 0]] = True
    known = (call >= 0) & (sent != NO_INSTANT)
    delay = (sent[known] - ended[call[known]]).max(initial=0)
    # The log may end before a webhook is due; the longest delay seen bounds what can be demanded.
    soon = ended + delay < sent[known].max(initial=0)
    analysis = log.calls["analysis"].astype("str").fillna("").to_numpy()
    has_result = np.isin(analysis, ["analyzed", "no_conversation", "unavailable"])
    no_answer = np.isin(
        view.status, codes(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)
    )
    owed = (ended != NO_INSTANT) & (no_answer | view.is_queue_timeout | has_result)
    yield from view.of_calls(
        "W1", owed & soon & ~has_body, ended,
        lambda row: f"ended {STATUSES[view.status[row]].value}, but no webhook tells of it",
    )  # fmt: skip
    none = np.isin(analysis, ["not_analyzed", "failed"]) | (
        (view.status == STATUSES.index(CallStatus.CANCELLED)) & (ended == NO_INSTANT)
    )
    yield from view.of_calls(
        "W1", none & has_body, ended,
        lambda row: f"{STATUSES[view.status[row]].value}, {analysis[row] or 'never dialled'}: "
        "it must have no webhook, but there is one",
    )  # fmt: skip
    safe = np.maximum(call, 0)
    for name, column, rule in (("status", view.status, "W4"),
                               ("started_at", view.instants("started_at"), "F1"),
                               ("ended_at", ended, "F1")):  # fmt: skip
        differs = (call >= 0) & (view.body(name) != column[safe])
        yield from view.of_bodies(
            rule, differs, f"{name} is another one than in the table of calls"
        )
    yield from view.of_bodies("W1", call < 0, "a webhook of a call that the table lacks")
