"""Columns as the JSON texts that payloads are put together from.

CallResultMaker: an agent's possible results, and the `callResult` of messages as JSON text.

Bodies: the bytes of many messages' payloads, put together from fragments (W4, D1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from typing import Literal, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.calls import CALL_STATUSES, NEVER, TO_STATUS, Calls
from dialsim.engine.identity import agent_id, call_ids, session_ids
from dialsim.engine.trace import CHANGES, Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface.masks import mask_call_result
from dialsim.interface.model import MOST_EXACT
from dialsim.interface.payload import (
    FAILED_MESSAGE,
    QUEUE_TIMEOUT_MESSAGE,
    AnalysisJson,
    Field,
    Payloads,
    Value,
    agent_part,
    campaign_part,
    links,
    unavailable,
)
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.scenario.agent import Analysis, AnalysisField
from dialsim.webhooks.messages import Content, Messages
from dialsim.webhooks.visible_state import (
    AUDIO,
    DATA_EXPIRED,
    OUTPUT,
    PERSONAL_DATA,
    Persons,
    Setting,
    VisibleState,
)

_DAY, _MINUTE = 86_400_000, 60_000
_INSTANT = np.dtype(
    [
        ("open", "S1"),
        ("date", "S10"),
        ("at", "S1"),
        ("minute", "S5"),
        ("colon", "S1"),
        ("second", "S6"),
        ("close", "S2"),
    ]
)
_DIGIT = np.uint8(ord("0"))


def instants(at: NDArray[np.int64]) -> list[bytes]:
    """Instants (ms) as quoted ISO 8601 texts such as `"2026-01-05T02:00:00.000Z"`; or `null`."""
    never = at == NEVER
    moments = np.where(never, 0, at)
    day = moments // _DAY
    minute, millisecond = np.divmod(moments - day * _DAY, _MINUTE)
    days, of_day = np.unique(day, return_inverse=True)
    dates = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10")
    minutes, seconds = _times()
    text = np.empty(len(at), dtype=_INSTANT)
    text["open"], text["at"], text["colon"], text["close"] = b'"', b"T", b":", b'Z"'
    text["date"] = dates[of_day]
    text["minute"] = minutes[minute]
    text["second"] = seconds[millisecond]
    texts: list[bytes] = text.view(f"S{_INSTANT.itemsize}").tolist()
    for row in np.flatnonzero(never):
        texts[row] = b"null"
    return texts


@cache
def _times() -> tuple[NDArray[np.bytes_], NDArray[np.bytes_]]:
    """Each minute of a day as `00:00`, and each millisecond of a minute as `00.000`."""
    minute, millisecond = np.arange(_DAY // _MINUTE), np.arange(_MINUTE)
    minutes = np.full((len(minute), 5), ord(":"), dtype=np.uint8)
    _put(minutes, 0, 2, minute // 60)
    _put(minutes, 3, 2, minute % 60)
    seconds = np.full((len(millisecond), 6), ord("."), dtype=np.uint8)
    _put(seconds, 0, 2, millisecond // 1000)
    _put(seconds, 3, 3, millisecond % 1000)
    return minutes.view("S5").ravel(), seconds.view("S6").ravel()


def durations(ms: NDArray[np.int64]) -> list[bytes]:
    """Durations (ms) as quoted seconds with three decimals (F1); negative ones as `null`."""
    return [b'"%d.%03d"' % divmod(span, 1000) if span >= 0 else b"null" for span in ms.tolist()]


def quoted(ascii_text: NDArray[np.bytes_]) -> list[bytes]:
    """ASCII texts of one length that need no escapes, as JSON strings."""
    width = ascii_text.dtype.itemsize
    text = np.full((len(ascii_text), width + 2), ord('"'), dtype=np.uint8)
    text[:, 1:-1] = np.ascontiguousarray(ascii_text).view(np.uint8).reshape(-1, width)
    texts: list[bytes] = text.view(f"S{width + 2}").ravel().tolist()
    return texts


def _put(text: NDArray[np.uint8], place: int, digits: int, numbers: NDArray[np.int64]) -> None:
    """Write whole numbers with leading zeros from a column on."""
    for digit in range(digits):
        power = 10 ** (digits - 1 - digit)
        text[:, place + digit] = (numbers // power % 10).astype(np.uint8) + _DIGIT


NULL = b"null"
_MOST_KEPT = 100_000


class CallResultMaker:
    """Puts what was found in conversations into results; each different one is dumped once."""

    def __init__(self, analysis: Analysis | None) -> None:
        self._analysis = analysis or Analysis()
        self._values = [
            [field_value(field, text) for text in field.values]
            for field in self._analysis.fields.values()
        ]
        self._conclusions = conclusions(self._analysis)
        self._texts: dict[tuple[int, bytes, bool], bytes] = {}

    def texts(self, messages: Messages, masked: NDArray[np.bool_]) -> list[bytes]:
        """The `callResult` of each message; masked where retention removed the output (D1)."""
        if len(self._texts) > _MOST_KEPT:
            self._texts.clear()
        rows = np.ascontiguousarray(messages.found)
        found = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
        keys = zip(messages.content.tolist(), found, masked.tolist(), strict=True)
        return [NULL if not key[0] else self._texts.get(key) or self._make(key) for key in keys]

    def _make(self, key: tuple[int, bytes, bool]) -> bytes:
        content, found, masked = key
        result = self.result(Content(content), np.frombuffer(found, dtype=np.uint16))
        text = self._texts[key] = orjson.dumps(mask_call_result(result) if masked else result)
        return text

    def result(self, content: Content, found: NDArray[np.uint16]) -> dict[str, object]:
        """A result; `found` is a row of `Analyses.found`."""
        if content is Content.NO_CONVERSATION:
            return self._conclusions.no_conversation()
        if content is Content.UNAVAILABLE:
            return unavailable()
        flow, steps = self._conclusions.funnel, int(found[0])
        chosen = zip(self._values, found[1:].tolist(), strict=True)
        return self._conclusions.result(
            flow[steps - 1] if flow is not None and steps else None,
            [values[position] for values, position in chosen],
        )


def conclusions(analysis: Analysis) -> AnalysisJson:
    """The form of the results of an agent's conversations."""
    return AnalysisJson(
        version=analysis.version,
        funnel=None if analysis.funnel is None else tuple(s.step for s in analysis.funnel),
        fields=tuple(
            Field(name, field.type, field.required, field.description, field.enum_variant)
            for name, field in analysis.fields.items()
        ),
    )


