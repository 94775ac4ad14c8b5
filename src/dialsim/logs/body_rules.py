"""Rules on single bodies: contradicting fields, masks, results, POSTs (F1, P2, W1, A5, D1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.calls import STATUSES
from dialsim.interface.instants import DAY, MINUTE
from dialsim.interface.payload import WAITS_MS, accepted
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.logs.bodies import (
    ANALYZED,
    MASKED,
    NO_INSTANT,
    NO_RESULT,
    NONE_SPOKE,
    UNAVAILABLE,
    Mark,
    Settings,
)
from dialsim.logs.findings import FAR, Finding, LogColumns, Mask, codes, instant, week_text

CLOCKS_MS = 1_000
"""Maximum difference between the clocks of service and receiver, in ms."""
LATE_MS = DAY
"""A result may be posted, or stored, so long after it was made."""
_UNANSWERED = codes(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED, CallStatus.CANCELLED)
_COMPLETED = STATUSES.index(CallStatus.COMPLETED)
_CANCELLED = STATUSES.index(CallStatus.CANCELLED)


def findings(view: LogColumns) -> Iterator[Finding]:
    """Yield violations in single bodies, and in the bodies of a call."""
    yield from _times(view)
    yield from _status(view)
    yield from _results(view)
    yield from _masks(view)
    yield from _names(view)
    yield from _shown(view)
    yield from _settings(view)
    yield from _bodies_of_a_call(view)
    yield from _posts(view)


def _times(view: LogColumns) -> Iterator[Finding]:
    """Check start, end and duration (F1), and their match with the status (P2)."""
    started, ended, duration = (view.body(n) for n in ("started_at", "ended_at", "duration_ms"))
    status = view.body("status")
    has_start, has_end = started != NO_INSTANT, ended != NO_INSTANT
    both = has_start & has_end

    def name(row: int) -> str:
        return str(STATUSES[status[row]])

    yield from view.of_bodies("F1", ~has_end, "a result of a call without callEndedAt")
    yield from view.of_bodies(
        "F1", both & (ended < started),
        lambda row: f"callEndedAt {instant(ended[row])} is before callStartedAt "
        f"{instant(started[row])}",
    )  # fmt: skip
    yield from view.of_bodies(
        "F1", both & (ended >= started) & (duration >= 0) & (duration != ended - started),
        lambda row: f"callDuration says {duration[row] / 1000:.3f} s, callStartedAt and "
        f"callEndedAt {(ended[row] - started[row]) / 1000:.3f} s",
    )  # fmt: skip
    yield from view.of_bodies(
        "F1", view.marked(Mark.DURATION_BADLY_WRITTEN),
        "callDuration is no text with three decimals",
    )  # fmt: skip
    unanswered = np.isin(status, _UNANSWERED)
    yield from view.of_bodies(
        "P2", unanswered & has_start,
        lambda row: f"{name(row)}, but callStartedAt is {instant(started[row])}",
    )  # fmt: skip
    yield from view.of_bodies(
        "F1", unanswered & (duration >= 0),
        lambda row: f"{name(row)}, but callDuration is {duration[row] / 1000:.3f} s",
    )  # fmt: skip
    completed = status == _COMPLETED
    yield from view.of_bodies("P2", completed & ~has_start, "COMPLETED without callStartedAt")
    yield from view.of_bodies(
        "F1", completed & has_start & (duration < 0), "COMPLETED without callDuration"
    )
    sent = view.body("sent_at")
    yield from view.of_bodies(
        "W3", has_end & (sent != NO_INSTANT) & (sent < ended - CLOCKS_MS),
        lambda row: f"sent at {instant(sent[row])}, before the call ended at "
        f"{instant(ended[row])}",
        at="sent_at",
    )  # fmt: skip


def _status(view: LogColumns) -> Iterator[Finding]:
    """Check that only ends send a webhook (W1), and only completed calls are analyzed again
    (A5).
    """
    status = view.body("status")
    sends = np.isin(status, [*_UNANSWERED, _COMPLETED])
    yield from view.of_bodies(
        "W1", ~sends, lambda row: f"a webhook of a call that is {STATUSES[status[row]].value}"
    )
    again = view.marked(Mark.RE_ANALYSIS)
    yield from view.of_bodies(
        "A5", again & sends & (status != _COMPLETED),
        lambda row: f"isReAnalysis of a call that ended {STATUSES[status[row]].value}",
    )  # fmt: skip
    has_message = view.marked(Mark.HAS_ERROR_MESSAGE)
    yield from view.of_bodies(
        "F2", has_message & (status == _COMPLETED), "COMPLETED, but errorMessage says why it failed"
    )
    files = view.marked(Mark.HAS_RECORDING) | view.marked(Mark.HAS_TRANSCRIPT)
    yield from view.of_bodies(
        "W4", files & np.isin(status, _UNANSWERED),
        lambda row: f"{STATUSES[status[row]].value}, but a recording or transcript is there",
    )  # fmt: skip


def _results(view: LogColumns) -> Iterator[Finding]:
    """Check which ends have a result (W1), and its form (A3; interface, section 2.6)."""
    status, result = view.body("status"), view.body("result")
    yield from view.of_bodies(
        "W1", (status == _COMPLETED) & (result == NO_RESULT), "COMPLETED, but callResult is null"
    )
    yield from view.of_bodies(
        "W1", np.isin(status, _UNANSWERED) & (result != NO_RESULT),
        lambda row: f"{STATUSES[status[row]].value}, but it has a callResult",
    )  # fmt: skip
    yield from view.of_bodies(
        "A3", view.marked(Mark.FUNNEL_OUTSIDE), "funnel.value is none of funnelFlow"
    )
    yield from view.of_bodies(
        "A3", view.marked(Mark.FORM_DISAGREES),
        "the result's version is not the one of the name of its fields",
    )  # fmt: skip
    yield from view.of_bodies(
        "A3", view.marked(Mark.UNKNOWN_VERSION), "callResult.version is neither v1 nor v2"
    )
    fallback = (result == NONE_SPOKE) | (result == UNAVAILABLE)
    yield from view.of_bodies(
        "A3", fallback & view.marked(Mark.OLD_FORM), "a fallback result that is not v2"
    )


def _masks(view: LogColumns) -> Iterator[Finding]:
    """Check masks against dataExpired (D1)."""
    audio, personal, output = (
        view.marked(mark)
        for mark in (Mark.AUDIO_EXPIRED, Mark.PERSONAL_EXPIRED, Mark.OUTPUT_EXPIRED)
    )
    told = view.marked(Mark.HAS_FLAGS)
    result = view.body("result")
    checks: tuple[tuple[Mask, str], ...] = (
        (audio & view.marked(Mark.HAS_RECORDING), "dataExpired.audio, but recordUrl is there"),
        (personal & view.marked(Mark.HAS_TRANSCRIPT),
         "dataExpired.personalData, but transcriptFileUrl is there"),
        (personal & view.marked(Mark.HAS_NAME),
         "dataExpired.personalData, but customerName is there"),
        (personal & view.marked(Mark.HAS_PARAMS),
         "dataExpired.personalData, but agentParams have values"),
        (personal & view.marked(Mark.LONG_TEL) & ~view.marked(Mark.TEL_MASKED),
         "dataExpired.personalData, but tel is not masked"),
        (told & ~personal & view.marked(Mark.TEL_MASKED),
         "tel is masked, but dataExpired.personalData is false"),
        (told & ~personal & view.marked(Mark.NAME_IS_EMPTY),
         "customerName is empty as if masked, but dataExpired.personalData is false"),
        (output & (result != NO_RESULT) & view.marked(Mark.HAS_RESULT_VALUES),
         "dataExpired.output, but callResult has values"),
        (told & ~output & (result == MASKED),
         "callResult is masked, but dataExpired.output is false"),
    )  # fmt: skip
    for wrong, text in checks:
        yield from view.of_bodies("D1", wrong, text)


def _names(view: LogColumns) -> Iterator[Finding]:
    yield from view.of_bodies(
        "F3", view.marked(Mark.OTHER_CAMPAIGN_NAME), "campaignName is not campaign.name"
    )
    yield from view.of_bodies(
        "F2", view.marked(Mark.OTHER_AGENT_NAME), "agentName is not agent.name"
    )
    ids = pd.Series([identifier or "" for identifier, _ in view.log.agents], dtype=object)
    shown = pd.Series(ids.to_numpy()[view.body("agent")])
    # The most frequent one is taken as right: one wrong body must not accuse all others.
    usual = shown.groupby(view.body("campaign")).transform(lambda each: each.mode().iloc[0])
    yield from view.of_bodies(
        "F2", ((shown != usual) & (shown != "") & (usual != "")).to_numpy(),
        lambda row: f"agent.id is {shown[row]}, in other bodies of the campaign {usual[row]}",
    )  # fmt: skip


def _shown(view: LogColumns) -> Iterator[Finding]:
    """Check the recipient's state when the body is sent (W4, P5, R1, R3)."""
    status, shown = view.body("status"), view.body("shown_attempts")
    latest = view.body("shown_status")
    counted = (status != _CANCELLED) & np.isin(status, [*_UNANSWERED, _COMPLETED])
    yield from view.of_bodies(
        "P5", counted & (shown == 0),
        lambda row: f"the call ended {STATUSES[status[row]].value}, but callAttempt is 0",
    )  # fmt: skip
    yield from view.of_bodies(
        "W4", view.marked(Mark.UNKNOWN_LATEST_STATUS), "latestCallStatus is no status of a call"
    )
    most = _number(view, "max_attempts")
    yield from view.of_bodies(
        "R1", (most >= 0) & (shown > most),
        lambda row: f"callAttempt is {shown[row]}, maxAttempts {most[row]}",
    )  # fmt: skip
    yield from view.of_bodies(
        "R3", (status == _COMPLETED) & (latest >= 0) & (latest != _COMPLETED),
        lambda row: f"the call was answered, but latestCallStatus is {STATUSES[latest[row]].value}",
    )  # fmt: skip
    # After the last attempt no call may wait any more.
    last = counted & (shown == most) & (status != _COMPLETED) & (latest >= 0)
    waits = np.isin(latest, codes(CallStatus.SCHEDULED, CallStatus.QUEUED, CallStatus.INITIATED))
    yield from view.of_bodies(
        "R1", last & waits,
        lambda row: f"callAttempt is {shown[row]} of maxAttempts {most[row]}, but "
        f"latestCallStatus is {STATUSES[latest[row]].value}",
    )  # fmt: skip


