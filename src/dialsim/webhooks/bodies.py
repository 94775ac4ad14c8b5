"""Webhook bodies: plain dicts in the interface's order (sections 2.7 and 6.4; rules W4, D1).

There is one maker for what `dialsim run` writes, for what a sandbox sends, and for what is looked
at later. Whoever writes or sends a body dumps it with orjson.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import CALL_STATUSES, NEVER, TO_STATUS, Calls
from dialsim.engine.identity import agent_id, call_ids, session_ids
from dialsim.engine.trace import CHANGES, Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface.model import MOST_EXACT
from dialsim.interface.payload import (
    FAILED_MESSAGE,
    QUEUE_TIMEOUT_MESSAGE,
    AnalysisJson,
    Field,
    FileKind,
    Value,
    agent_json,
    campaign_json,
    links,
    mask_call_result,
    unavailable,
)
from dialsim.interface.status import CallStatus
from dialsim.scenario.agent import Analysis, AnalysisField
from dialsim.webhooks.messages import Content, Messages
from dialsim.webhooks.visible_state import (
    AUDIO,
    DATA_EXPIRED,
    OUTPUT,
    PERSONAL_DATA,
    Setting,
    VisibleState,
    visible_people,
)

Body = dict[str, object]


def instants_json(at: NDArray[np.int64]) -> list[str | None]:
    """Write instants (ms) as ISO 8601 texts such as `2026-01-05T02:00:00.000Z`; NEVER as None."""
    # numpy reads NEVER as NaT
    texts = np.datetime_as_string(at.view("datetime64[ms]"), timezone="UTC").tolist()
    return [None if text == "NaT" else text for text in texts]


def duration_json(started_at: int, ended_at: int) -> str | None:
    """Write a conversation's length as seconds with three decimals (F1); None if it has none."""
    if NEVER in (started_at, ended_at):
        return None
    seconds, ms = divmod(ended_at - started_at, 1000)
    return f"{seconds}.{ms:03}"


class CallResultMaker:
    """The `callResult` of an agent's conversations."""

    def __init__(self, analysis: Analysis | None) -> None:
        analysis = analysis or Analysis()
        self._values = [
            [_value_json(field, text) for text in field.values]
            for field in analysis.fields.values()
        ]
        self._form = AnalysisJson(
            version=analysis.version,
            funnel=None if analysis.funnel is None else tuple(s.step for s in analysis.funnel),
            fields=tuple(
                Field(name, field.type, field.required, field.description, field.enum_variant)
                for name, field in analysis.fields.items()
            ),
        )

    def of(self, messages: Messages, masked: NDArray[np.bool_]) -> Iterator[Body | None]:
        """The results of messages; masked where retention removed the output (D1)."""
        rows = zip(messages.content.tolist(), messages.found.tolist(), masked.tolist(), strict=True)
        for content, found, is_masked in rows:
            result = self._result(content, found)
            yield mask_call_result(result) if is_masked and result is not None else result

    def _result(self, content: int, found: list[int]) -> Body | None:
        """One result; `found` is a row of `Analyses.found`."""
        match content:
            case Content.NOTHING:
                return None
            case Content.NO_CONVERSATION:
                return self._form.no_conversation()
            case Content.UNAVAILABLE:
                return unavailable()
        steps, *chosen = found
        return self._form.result(
            self._form.funnel[steps - 1] if self._form.funnel is not None and steps else None,
            [values[position] for values, position in zip(self._values, chosen, strict=True)],
        )


def _value_json(field: AnalysisField, text: str) -> Value:
    """A value as its field's type has it on the wire, from its key under `values`."""
    if field.type == "boolean":
        return text == "true"
    if field.type != "number":
        return text
    number = float(text)
    is_exact = number.is_integer() and abs(number) <= MOST_EXACT
    return int(number) if is_exact else number


# by kind of change, the last one of a call
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
    """Makes the bodies of one campaign's messages, any of them at a time."""

    def __init__(self, trace: Trace, block: CampaignBlock) -> None:
        self._trace = trace
        self._block = block
        self._results = CallResultMaker(block.agent.analysis)
        agents = trace.world.organizations[block.organization].settings.agents
        position = next(p for p, other in enumerate(agents) if other.name == block.agent.name)
        self._agent = agent_json(
            block.agent.id or agent_id(trace.world.seed, block.organization, position),
            block.agent.name,
            block.agent.params_schema,
        )

    def of(self, messages: Messages, calls: Calls, state: VisibleState) -> Iterator[Body]:
        """Make the bodies of messages about these calls; `state` is what their first POSTs see.

        They come one by one, since there may be millions; parts that are alike are shared.
        """
        block, seed = self._block, self._trace.world.seed
        told = messages.call
        who, started_at, ended_at = (
            calls.recipient[told],
            calls.started_at[told],
            calls.ended_at[told],
        )
        place = seed, block.organization, block.position, who, calls.call[told]
        ids = call_ids(*place)
        is_masked = (state.expired & PERSONAL_DATA) != 0
        has_output = (state.expired & OUTPUT) == 0
        has_recording = (started_at != NEVER) & ((state.expired & AUDIO) == 0)
        has_transcript = (started_at != NEVER) & ~is_masked
        settings = {
            index: self._campaign(state.settings[index]) for index in {*state.setting.tolist()}
        }
        rows = zip(
            messages.result.tolist(),
            ids.astype(str).tolist(),
            session_ids(*place).astype(str).tolist(),
            calls.last_kind[told].tolist(),
            instants_json(started_at),
            instants_json(ended_at),
            map(duration_json, started_at.tolist(), ended_at.tolist()),
            visible_people(block.people, who, is_masked),
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
        """Links to files of calls; None where there is none, or none any more."""
        world, urls = self._trace.world, np.full(len(ids), None, dtype=object)
        rows = np.flatnonzero(has_one)
        public_url = world.scenario.service.public_url
        urls[rows] = links(public_url, kind, ids[rows], sent_at[rows], world.seed)
        made: list[str | None] = urls.tolist()
        return made

    def _campaign(self, setting: Setting) -> Body:
        block = self._block
        scheduled = self._trace.campaign(block.organization, block.position).scheduled
        assert scheduled is not None  # otherwise it would have no calls
        return campaign_json(
            block.id,
            block.name,
            status=setting.status,
            max_concurrent_calls=setting.limit,
            request=scheduled.request,
            start_at=scheduled.start_at,
        )
