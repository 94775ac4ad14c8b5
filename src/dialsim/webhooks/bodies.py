"""Webhook bodies: plain dicts in the interface's order, with the data visible when sent (W4, D1,
D2).

`dialsim run`, a sandbox and later queries all use this module. Callers serialize a body with
orjson.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import agent_id, call_ids, session_ids
from dialsim.engine.log_reader import CALL_STATUSES, ENDS, NOT_HAPPENED, TO_STATUS, Calls
from dialsim.engine.trace import CHANGES, Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.model import MOST_EXACT
from dialsim.interface.payload import (
    FAILED_MESSAGE,
    MASKED_NAME,
    NO_CONVERSATION,
    QUEUE_TIMEOUT_MESSAGE,
    UNKNOWN,
    FileKind,
    agent_json,
    campaign_json,
    data_expired,
    links,
    mask_agent_params,
    mask_call_result,
    mask_tel,
)
from dialsim.scenario.organization import Analysis, AnalysisField, Retention
from dialsim.scenario.people import People
from dialsim.webhooks.messages import (
    FOREVER,
    VERDICTS,
    Messages,
    Verdict,
    change_sequence,
    row_sequence,
    sequence,
)

AUDIO, PERSONAL_DATA, OUTPUT = 1, 2, 4
ALL_EXPIRED = AUDIO | PERSONAL_DATA | OUTPUT  # C8: flags of every call of a deleted campaign
DATA_EXPIRED = tuple(
    data_expired(
        audio=bool(flags & AUDIO),
        personal_data=bool(flags & PERSONAL_DATA),
        output=bool(flags & OUTPUT),
    )
    for flags in range(ALL_EXPIRED + 1)
)
"""JSON of the three flags of `dataExpired`, indexed by their bits."""


def expired(
    retention: Retention | None, ended_at: NDArray[np.int64], at: NDArray[np.int64] | int
) -> NDArray[np.int8]:
    """Return the flags of `dataExpired` at `at` (ms) as bits, for calls that ended at `ended_at`
    (D2). A flag is set once the retention span of its data has passed since the end of the call.
    Data of calls without an end (`NOT_HAPPENED`), or without a policy, do not expire.
    """
    flags, policy = np.zeros(len(ended_at), dtype=np.int8), retention or Retention()
    # Subtracting NOT_HAPPENED, the smallest integer, would overflow.
    age = np.where(ended_at == NOT_HAPPENED, -1, at - np.maximum(ended_at, 0))
    spans = {AUDIO: policy.audio, PERSONAL_DATA: policy.personal_data, OUTPUT: policy.output}
    for flag, span in spans.items():
        if span is not None:
            flags[age >= span] |= flag
    return flags


class VisiblePerson(NamedTuple):
    """Recipient as shown in payloads."""

    tel: str
    customer_name: str | None
    agent_params: Mapping[str, object]

    def masked(self) -> VisiblePerson:
        """Return the recipient after retention has removed personal data (D1)."""
        return VisiblePerson(mask_tel(self.tel), MASKED_NAME, mask_agent_params(self.agent_params))


def visible_people(
    people: People, recipients: NDArray[np.integer], masked: NDArray[np.bool_]
) -> list[VisiblePerson]:
    """Return recipients given by index, masked where `masked` is True."""
    columns = (
        people.tels(recipients),
        people.customer_names(recipients),
        map(people.agent_params, recipients.tolist()),
    )
    shown = [VisiblePerson(*person) for person in zip(*columns, strict=True)]
    for row in np.flatnonzero(masked).tolist():
        shown[row] = shown[row].masked()
    return shown


class Setting(NamedTuple):
    """A campaign's status and its organization's limit from a point of the sequence on."""

    since: int
    status: CampaignStatus
    limit: int


@dataclass(frozen=True, slots=True)
class VisibleState:
    """Data shown in each message of a campaign, at the end of the instant at which it is sent.

    `call_attempt` and `latest_call_status` (an index into `CALL_STATUSES`) are the recipient's.
    `setting` is an index into `settings`, the states of the campaign's settings. `expired` are the
    three flags as bits: 1 audio, 2 personal data, 4 output.
    """

    call_attempt: NDArray[np.int32]
    latest_call_status: NDArray[np.int8]
    setting: NDArray[np.int64]
    expired: NDArray[np.int8]
    settings: Sequence[Setting]

    def __getitem__(self, rows: NDArray[np.int64]) -> VisibleState:
        return VisibleState(
            self.call_attempt[rows],
            self.latest_call_status[rows],
            self.setting[rows],
            self.expired[rows],
            self.settings,
        )


Statuses = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int8]]
"""Function that returns statuses of calls at instants (ms), as indices into `CALL_STATUSES`."""


def visible_state(
    trace: Trace, calls: Calls, messages: Messages, statuses: Statuses | None = None
) -> VisibleState:
    """Return the data shown in each message when it is sent (W4).

    `statuses` looks up statuses of calls while a run goes on; it is None for a finished run.
    """
    sent = sequence(trace, messages.sent_at, messages.turn)
    # The instant alone decides which call is a recipient's newest, and if it has ended: no command
    # creates a second call of a recipient, or ends a call within the command's instant (P1).
    newest = calls.newest_at(calls.recipient[messages.call], messages.sent_at)
    if statuses is None:
        status = _status(trace, calls, newest, sent)
    else:
        status = statuses(newest, messages.sent_at)
    ended = ENDS[calls.last_kind[newest]] & (calls.ended_at[newest] <= messages.sent_at)
    states = _settings(trace, calls)
    since = [setting.since for setting in states]
    return VisibleState(
        call_attempt=calls.attempts_before[newest] + ended,
        latest_call_status=status,
        setting=np.searchsorted(since, sent, side="right") - 1,
        expired=_expired(trace, calls, messages, sent),
        settings=states,
    )


def _settings(trace: Trace, calls: Calls) -> list[Setting]:
    """Return all states of the campaign's settings that a payload can show, sorted by `since`."""
    part = trace.campaign(calls.organization, calls.campaign)
    statuses = [(row.at + row.turn, row.to_status) for row in part.changes]
    limits = [(row.at + row.turn, row.limit) for row in part.limits]
    status, limit, states = CampaignStatus.DRAFT, 0, {}
    for point in sorted({since for since, _ in (*statuses, *limits)}):
        # Reversed: of several changes at one point the last one is visible.
        status = next((to for since, to in reversed(statuses) if since == point), status)
        limit = next((to for since, to in reversed(limits) if since == point), limit)
        states[point] = Setting(point, status, limit)
    return [*states.values()]