def _number(view: LogColumns, name: str) -> NDArray[np.int64]:
    values = [getattr(one, name) for one in view.log.settings]
    filled = np.array([-1 if value is None else value for value in values], dtype=np.int64)
    return filled[view.body("setting")] if len(filled) else np.empty(0, np.int64)


_STATUSES = {status.value for status in CampaignStatus}
_BEFORE_CALLS = {CampaignStatus.DRAFT.value, CampaignStatus.SCHEDULED.value}


def _settings(view: LogColumns) -> Iterator[Finding]:
    """Check settings: possible in a schedule request (C9), constant (C1), consistent (C2)."""
    setting, campaign = view.body("setting"), view.body("campaign")
    _, first = np.unique(setting, return_index=True)
    first = np.sort(first)
    of_campaign: dict[int, Settings] = {}
    wrong: dict[str, list[tuple[int, str]]] = {"C2": [], "C9": [], "C1": []}
    for row in first.tolist():
        one = view.log.settings[setting[row]]
        if one.status is not None and one.status not in _STATUSES:
            wrong["C2"].append((row, f"the campaign's status is {one.status}, which is none"))
        if one.status in _BEFORE_CALLS:
            wrong["C2"].append((row, f"a call has ended, but its campaign is {one.status}"))
        wrong["C9"] += [(row, text) for text in _refused(one)]
        # Compared with the first settings, so that a change is one finding and not two.
        before = of_campaign.setdefault(int(campaign[row]), one)
        for name, field in _FIXED.items():
            old, new = getattr(before, name), getattr(one, name)
            if old is not None and new is not None and old != new:
                text = f"{field} changed: {_written(name, old)}, then {_written(name, new)}"
                wrong["C1"].append((row, text))
    for rule, texts in wrong.items():
        yield from view.of_texts(rule, texts)


