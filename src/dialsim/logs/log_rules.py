"""Rules that only a log can break: on bodies of the webhook, and on calls that the log lacks.

Bodies are checked alone, with the other bodies of their call, and against calls. Calls are missing
if later ones of the same person are there, or if the scenario lists more people (W1, C1)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.conformance.table import (
    FAR,
    NOT_HAPPENED,
    STATUSES,
    CampaignFacts,
    Indices,
    Violation,
    instant,
    names_of,
    of_campaign,
    rule,
)
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.agent import check_agent_params
from dialsim.interface.instants import DAY, MINUTE
from dialsim.interface.payload import WAITS_MS, accepted
from dialsim.interface.schedule import WeekdayRange
from dialsim.logs.bodies import ANALYZED, MASKED, NO_RESULT, NONE_SPOKE, UNAVAILABLE, Mark, Settings
from dialsim.logs.log_table import Expected, LogTable
from dialsim.scenario.week import range_text

CLOCKS_MS = 1_000
"""Maximum difference between the clocks of service and receiver, in ms."""
LATE_MS = DAY
"""Maximum time from the making of a result to its POST or storage, in ms."""
_COMPLETED = STATUSES.index(CallStatus.COMPLETED)


def _codes(*statuses: CallStatus) -> list[int]:
    return [STATUSES.index(status) for status in statuses]


_UNREACHED = _codes(CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)
_UNANSWERED = [*_UNREACHED, STATUSES.index(CallStatus.CANCELLED)]
_ANSWERED = _codes(CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED)
_WAITING = _codes(CallStatus.SCHEDULED, CallStatus.QUEUED, CallStatus.INITIATED)


@rule("P2", "log")
def unreadable_lines(table: LogTable) -> Iterator[Violation]:
    """Report damaged lines with a value unknown to the interface; other damage breaks no rule."""
    rules = {"payload.call.callStatus": "P2", "status": "P2", "payload.call": "F1",
             "payload.campaign": "F3", "payload.callResult": "A3"}  # fmt: skip
    for damage in table.log.damages:
        number = next((rules[field] for field in rules if damage.reason.startswith(field)), None)
        if number is not None:
            text = damage.reason
            yield Violation(number, None, None, None, None, None, text, line=damage.line)


@rule("F1 F2 F3 P5 W1 W4 A3 A5", "bodies")
def single_bodies(table: LogTable) -> Iterator[Violation]:
    """Check that the fields of each body agree with one another."""
    status, result, shown = table.body("status"), table.body("result"), table.body("shown_status")
    started, ended, duration = (
        table.body(name) for name in ("started_at", "ended_at", "duration_ms")
    )
    has_start, has_end = started != NOT_HAPPENED, ended != NOT_HAPPENED
    both, has_result = has_start & has_end, result != NO_RESULT
    completed, unanswered = status == _COMPLETED, np.isin(status, _UNANSWERED)
    reached, sends = np.isin(shown, _ANSWERED), completed | unanswered
    files = table.marked(Mark.HAS_RECORDING) | table.marked(Mark.HAS_TRANSCRIPT)
    fallback = (result == NONE_SPOKE) | (result == UNAVAILABLE)
    attempts, most = table.body("shown_attempts"), _setting(table, "max_attempts")
    counted = sends & (status != STATUSES.index(CallStatus.CANCELLED))
    for number, wrong, text in (
        ("F1", ~has_end, "a result of a call without callEndedAt"),
        ("F1", both & (ended < started),
         "callEndedAt {ended_at} is before callStartedAt {started_at}"),
        ("F1", both & (ended >= started) & (duration >= 0) & (duration != ended - started),
         "callDuration says {duration_ms} ms, but it lasted from {started_at} to {ended_at}"),
        ("F1", table.marked(Mark.DURATION_BADLY_WRITTEN),
         "callDuration is no text with three decimals"),
        ("F1", unanswered & (duration >= 0), "{status}, but callDuration is {duration_ms} ms"),
        ("F1", completed & has_start & (duration < 0), "COMPLETED without callDuration"),
        ("W1", ~sends, "a webhook of a call that is {status}"),
        ("W1", completed & ~has_result, "COMPLETED, but callResult is null"),
        ("W1", unanswered & has_result, "{status}, but it has a callResult"),
        ("A5", table.marked(Mark.RE_ANALYSIS) & sends & ~completed,
         "isReAnalysis of a call that ended {status}"),
        ("F2", table.marked(Mark.HAS_ERROR_MESSAGE) & completed,
         "COMPLETED, but errorMessage says why it failed"),
        ("F2", table.marked(Mark.OTHER_AGENT_NAME), "agentName is not agent.name"),
        ("F3", table.marked(Mark.OTHER_CAMPAIGN_NAME), "campaignName is not campaign.name"),
        ("W4", files & unanswered, "{status}, but a recording or transcript is there"),
        ("A3", table.marked(Mark.FUNNEL_OUTSIDE), "funnel.value is none of funnelFlow"),
        ("A3", table.marked(Mark.FORM_DISAGREES),
         "the result's version does not fit the name of its fields"),
        ("A3", table.marked(Mark.UNKNOWN_VERSION), "callResult.version is neither v1 nor v2"),
        ("A3", fallback & table.marked(Mark.OLD_FORM), "a fallback result that is not v2"),
        ("P5", counted & (attempts == 0), "the call ended {status}, but callAttempt is 0"),
        ("R1", (most >= 0) & (attempts > most), "callAttempt is {shown_attempts}, more than "
         "maxAttempts"),
        # After the last attempt no call may wait any more.
        ("R1", counted & ~completed & (attempts == most) & np.isin(shown, _WAITING),
         "callAttempt {shown_attempts} is maxAttempts, but latestCallStatus is {shown_status}"),
        ("R3", completed & (shown >= 0) & ~reached,
         "the call was answered, but latestCallStatus is {shown_status}"),
        ("W4", table.marked(Mark.UNKNOWN_LATEST_STATUS),
         "latestCallStatus is no status of a call"),
    ):  # fmt: skip
        yield from table.of_bodies(number, wrong, text)
    agents = np.array([identifier or "" for identifier, _ in table.log.agents], dtype=object)
    agent = pd.Series(agents[table.body("agent")])
    # The most frequent id is taken as right: one wrong body must not accuse all others.
    usual = agent.groupby(table.body("campaign")).transform(lambda each: each.mode().iloc[0])
    wrong = ((agent != usual) & (agent != "") & (usual != "")).to_numpy()
    text = "agent.id is {one}, but {usual} in other bodies of the campaign"
    yield from table.of_bodies("F2", wrong, text, one=agent.to_numpy(), usual=usual.to_numpy())


@rule("D1", "bodies")
def masks(table: LogTable) -> Iterator[Violation]:
    """Check masks against dataExpired."""
    audio, personal, output = (
        table.marked(mark)
        for mark in (Mark.AUDIO_EXPIRED, Mark.PERSONAL_EXPIRED, Mark.OUTPUT_EXPIRED)
    )
    has_flags, result = table.marked(Mark.HAS_FLAGS), table.body("result")
    is_masked = table.marked(Mark.TEL_MASKED)
    for wrong, text in (
        (audio & table.marked(Mark.HAS_RECORDING), "dataExpired.audio, but recordUrl is there"),
        (personal & table.marked(Mark.HAS_TRANSCRIPT),
         "dataExpired.personalData, but transcriptFileUrl is there"),
        (personal & table.marked(Mark.HAS_NAME),
         "dataExpired.personalData, but customerName is there"),
        (personal & table.marked(Mark.HAS_PARAMS),
         "dataExpired.personalData, but agentParams have values"),
        (personal & table.marked(Mark.LONG_TEL) & ~is_masked,
         "dataExpired.personalData, but tel is not masked"),
        (has_flags & ~personal & is_masked,
         "tel is masked, but dataExpired.personalData is false"),
        (has_flags & ~personal & table.marked(Mark.NAME_IS_EMPTY),
         "customerName is empty as if masked, but dataExpired.personalData is false"),
        (output & (result != NO_RESULT) & table.marked(Mark.HAS_RESULT_VALUES),
         "dataExpired.output, but callResult has values"),
        (has_flags & ~output & (result == MASKED),
         "callResult is masked, but dataExpired.output is false"),
    ):  # fmt: skip
        yield from table.of_bodies("D1", wrong, text)


def _setting(table: LogTable, name: str) -> NDArray[np.int64]:
    """Return a number from the settings of each body, -1 where it is missing."""
    values = [getattr(one, name) for one in table.log.settings]
    filled = np.array([-1 if value is None else value for value in values], dtype=np.int64)
    of_body: NDArray[np.int64] = filled[table.body("setting")]
    return of_body


_FIXED = {"max_attempts": "maxAttempts", "retry_interval": "retryInterval",
          "start_at": "scheduleStartAt", "end_at": "scheduleEndAt",
          "windows": "scheduleDateTimeWindow", "name": "the campaign's name"}  # fmt: skip
"""Settings that do not change after the start of a campaign."""


@rule("C1 C2 C9", "bodies")
def settings_of_bodies(table: LogTable) -> Iterator[Violation]:
    """Check settings: possible in a schedule request (C9), constant (C1), consistent (C2)."""
    of_campaign: dict[int, Settings] = {}
    wrong: dict[str, list[tuple[int, str]]] = {"C2": [], "C9": [], "C1": []}
    for row, one in _first_settings(table):
        if one.status is not None and one.status not in set(CampaignStatus):
            wrong["C2"].append((row, f"the campaign's status is {one.status}, which is none"))
        if one.status in {CampaignStatus.DRAFT, CampaignStatus.SCHEDULED}:
            wrong["C2"].append((row, f"a call has ended, but its campaign is {one.status}"))
        wrong["C9"] += [(row, text) for text in _refused(one)]
        # Compared with the first settings, so that a change is one finding and not two.
        before = of_campaign.setdefault(int(table.body("campaign")[row]), one)
        for name, field in _FIXED.items():
            old, new = getattr(before, name), getattr(one, name)
            if None not in {old, new} and old != new:
                text = f"{field} changed: {_written(name, old)}, then {_written(name, new)}"
                wrong["C1"].append((row, text))
    for number, texts in wrong.items():
        yield from _of_texts(table, number, texts)


def _first_settings(table: LogTable) -> Iterator[tuple[int, Settings]]:
    """Yield the settings of the log, each with the first body that shows it."""
    setting = table.body("setting")
    for row in np.sort(np.unique(setting, return_index=True)[1]).tolist():
        yield row, table.log.settings[setting[row]]


def _of_texts(table: LogTable, number: str, texts: list[tuple[int, str]]) -> Iterator[Violation]:
    """Yield a violation per body and text, up to the limit per rule."""
    for index in table.listed(number, range(len(texts))):
        row, content = texts[index]
        # Passed as a value and not as the template: names in the text may contain braces.
        yield from table.of_bodies(number, [row], "{content}", content={row: content})


def _written(name: str, value: Any) -> str:
    if name.endswith("_at"):
        return instant(value)
    return _week(value) if name == "windows" else str(value)


def _week(windows: tuple[WeekdayRange, ...]) -> str:
    """Return time windows as texts show them: each range once, in order."""
    return ", ".join(
        f"day {day} {range_text((start, end))}" for day, start, end in sorted(set(windows))
    )


def _refused(one: Settings) -> Iterator[str]:
    """Yield a text for each setting that no schedule request can have (C9)."""
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


# -- bodies of a call ------------------------------------------------------------------------------


@rule("A5 W1 F1 F2 W4", "bodies")
def bodies_of_a_call(table: LogTable) -> Iterator[Violation]:
    """Check that the bodies of each call agree with one another."""
    call, result, line = table.body("call"), table.body("result"), table.body("line")
    order = np.lexsort((line, call))
    first = pd.Series(order, index=order).groupby(call[order]).transform("first")
    first_of = first.reindex(range(len(call))).to_numpy()
    for name, what, number in (("session", "sessionId", "A5"), ("status", "callStatus", "W1"),
                               ("started_at", "callStartedAt", "F1"),
                               ("ended_at", "callEndedAt", "F1"),
                               ("campaign", "the campaign", "W1")):  # fmt: skip
        values = table.body(name)
        text = f"{what} is not the same as in line {{first}} of the same call"
        yield from table.of_bodies(number, values != values[first_of], text, first=line[first_of])
    # Person 0 is masked, and may be anyone.
    person = pd.Series(table.body("person")).where(table.body("person") != 0)
    yield from table.of_bodies(
        "W4", (person.notna() & (person != person.groupby(call).transform("first"))).to_numpy(),
        "the recipient is not the same as in an earlier body of the call",
    )  # fmt: skip
    session = table.body("session")
    owner = pd.Series(call).groupby(session).transform("first").to_numpy()
    text = "the sessionId is that of another call"
    yield from table.of_bodies("F2", (session != 0) & (owner != call), text)

    again = table.marked(Mark.RE_ANALYSIS)
    plain = ~again & (result != NO_RESULT) & (result != MASKED)
    digest = pd.Series(table.body("digest")).where(plain)
    yield from table.of_bodies(
        "W1", (plain & (digest != digest.groupby(call).transform("first"))).to_numpy(),
        "a second result of the call that differs and does not say isReAnalysis",
    )  # fmt: skip
    good = np.isin(call, call[~again & (result == ANALYZED)])
    fallback = again & ((result == NONE_SPOKE) | (result == UNAVAILABLE))
    text = "a re-analysis replaces a good result by the fallback"
    yield from table.of_bodies("A5", fallback & good, text)


@rule("A5 D2 W3", "bodies", "posts")
def instants_of_posts(table: LogTable) -> Iterator[Violation]:
    """Check the order of a call's end, its first result, its re-analyses and its masks."""
    sent, ended, again = (
        table.body("sent_at"),
        table.body("ended_at"),
        table.marked(Mark.RE_ANALYSIS),
    )
    timed = sent != NOT_HAPPENED
    wrong = timed & (ended != NOT_HAPPENED) & (sent < ended - CLOCKS_MS)
    text = "sent at {sent_at}, before the call ended at {ended_at}"
    yield from table.of_bodies("W3", wrong, text, "sent_at")
    first = _earliest(table, timed & ~again)
    wrong = again & timed & (first != FAR) & (sent < first - LATE_MS)
    text = "a re-analysis sent at {sent_at}, before the first result at {first_at}"
    yield from table.of_bodies("A5", wrong, text, "sent_at", first_at=first)
    for mark, name in ((Mark.AUDIO_EXPIRED, "audio"), (Mark.PERSONAL_EXPIRED, "personalData"),
                       (Mark.OUTPUT_EXPIRED, "output")):  # fmt: skip
        expired = table.marked(mark)
        gone = _earliest(table, expired & timed)
        # Only a re-analysis is made when it is sent; a first result may have been posted late
        wrong = again & timed & ~expired & (sent > gone + CLOCKS_MS)
        text = f"dataExpired.{name} is false, but was true at {{gone_at}}"
        yield from table.of_bodies("D2", wrong, text, "sent_at", gone_at=gone)