def _deleted(trace: Trace, calls: Calls) -> int:
    """Return the point of the sequence at which the campaign was deleted (C8); FOREVER if never."""
    change = trace.campaign(calls.organization, calls.campaign).deleted
    return FOREVER if change is None else change.at + change.turn


def _status(
    trace: Trace, calls: Calls, which: NDArray[np.int64], sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Return the status of each call `which` at a point of the sequence after its creation."""
    status = calls.status[which]
    earlier = np.flatnonzero(change_sequence(trace, calls)[which] > sent)
    if len(earlier):
        status[earlier] = _status_then(trace, calls, which[earlier], sent[earlier])
    return status


def _status_then(
    trace: Trace, calls: Calls, which: NDArray[np.int64], sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Return the status of each call at a point before its last change, from rows of the log."""
    changed = row_sequence(trace, calls)
    wanted = np.zeros(len(calls.call), dtype=bool)
    wanted[which] = True
    rows = np.flatnonzero(wanted[calls.row_call])
    rows = rows[np.argsort(calls.row_call[rows], kind="stable")]
    row = np.searchsorted(calls.row_call[rows], which)
    active = np.arange(len(which))
    # The next row of each call exists: the last row of the call is later than `sent`.
    while len(active):
        active = active[changed[rows[row[active] + 1]] <= sent[active]]
        row[active] += 1
    return TO_STATUS[calls.rows.kind[rows[row]]]


def _expired(
    trace: Trace, calls: Calls, messages: Messages, sent: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Return the three flags of each message's call when it is sent."""
    owner = trace.campaign(calls.organization, calls.campaign).owner
    flags = expired(owner.settings.retention, calls.ended_at[messages.call], messages.sent_at)
    flags[sent >= _deleted(trace, calls)] = ALL_EXPIRED
    return flags


def instants_json(at: NDArray[np.int64]) -> list[str | None]:
    """Format instants (ms) as ISO 8601, like `2026-01-05T02:00:00.000Z`; NOT_HAPPENED as None."""
    # numpy reads NOT_HAPPENED as NaT
    texts = np.datetime_as_string(at.view("datetime64[ms]"), timezone="UTC").tolist()
    return [None if text == "NaT" else text for text in texts]


def duration_json(started_at: int, ended_at: int) -> str | None:
    """Format a conversation's duration as seconds with three decimals (F1); None without one."""
    if NOT_HAPPENED in (started_at, ended_at):
        return None
    seconds, ms = divmod(ended_at - started_at, 1000)
    return f"{seconds}.{ms:03}"


# Indexed by kind of a call's last change.
_END_STATUSES = [CALL_STATUSES[code].value for code in TO_STATUS]
_ERROR_MESSAGES = [
    QUEUE_TIMEOUT_MESSAGE
    if change.cause == "queue_timeout"
    else FAILED_MESSAGE
    if change.to_status is CallStatus.FAILED
    else None
    for change in CHANGES
]


class Bodies:
    """Builder of the bodies of one campaign's messages."""

    def __init__(self, trace: Trace, block: CampaignBlock) -> None:
        self._trace = trace
        self._block = block
        self._results = CallResultMaker(block.agent.analysis)
        agents = trace.world.organizations[block.organization].settings.agents
        # The agent's id is derived from its position in the file.
        position = next(p for p, other in enumerate(agents) if other.name == block.agent.name)
        self._agent = agent_json(
            block.agent.id or agent_id(trace.world.seed, block.organization, position),
            block.agent.name,
            block.agent.params_schema,
        )

    def of(self, messages: Messages, calls: Calls, state: VisibleState) -> Iterator[Body]:
        """Yield the body of each message; `state` is the data that its first POST shows."""
        # A generator, because there may be millions of bodies. Equal parts are shared between them.
        block, seed = self._block, self._trace.world.seed
        which = messages.call
        recipients, started_at, ended_at = (
            calls.recipient[which],
            calls.started_at[which],
            calls.ended_at[which],
        )
        address = seed, block.organization, block.position, recipients, calls.call[which]
        ids = call_ids(*address)
        is_masked = (state.expired & PERSONAL_DATA) != 0
        has_output = (state.expired & OUTPUT) == 0
        has_recording = (started_at != NOT_HAPPENED) & ((state.expired & AUDIO) == 0)
        has_transcript = (started_at != NOT_HAPPENED) & ~is_masked
        settings = {
            index: self._campaign(state.settings[index]) for index in {*state.setting.tolist()}
        }
        rows = zip(
            messages.result.tolist(),
            ids.astype(str).tolist(),
            session_ids(*address).astype(str).tolist(),
            calls.last_kind[which].tolist(),
            instants_json(started_at),
            instants_json(ended_at),
            map(duration_json, started_at.tolist(), ended_at.tolist()),
            visible_people(block.people, recipients, is_masked),
            state.call_attempt.tolist(),
            state.latest_call_status.tolist(),
            state.setting.tolist(),
            self._results.of(messages, ~has_output),
            self._links("recordings", messages.sent_at, ids, has_recording),
            self._links("transcripts", messages.sent_at, ids, has_transcript),
            state.expired.tolist(),
            strict=True,
        )
        return (
            {
                "type": "CALL_RESULT",
                "payload": {
                    "isReAnalysis": result > 0,
                    "agentName": block.agent.name,
                    "campaignName": block.name,
                    "call": {
                        "id": call_id,
                        "sessionId": session_id,
                        "callStatus": _END_STATUSES[kind],
                        "callStartedAt": started_at,
                        "callEndedAt": ended_at,
                        "callDuration": duration,
                        "errorMessage": _ERROR_MESSAGES[kind],
                    },
                    "recipient": {
                        "tel": person.tel,
                        "customerName": person.customer_name,
                        "callAttempt": attempt,
                        "latestCallStatus": CALL_STATUSES[status].value,
                        "agentParams": person.agent_params,
                    },
                    "agent": self._agent,
                    "campaign": settings[setting],
                    "callResult": call_result,
                    "recordUrl": record_url,
                    "transcriptFileUrl": transcript_url,
                    "dataExpired": DATA_EXPIRED[expired],
                },
            }
            for (
                result,
                call_id,
                session_id,
                kind,
                started_at,
                ended_at,
                duration,
                person,
                attempt,
                status,
                setting,
                call_result,
                record_url,
                transcript_url,
                expired,
            ) in rows
        )

    def _links(
        self,
        kind: FileKind,
        sent_at: NDArray[np.int64],
        ids: NDArray[np.bytes_],
        has_one: NDArray[np.bool_],
    ) -> list[str | None]:
        """Return links to files of calls; None for missing or expired files."""
        world, urls = self._trace.world, np.full(len(ids), None, dtype=object)
        rows = np.flatnonzero(has_one)
        public_url = world.scenario.service.public_url
        urls[rows] = links(public_url, kind, ids[rows], sent_at[rows], world.seed)
        made: list[str | None] = urls.tolist()
        return made

    def _campaign(self, setting: Setting) -> Body:
        block = self._block
        scheduled = self._trace.campaign(block.organization, block.position).scheduled
        # Without a schedule request the campaign would have no calls.
        assert scheduled is not None
        return campaign_json(
            block.id,
            block.name,
            status=setting.status,
            max_concurrent_calls=setting.limit,
            request=scheduled.request,
            start_at=scheduled.start_at,
        )


# -- the callResult of a body (interface, section 2.6); the wording of its texts is ours ---------

Body = dict[str, object]

_SUMMARY = "สนทนากับผู้รับสายเรียบร้อยแล้ว"
_SUMMARY_WITH_STEP = "สนทนากับผู้รับสายแล้ว ถึงขั้นตอน {step}"
_UNAVAILABLE_SUMMARY = "ไม่สามารถวิเคราะห์การสนทนานี้ได้"
_UNAVAILABLE_ERROR = "The conversation could not be analyzed."
_ERROR_DESCRIPTION = "Why there is no analysis"


class CallResultMaker:
    """Builder of the `callResult` of an agent's conversations."""

    def __init__(self, analysis: Analysis | None) -> None:
        analysis = analysis or Analysis()
        self._version = analysis.version
        self._steps = None if analysis.funnel is None else [step.step for step in analysis.funnel]
        # Made once: results that found the same value share its entry.
        self._items = {
            name: [_item(field, text) for text in field.values]
            for name, field in analysis.fields.items()
        }

    def of(self, messages: Messages, masked: NDArray[np.bool_]) -> Iterator[Body | None]:
        """Yield the results of messages, masked where retention has removed the output (D1)."""
        rows = zip(messages.verdict.tolist(), messages.found.tolist(), masked.tolist(), strict=True)
        for verdict, found, is_masked in rows:
            result = None if verdict < 0 else self.result(VERDICTS[verdict], found)
            yield mask_call_result(result) if is_masked and result is not None else result

    def result(self, verdict: Verdict, found: Sequence[int]) -> Body:
        """Return the result of a message; `found` is a row of `Analyses.found`."""
        if verdict is Verdict.NO_CONVERSATION:
            return _fallback(NO_CONVERSATION, NO_CONVERSATION, self._steps or [UNKNOWN])
        if verdict is Verdict.UNAVAILABLE:
            return _fallback(_UNAVAILABLE_SUMMARY, _UNAVAILABLE_ERROR, [UNKNOWN])
        reached, *chosen = found
        fixed: Body = {"callSummary": _SUMMARY}
        if self._steps is not None:
            step = self._steps[reached - 1] if reached else UNKNOWN
            if reached:
                fixed["callSummary"] = _SUMMARY_WITH_STEP.format(step=step)
            fixed["funnel"] = {"funnelFlow": self._steps, "value": step}
        pairs = zip(self._items.items(), chosen, strict=True)
        items = {name: entries[index] for (name, entries), index in pairs}
        custom = "postCallAnalyticsResult" if self._version == "v2" else "customizableAttr"
        return {"version": self._version, "fixedAttr": fixed, custom: items}


def _item(field: AnalysisField, text: str) -> Body:
    """Return a custom field with a value as an entry of the result, without absent properties."""
    item: Body = {"type": field.type, "value": _value(field, text), "required": field.required}
    if field.description is not None:
        item["description"] = field.description
    if field.enum_variant is not None:
        item["enumVariant"] = [*field.enum_variant]
    return item


def _value(field: AnalysisField, text: str) -> str | int | float | bool:
    """Convert a key under `values` to the type of its field on the wire."""
    if field.type == "boolean":
        return text == "true"
    if field.type != "number":
        return text
    number = float(text)
    is_exact = number.is_integer() and abs(number) <= MOST_EXACT
    # 5.0 in a file is 5 on the wire, as JavaScript writes it.
    return int(number) if is_exact else number


def _fallback(summary: str, error: str, flow: Sequence[str]) -> Body:
    """Return the result of a conversation without an analysis (A3)."""
    return {
        "version": "v2",
        "fixedAttr": {
            "callSummary": summary,
            "funnel": {"funnelFlow": flow, "value": UNKNOWN},
        },
        "postCallAnalyticsResult": {
            "error": {
                "type": "string",
                "value": error,
                "required": True,
                "description": _ERROR_DESCRIPTION,
                "enumVariant": None,
            }
        },
    }