_FIXED = {"max_attempts": "maxAttempts", "retry_interval": "retryInterval",
          "start_at": "scheduleStartAt", "end_at": "scheduleEndAt",
          "windows": "scheduleDateTimeWindow", "name": "the campaign's name"}  # fmt: skip
"""Settings that do not change after the start of a campaign."""


def _written(name: str, value: object) -> str:
    if name.endswith("_at") and isinstance(value, int):
        return instant(value)
    if isinstance(value, tuple):
        return week_text(value)
    return str(value)


def _refused(one: Settings) -> Iterator[str]:
    attempts, interval = one.max_attempts, one.retry_interval
    if attempts is not None and attempts < 1:
        yield f"maxAttempts is {attempts}"
    if attempts is not None and interval is not None and attempts > 1 and interval < 300_000:
        yield f"retryInterval is {interval} ms, less than 5 minutes, with maxAttempts {attempts}"
    if one.start_at is not None and one.end_at is not None and one.end_at <= one.start_at:
        yield f"scheduleEndAt {instant(one.end_at)} is not after {instant(one.start_at)}"
    if one.windows is not None and not one.windows:
        yield "scheduleDateTimeWindow is empty"
    for span in one.windows or ():
        if not 1 <= span.day <= 7:
            yield f"dayOfWeek is {span.day}"
        if span.start >= span.end:
            yield f"a time window of day {span.day} ends before it starts"