def field_value(field: AnalysisField, text: str) -> Value:
    """A value as its field's type has it on the wire, from its key under `values`."""
    if field.type == "boolean":
        return text == "true"
    if field.type != "number":
        return text
    number = float(text)
    is_exact = number.is_integer() and abs(number) <= MOST_EXACT
    return int(number) if is_exact else number


_STATUSES = [orjson.dumps(status) for status in CALL_STATUSES]
_END_STATUSES = [_STATUSES[code] for code in TO_STATUS]
_FAILED = orjson.dumps(FAILED_MESSAGE)
_TIMED_OUT = orjson.dumps(QUEUE_TIMEOUT_MESSAGE)
_ERRORS = [
    _TIMED_OUT
    if change.cause == "queue_timeout"
    else _FAILED
    if change.to_status is CallStatus.FAILED
    else NULL
    for change in CHANGES
]
_BOOLEANS = (b"false", b"true")


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What payloads say of calls that have ended, a row per payload; as in `Calls`."""

    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    last_kind: NDArray[np.uint8]
    started_at: NDArray[np.int64]
    ended_at: NDArray[np.int64]

    @classmethod
    def of(cls, ledger: Calls, calls: NDArray[np.int64]) -> Self:
        """Those of some calls of a ledger."""
        return cls(
            recipient=ledger.recipient[calls],
            call=ledger.call[calls],
            last_kind=ledger.last_kind[calls],
            started_at=ledger.started_at[calls],
            ended_at=ledger.ended_at[calls],
        )


class Bodies:
    """Makes the bodies of one campaign's messages, any of them at a time.

    What hardly varies (agent, settings, results) is dumped once, and kept.
    """

    def __init__(self, trace: Trace, block: CampaignBlock, persons: Persons) -> None:
        """`persons` are the campaign's."""
        self._trace = trace
        self._block = block
        self._persons = persons
        self._findings = CallResultMaker(block.agent.analysis)
        self._settings: dict[tuple[CampaignStatus, int], bytes] = {}

    def of(self, messages: Messages, facts: CallFacts, state: VisibleState) -> list[bytes]:
        """The bodies of messages about calls; `state` is what their first POSTs see."""
        who, last_kind = facts.recipient, facts.last_kind.tolist()
        block, seed = self._block, self._trace.world.seed
        place = seed, block.organization, block.position, who, facts.call
        ids = call_ids(*place)
        masked = (state.expired & PERSONAL_DATA) != 0
        audio_gone = (state.expired & AUDIO) != 0
        return Payloads(
            is_re_analysis=[_BOOLEANS[again] for again in (messages.result > 0).tolist()],
            agent_name=repeat(orjson.dumps(self._block.agent.name)),
            campaign_name=repeat(orjson.dumps(self._block.name)),
            call_id=quoted(ids),
            session_id=quoted(session_ids(*place)),
            call_status=[_END_STATUSES[kind] for kind in last_kind],
            call_started_at=instants(facts.started_at),
            call_ended_at=instants(facts.ended_at),
            call_duration=_durations(facts),
            error_message=[_ERRORS[kind] for kind in last_kind],
            tel=self._persons.tels(who, masked),
            customer_name=self._persons.names(who, masked),
            call_attempt=[b"%d" % count for count in state.call_attempt.tolist()],
            latest_call_status=[_STATUSES[code] for code in state.latest_call_status.tolist()],
            agent_params=self._persons.params(who, masked),
            agent=repeat(self._agent),
            campaign=self._campaign_parts(state),
            call_result=self._findings.texts(messages, (state.expired & OUTPUT) != 0),
            record_url=self._links("recordings", messages, facts, ids, audio_gone),
            transcript_file_url=self._links("transcripts", messages, facts, ids, masked),
            data_expired=[DATA_EXPIRED[flags] for flags in state.expired.tolist()],
        ).bodies()

    def _links(
        self,
        kind: Literal["recordings", "transcripts"],
        messages: Messages,
        facts: CallFacts,
        ids: NDArray[np.bytes_],
        removed: NDArray[np.bool_],
    ) -> Iterable[bytes]:
        """Links to the files of answered calls; null where there is none, or none any more."""
        there = (facts.started_at != NEVER) & ~removed
        texts = [NULL] * len(messages)
        rows = np.flatnonzero(there)
        world = self._trace.world
        urls = links(
            world.scenario.service.public_url, kind, ids[rows], messages.sent_at[rows], world.seed
        )
        for row, url in zip(rows.tolist(), quoted(urls), strict=True):
            texts[row] = url
        return texts

    @cached_property
    def _agent(self) -> bytes:
        seed, agent = self._trace.world.seed, self._block.agent
        owner = self._trace.world.organizations[self._block.organization]
        agents = owner.settings.agents
        position = next(place for place, other in enumerate(agents) if other.name == agent.name)
        derived = agent_id(seed, owner.position, position)
        return agent_part(agent.id or derived, agent.name, agent.params_schema)

    def _campaign_parts(self, state: VisibleState) -> list[bytes]:
        """The campaign's part of each payload; each different one is dumped once."""
        seen, places = np.unique(state.setting, return_inverse=True)
        texts = [self._campaign_part(state.settings[index]) for index in seen.tolist()]
        return [texts[place] for place in places.tolist()]

    def _campaign_part(self, setting: Setting) -> bytes:
        key = setting.status, setting.limit
        text = self._settings.get(key)
        if text is None:
            block = self._block
            scheduled = self._trace.campaign(block.organization, block.position).scheduled
            assert scheduled is not None  # otherwise it would have no calls
            text = self._settings[key] = campaign_part(
                block.id,
                block.name,
                status=setting.status,
                max_concurrent_calls=setting.limit,
                request=scheduled.request,
                start_at=scheduled.start_at,
            )
        return text


def _durations(facts: CallFacts) -> list[bytes]:
    talked = facts.started_at != NEVER
    return durations(np.where(talked, facts.ended_at - facts.started_at, -1))