def _earliest(table: LogTable, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the instant of the first POST of each body's call among chosen bodies, or `FAR`."""
    sent = pd.Series(np.where(chosen, table.body("sent_at"), FAR))
    earliest: NDArray[np.int64] = sent.groupby(table.body("call")).transform("min").to_numpy()
    return earliest


@rule("W2 W4", "bodies", "posts")
def posts_of_a_result(table: LogTable) -> Iterator[Violation]:
    """Check the POSTs of one result: none after a success, waits, and equal bodies."""
    post, again = table.body("post"), table.marked(Mark.RE_ANALYSIS)
    # POSTs above number 3 were requested by a client; other rules hold for them.
    rows = np.flatnonzero((post >= 1) & (post <= 3))
    call, sent = table.body("call"), table.body("sent_at")
    order = rows[np.lexsort((post[rows], sent[rows], again[rows], call[rows]))]
    one, two = order[:-1], order[1:]
    apart = sent[two] - sent[one]
    follows = (call[one] == call[two]) & (again[one] == again[two]) & (post[two] == post[one] + 1)
    follows &= apart <= MINUTE  # a later POST may belong to another re-analysis
    one, two, apart = one[follows], two[follows], apart[follows]
    answered = accepted(table.body("response")[one])
    text = "a POST after one that was answered with 2xx"
    yield from table.of_bodies("W2", two[answered], text, "sent_at")
    soon = apart < np.array([0, *WAITS_MS])[np.clip(post[one], 0, 2)]
    text = "a POST too soon after the previous one"
    yield from table.of_bodies("W2", two[soon], text, "sent_at")
    for name, what in (("setting", "campaign"), ("shown_attempts", "callAttempt"),
                       ("shown_status", "latestCallStatus"), ("digest", "callResult")):  # fmt: skip
        values = table.body(name)
        text = f"{what} is not the same as in the previous POST of the same result"
        yield from table.of_bodies("W4", two[values[one] != values[two]], text, "sent_at")


# -- bodies and calls ------------------------------------------------------------------------------


@rule("C3", "bodies", "posts")
def campaigns_that_go_on(table: LogTable) -> Iterator[Violation]:
    """Check that a campaign that a body has shown as final stays final."""
    over = table.over[table.body("campaign")]
    # A body may be posted, or stored, long after it was made, but never before its call ended
    wrong = (table.body("ended_at") > over) & ~table.is_shown_final
    text = "the campaign is not final, but was over at {over_at}"
    yield from table.of_bodies("C3", wrong, text, over_at=over)


@rule("P5 W4", "bodies")
def attempts_shown(table: LogTable) -> Iterator[Violation]:
    """Check that callAttempt and latestCallStatus fit the calls that have ended."""
    call, shown = table.body("call"), table.body("shown_attempts")
    latest, safe = table.body("shown_status"), np.maximum(call, 0)
    in_sequence = np.zeros(len(table.person), dtype=bool)
    in_sequence[table.sequence] = True
    known = (call >= 0) & in_sequence[safe] & (shown >= 0)
    made = table.attempts[safe]
    text = "callAttempt is {shown_attempts}, but {made} attempts had ended"
    yield from table.of_bodies("P5", known & (shown < made), text, made=made)
    # If callAttempt counts no later attempt, the latest status is the end of the body's own call.
    own = table.status[safe]
    newest = known & table.is_counted[safe] & (shown == made) & ~table.is_reached[safe]
    yield from table.of_bodies(
        "W4", newest & np.isin(latest, [*_UNREACHED, *_ANSWERED]) & (latest != own),
        "latestCallStatus is {shown_status}, but the latest call that callAttempt "
        "{shown_attempts} counts ended {status}",
    )  # fmt: skip


@rule("W1 W4 F1", "bodies")
def bodies_and_table(table: LogTable) -> Iterator[Violation]:
    """Check that calls of a table have webhooks exactly where they must, with equal values."""
    if not table.is_table:
        return
    call, sent, ended = table.body("call"), table.body("sent_at"), table.ended
    known, safe = (call >= 0) & (sent != NOT_HAPPENED), np.maximum(call, 0)
    yield from table.of_bodies("W1", call < 0, "a webhook of a call that the table lacks")
    for name, column, number in (("status", table.status, "W4"), ("ended_at", ended, "F1"),
                                 ("started_at", table.started, "F1")):  # fmt: skip
        text = f"{name} is not the same as in the table of calls"
        differs = (call >= 0) & (table.body(name) != column[safe])
        yield from table.of_bodies(number, differs, text)

    has_body = np.isin(np.arange(len(ended)), call)
    delay = (sent[known] - ended[call[known]]).max(initial=0)
    # A webhook is demanded only if the log goes on for the longest delay seen after the call's end.
    soon = (ended != NOT_HAPPENED) & (ended + delay < sent[known].max(initial=0))
    analysis = table.log.calls["analysis"].astype("str")
    has_result = analysis.isin(["analyzed", "no_conversation", "unavailable"]).to_numpy()
    owed = table.is_unanswered | table.is_lost | has_result
    text, values = "ended {status}, but no webhook reports it", {"status": names_of(table.status)}
    yield from table.of_calls("W1", owed & soon & ~has_body, ended, text, **values)
    dropped = table.has_status(CallStatus.CANCELLED) & ~table.is_lost
    none = analysis.isin(["not_analyzed", "failed"]).to_numpy() | dropped
    text = "a webhook of a call that was never dialled, or has no result of an analysis"
    yield from table.of_calls("W1", none & has_body, ended, text)


# -- bodies and scenario ---------------------------------------------------------------------------

_OF_TYPE: dict[str, object] = {"text": "", "number": 0, "boolean": True, "null": None, "other": []}


@rule("C1", "bodies", "scenario")
def parameters_of_people(table: LogTable) -> Iterator[Violation]:
    """Check that agentParams fit the agent's paramsSchema.

    Retention removes values, not keys, so bodies of masked people are left out.
    """
    campaign, shape = table.body("campaign"), table.body("shape")
    masked = table.marked(Mark.PERSONAL_EXPIRED) | table.marked(Mark.TEL_MASKED)
    for code, block in enumerate(table.blocks):
        if block is None or not block.agent.params_schema:
            continue
        here = (campaign == code) & ~masked
        for one in np.unique(shape[here]).tolist():
            params = {key: _OF_TYPE[kind] for key, kind in table.log.shapes[one]}
            faults = check_agent_params(block.agent.params_schema, params)
            if faults:
                text = "; ".join(f"agentParams: {fault.message}" for fault in faults)
                rows = np.flatnonzero(here & (shape == one))
                yield from _of_texts(table, "C1", [(int(row), text) for row in rows])


@rule("F3", "bodies", "scenario")
def settings_of_the_scenario(table: LogTable) -> Iterator[Violation]:
    """Check that the settings in bodies equal the settings of the scenario's request."""
    assert table.expected is not None
    expected, wrong = table.expected, list[tuple[int, str]]()
    for row, one in _first_settings(table):
        code = int(table.body("campaign")[row])
        owner, block = expected.owner(code), expected.blocks[code]
        if owner is None or block is None:
            continue
        if one.max_concurrent_calls not in {None, *owner.settings.limits}:
            lines = ", ".join(map(str, sorted(owner.settings.limits)))
            text = f"maxConcurrentCalls is {one.max_concurrent_calls}, but {lines} in the scenario"
            wrong.append((row, text))
        request = expected.request(code)
        if request is None:
            continue
        for field, shown, asked in (
            ("maxAttempts", one.max_attempts, request.max_attempts),
            ("retryInterval", one.retry_interval, request.retry_interval),
            ("scheduleEndAt", one.end_at or "none", request.end_date_time or "none"),
            ("sipAccountId", one.sip_account_id or "none", request.sip_account_id or "none"),
            ("scheduleDateTimeWindow", one.windows and _week(one.windows),
             _week(request.weekday_ranges)),
        ):  # fmt: skip
            if shown is not None and shown != asked:
                wrong.append((row, f"{field} is {shown}, but {asked} in the scenario"))
    yield from _of_texts(table, "F3", wrong)


FROM_THE_START_MS = MINUTE  # from a campaign's start to the first end of a call in a whole log
SILENT_SHARE = 0.05  # largest share of answered calls without a webhook (A2, A4) that is no finding


@rule("C1", "scenario")
def strangers(table: LogTable) -> Iterator[Violation]:
    """Check that only campaigns of the scenario and people of their lists appear."""
    calls = table.log.calls
    tels = calls["tel"].astype("str")
    known = (tels.notna() & ~calls["masked"]).to_numpy()
    for code, (one, block) in enumerate(zip(table.log.campaigns, table.blocks, strict=True)):
        here = table.campaign == code
        if block is None:
            rows, text = np.flatnonzero(here)[:1], "the scenario has no campaign {name}"
            names = np.full(len(here), one.name or one.id, dtype=object)
            yield from table.of_calls("C1", rows, table.ended, text, name=names)
            continue
        wrong, text = here & known, "called {tel}, whom the campaign does not list"
        wrong &= ~tels.isin([*block.people.tels()]).to_numpy()
        yield from table.of_calls("C1", wrong, table.ended, text, tel=tels.to_numpy())
        wrong = here & (table.recipient >= block.people.count)
        text = f"called recipient {{index}} of a list of {block.people.count}, counted from 0"
        yield from table.of_calls("C1", wrong, table.ended, text, index=table.recipient)


@rule("W1", "ended")
def earlier_calls(table: LogTable) -> Iterator[Violation]:
    """Check that the calls before a person's last one are in the log.

    A table numbers a person's calls; bodies show how many attempts have ended.
    """
    missing = np.zeros(len(table.person), dtype=np.int64)
    kind, number = (
        ("calls", table.call_no) if table.is_table else ("attempts", table.shown_attempts)
    )
    order = table.sequence
    if not table.is_table:
        order = order[table.is_counted[order] & (number[order] > 0)]
    people = pd.DataFrame({"person": table.person[order], "number": number[order], "call": order})
    groups = people.groupby("person")
    last = groups.tail(1)["call"].to_numpy()
    first = groups["number"].transform("first")
    # Attempts before the beginning of the log, or in a history, are not missing.
    begins = np.array([table.is_table or _has_the_start(table, code)
                       for code in range(len(table.campaigns))])  # fmt: skip
    before = np.where(begins[table.campaign[order]], 0, first - 1)
    lacks = people["number"] - groups.cumcount() - 1 - before
    missing[order] = lacks.groupby(people["person"]).cummax().to_numpy()
    text = (
        f"{kind[:-1]} {{number}} of this person, but the log lacks {{missing}} of the {kind} before"
    )
    values = {"number": number, "missing": missing}
    yield from table.of_calls("W1", last[missing[last] > 0], table.ended, text, **values)


def _has_the_start(table: LogTable, code: int) -> bool:
    """Return True if the log has its campaign from the start, and no person a history.

    A log cut at an instant lacks the attempts before it, and `callAttempt` counts a history. Only a
    scenario shows that there is no history.
    """
    block = table.blocks[code]
    facts = table.campaigns[code]
    if block is None or block.continues or facts.start_at is None or facts.hours is None:
        return False
    opens = int(facts.hours.next_open(np.array([facts.start_at]))[0])
    ended = table.ended[(table.campaign == code) & (table.ended != NOT_HAPPENED)]
    return int(ended.min(initial=FAR)) <= opens + FROM_THE_START_MS


@rule("W1", "scenario", "created")
def people_without_a_call(table: LogTable) -> Iterator[Violation]:
    """Check that a table has a call for each person of the scenario's list."""
    for code, (facts, block) in enumerate(zip(table.campaigns, table.blocks, strict=True)):
        if block is not None and not block.continues and (unseen := _never_seen(table, code)):
            text = f"{unseen:,} people of the scenario's list have no call at all"
            at = table.created[table.campaign == code].min(initial=FAR)
            yield of_campaign("W1", facts, at, text)


@rule("W1", "bodies")
def results_owed(table: LogTable) -> Iterator[Violation]:
    """Check that a completed campaign does not leave too many people without a final result.

    Some answered calls send no webhook (A2, A4), so a few people may lack theirs.
    """
    if table.is_table:
        return
    completed = np.array(
        [one.status == CampaignStatus.COMPLETED for one in table.log.settings], dtype=bool
    )
    over = {*table.body("campaign")[completed[table.body("setting")]].tolist()}
    order = table.sequence[table.is_counted[table.sequence]]
    newest = order[np.append(np.diff(table.person[order]) != 0, True)[: len(order)]]
    for code, facts in enumerate(table.campaigns):
        if code in over and code not in table.unsure:
            here = newest[table.campaign[newest] == code]
            yield from _results_of(table, code, facts, here)


def _results_of(
    table: LogTable, code: int, facts: CampaignFacts, newest: Indices
) -> Iterator[Violation]:
    seen = int(table.is_reached[newest].sum())
    again = ~table.is_reached[newest] & (table.shown_attempts[newest] < (facts.max_attempts or 0))
    open_ended = int(again.sum())
    unseen = _never_seen(table, code) if _has_the_start(table, code) else 0
    rate = max(SILENT_SHARE, 0 if table.expected is None else _silent(table.expected, code))
    usual = seen * rate / (1 - rate) if rate < 1 else FAR
    if open_ended + unseen > usual + 4 * sqrt(usual) + 1:
        text = f"the campaign is COMPLETED, but {open_ended:,} people have no final result"
        if unseen:
            text += f", and {unseen:,} of the scenario's list no call at all"
        at = table.ended[table.campaign == code].max()
        yield of_campaign("W1", facts, at, f"{text}: results are missing")


def _never_seen(table: LogTable, code: int) -> int:
    """Return the number of people of the scenario's list who have no call in the log."""
    block = table.blocks[code]
    here = table.campaign == code
    if block is None or block.schedule is None or block.schedule.remove_duplicates:
        return 0
    masked = int(table.log.calls["masked"].to_numpy()[here].sum())  # each may be a person not seen
    if "position" in table.log.columns:
        return int(block.people.count - len(np.unique(table.recipient[here])))
    seen = set(pd.unique(table.log.calls["tel"].astype("str")[here]))
    return max(0, len(set(block.people.tels()) - seen) - masked)


def _silent(expected: Expected, code: int) -> float:
    """Return the share of a campaign's answered calls that send no webhook (A2, A4)."""
    block = expected.blocks[code]
    behaviours = expected.world.scenario.behaviours
    if block is None or block.agent.behaviour not in behaviours:
        return 0.0
    rates = behaviours[block.agent.behaviour].rates
    return rates.agent_error + rates.not_recorded + rates.analysis_failed