def _bodies_of_a_call(view: LogColumns) -> Iterator[Finding]:
    """Check that bodies of one call agree (A5, W1, F2, D2)."""
    call = view.body("call")
    order = np.lexsort((view.body("line"), call))
    begins = np.flatnonzero(np.diff(call[order], prepend=-1))
    first = order[np.repeat(begins, np.diff([*begins, len(order)]))] if len(order) else order
    of_first = np.empty_like(order)
    of_first[order] = first  # by body: first body of its call
    for name, what, rule in (("session", "sessionId", "A5"), ("status", "callStatus", "W1"),
                             ("started_at", "callStartedAt", "F1"),
                             ("ended_at", "callEndedAt", "F1"),
                             ("campaign", "the campaign", "W1")):  # fmt: skip
        values = view.body(name)
        yield from view.of_bodies(
            rule, values != values[of_first],
            lambda row, what=what: f"{what} is another one than in line "  # type: ignore[misc]
            f"{view.line(of_first[row])} of the same call",
        )  # fmt: skip
    # 0 is a masked person, who may be any.
    person = pd.Series(view.body("person")).where(view.body("person") != 0)
    known = person.groupby(call).transform("first")
    yield from view.of_bodies(
        "W4", (person.notna() & (person != known)).to_numpy(),
        "the recipient is another one than in an earlier body of the call",
    )  # fmt: skip
    session = pd.DataFrame({"session": view.body("session"), "call": call})
    owner = session.groupby("session")["call"].transform("first").to_numpy()
    yield from view.of_bodies(
        "F2", (session["session"].to_numpy() != 0) & (owner != call),
        "the sessionId is that of another call",
    )  # fmt: skip
    yield from _results_of_a_call(view)


