"""Bodies: the bytes of many notices' payloads, put together from fragments (W4, D1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Literal, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.identity import agent_id, call_ids, session_ids
from dialsim.engine.trace import CHANGES, Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface.links import links
from dialsim.interface.payload import (
    FAILED_MESSAGE,
    QUEUE_TIMEOUT_MESSAGE,
    Payloads,
    agent_part,
    campaign_part,
)
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.results.ledger import CALL_STATUSES, NEVER, TO_STATUS, Ledger
from dialsim.results.stream import wire_text
from dialsim.results.stream.findings import NULL, Findings
from dialsim.results.stream.notices import Notices
from dialsim.results.stream.persons import Persons
from dialsim.results.stream.shown import (
    AUDIO,
    DATA_EXPIRED,
    OUTPUT,
    PERSONAL_DATA,
    Setting,
    Shown,
)

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
    """What payloads say of calls that have ended, a row per payload; as in `Ledger`."""

    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    last_kind: NDArray[np.uint8]
    started_at: NDArray[np.int64]
    ended_at: NDArray[np.int64]

    @classmethod
    def of(cls, ledger: Ledger, calls: NDArray[np.int64]) -> Self:
        """Those of some calls of a ledger."""
        return cls(
            recipient=ledger.recipient[calls],
            call=ledger.call[calls],
            last_kind=ledger.last_kind[calls],
            started_at=ledger.started_at[calls],
            ended_at=ledger.ended_at[calls],
        )


class Bodies:
    """Makes the bodies of one campaign's notices, any of them at a time.

    What hardly varies (agent, settings, results) is dumped once, and kept.
    """

    def __init__(self, trace: Trace, block: CampaignBlock, persons: Persons) -> None:
        """`persons` are the campaign's."""
        self._trace = trace
        self._block = block
        self._persons = persons
        self._findings = Findings(block.agent.analysis)
        self._settings: dict[tuple[CampaignStatus, int], bytes] = {}

    def of(self, notices: Notices, facts: CallFacts, state: Shown) -> list[bytes]:
        """The bodies of notices about calls; `state` is what their first POSTs see."""
        who, last_kind = facts.recipient, facts.last_kind.tolist()
        block, seed = self._block, self._trace.world.seed
        place = seed, block.organization, block.position, who, facts.call
        ids = call_ids(*place)
        masked = (state.expired & PERSONAL_DATA) != 0
        audio_gone = (state.expired & AUDIO) != 0
        return Payloads(
            is_re_analysis=[_BOOLEANS[again] for again in (notices.result > 0).tolist()],
            agent_name=repeat(orjson.dumps(self._block.agent.name)),
            campaign_name=repeat(orjson.dumps(self._block.name)),
            call_id=wire_text.quoted(ids),
            session_id=wire_text.quoted(session_ids(*place)),
            call_status=[_END_STATUSES[kind] for kind in last_kind],
            call_started_at=wire_text.instants(facts.started_at),
            call_ended_at=wire_text.instants(facts.ended_at),
            call_duration=_durations(facts),
            error_message=[_ERRORS[kind] for kind in last_kind],
            tel=self._persons.tels(who, masked),
            customer_name=self._persons.names(who, masked),
            call_attempt=[b"%d" % count for count in state.call_attempt.tolist()],
            latest_call_status=[_STATUSES[code] for code in state.latest_call_status.tolist()],
            agent_params=self._persons.params(who, masked),
            agent=repeat(self._agent),
            campaign=self._campaign_parts(state),
            call_result=self._findings.texts(notices, (state.expired & OUTPUT) != 0),
            record_url=self._links("recordings", notices, facts, ids, audio_gone),
            transcript_file_url=self._links("transcripts", notices, facts, ids, masked),
            data_expired=[DATA_EXPIRED[flags] for flags in state.expired.tolist()],
        ).bodies()

    def _links(
        self,
        kind: Literal["recordings", "transcripts"],
        notices: Notices,
        facts: CallFacts,
        ids: NDArray[np.bytes_],
        removed: NDArray[np.bool_],
    ) -> Iterable[bytes]:
        """Links to the files of answered calls; null where there is none, or none any more."""
        there = (facts.started_at != NEVER) & ~removed
        texts = [NULL] * len(notices)
        rows = np.flatnonzero(there)
        world = self._trace.world
        urls = links(
            world.scenario.service.public_url, kind, ids[rows], notices.sent_at[rows], world.seed
        )
        for row, url in zip(rows.tolist(), wire_text.quoted(urls), strict=True):
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

    def _campaign_parts(self, state: Shown) -> list[bytes]:
        """The campaign's part of each payload; each different one is dumped once."""
        seen, places = np.unique(state.setting, return_inverse=True)
        texts = [self._campaign_part(state.settings[index]) for index in seen.tolist()]
        return [texts[place] for place in places.tolist()]

    def _campaign_part(self, setting: Setting) -> bytes:
        key = setting.status, setting.limit
        text = self._settings.get(key)
        if text is None:
            block = self._block
            scheduled = self._trace.requests[block.organization, block.position]
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
    return wire_text.durations(np.where(talked, facts.ended_at - facts.started_at, -1))