def _results_of_a_call(view: LogColumns) -> Iterator[Finding]:
    call, result, sent = view.body("call"), view.body("result"), view.body("sent_at")
    again = view.marked(Mark.RE_ANALYSIS)
    plain = ~again & (result != NO_RESULT) & (result != MASKED)
    digest = pd.Series(view.body("digest")).where(plain)
    before = digest.groupby(call).transform("first")
    yield from view.of_bodies(
        "W1", (plain & (digest != before)).to_numpy(),
        "a second result of the call that differs and does not say isReAnalysis",
    )  # fmt: skip
    size = len(view.log.calls)
    good = np.zeros(size, dtype=bool)
    good[call[~again & (result == ANALYZED)]] = True
    fallback = again & ((result == NONE_SPOKE) | (result == UNAVAILABLE))
    yield from view.of_bodies(
        "A5", fallback & good[call], "a re-analysis replaces a good result by the fallback"
    )
    timed = sent != NO_INSTANT
    first = np.full(size, FAR)
    np.minimum.at(first, call[timed & ~again], sent[timed & ~again])
    has_first = first[call] != FAR
    yield from view.of_bodies(
        "A5", again & timed & has_first & (sent < first[call] - LATE_MS),
        lambda row: f"a re-analysis sent at {instant(sent[row])}, before the first result at "
        f"{instant(first[call[row]])}",
        at="sent_at",
    )  # fmt: skip
    for mark, name in ((Mark.AUDIO_EXPIRED, "audio"), (Mark.PERSONAL_EXPIRED, "personalData"),
                       (Mark.OUTPUT_EXPIRED, "output")):  # fmt: skip
        flag = view.marked(mark)
        gone = np.full(size, FAR)
        np.minimum.at(gone, call[flag & timed], sent[flag & timed])
        # A first result may have been posted late; a re-analysis is made when it is sent
        back = again & timed & ~flag & (sent > gone[call] + CLOCKS_MS)
        yield from view.of_bodies(
            "D2", back,
            lambda row, name=name, gone=gone: f"dataExpired.{name} is false, but was true "  # type: ignore[misc]
            f"at {instant(gone[call[row]])}",
            at="sent_at",
        )  # fmt: skip


def _posts(view: LogColumns) -> Iterator[Finding]:
    """Check the POSTs of one result: none after a success, waits, and equal bodies (W2, W4)."""
    post = view.body("post")
    # Further numbers are requests to send again, which have their own rules.
    rows = np.flatnonzero((post >= 1) & (post <= 3))
    again = view.marked(Mark.RE_ANALYSIS)
    call, sent = view.body("call"), view.body("sent_at")
    order = rows[np.lexsort((post[rows], sent[rows], again[rows], call[rows]))]
    if len(order) < 2:
        return
    one, two = order[:-1], order[1:]
    follows = (call[one] == call[two]) & (again[one] == again[two]) & (post[two] == post[one] + 1)
    follows &= sent[two] - sent[one] <= MINUTE  # later ones may be those of another re-analysis
    response = view.body("response")
    wait = np.array([0, *WAITS_MS])[np.clip(post[one], 0, 2)]
    apart = sent[two] - sent[one]

    yield from view.of_bodies(
        "W2", two[follows & accepted(response[one])],
        "a POST after one that was answered with 2xx", at="sent_at",
    )  # fmt: skip
    yield from view.of_bodies(
        "W2", two[follows & (apart < wait)], "a POST too soon after the one before", at="sent_at"
    )
    for name, what in (("setting", "campaign"), ("shown_attempts", "callAttempt"),
                       ("shown_status", "latestCallStatus"), ("digest", "callResult")):  # fmt: skip
        values = view.body(name)
        yield from view.of_bodies(
            "W4", two[follows & (values[one] != values[two])],
            f"{what} is another one than in the POST before of the same result", at="sent_at",
        )  # fmt: skip
