"""Bodies: the bytes of many notices' payloads, put together from fragments (W4, D1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import repeat
from typing import Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.identity import agent_id, call_ids, session_ids
from dialsim.engine.trace import CHANGES, Trace
from dialsim.interface.links import links
from dialsim.interface.payload import (
    FAILED_MESSAGE,
    QUEUE_TIMEOUT_MESSAGE,
    Payloads,
    agent_part,
    campaign_part,
    data_expired,
)
from dialsim.interface.status import CallStatus
from dialsim.results.ledger import CALL_STATUSES, NEVER, TO_STATUS, Ledger
from dialsim.results.stream import wire_text
from dialsim.results.stream.findings import NULL, Findings
from dialsim.results.stream.notices import Notices
from dialsim.results.stream.persons import Persons
from dialsim.results.stream.shown import AUDIO, OUTPUT, PERSONAL_DATA, Shown, settings

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
_FLAGS = [
    data_expired(
        audio=bool(flags & AUDIO),
        personal_data=bool(flags & PERSONAL_DATA),
        output=bool(flags & OUTPUT),
    )
    for flags in range(8)
]
_BOOLEANS = (b"false", b"true")


class Bodies:
    """Makes the bodies of one campaign's notices, any of them at a time.

    What hardly varies (agent, settings, results) is dumped once, and kept.
    """

    def __init__(self, trace: Trace, ledger: Ledger) -> None:
        self._trace = trace
        self._ledger = ledger
        self._owner = trace.world.organizations[ledger.organization]
        self._block = self._owner.campaigns[ledger.campaign]
        self._persons = Persons(self._block.people)
        self._findings = Findings(self._block.agent.analysis)

    def of(self, notices: Notices, state: Shown) -> list[bytes]:
        """The bodies of notices; `state` is what their first POSTs see."""
        ledger, calls, seed = self._ledger, notices.call, self._trace.world.seed
        who, last_kind = ledger.recipient[calls], ledger.last_kind[calls].tolist()
        place = seed, ledger.organization, ledger.campaign, who, ledger.call[calls]
        ids = call_ids(*place)
        masked = (state.expired & PERSONAL_DATA) != 0
        return Payloads(
            is_re_analysis=[_BOOLEANS[again] for again in (notices.result > 0).tolist()],
            agent_name=repeat(orjson.dumps(self._block.agent.name)),
            campaign_name=repeat(orjson.dumps(self._block.name)),
            call_id=wire_text.quoted(ids),
            session_id=wire_text.quoted(session_ids(*place)),
            call_status=[_END_STATUSES[kind] for kind in last_kind],
            call_started_at=wire_text.instants(ledger.started_at[calls]),
            call_ended_at=wire_text.instants(ledger.ended_at[calls]),
            call_duration=self._durations(calls),
            error_message=[_ERRORS[kind] for kind in last_kind],
            tel=self._persons.tels(who, masked),
            customer_name=self._persons.names(who, masked),
            call_attempt=[b"%d" % count for count in state.call_attempt.tolist()],
            latest_call_status=[_STATUSES[code] for code in state.latest_call_status.tolist()],
            agent_params=self._persons.params(who, masked),
            agent=repeat(self._agent),
            campaign=[self._settings[index] for index in state.setting.tolist()],
            call_result=self._findings.texts(notices, (state.expired & OUTPUT) != 0),
            record_url=self._links("recordings", notices, ids, (state.expired & AUDIO) != 0),
            transcript_file_url=self._links("transcripts", notices, ids, masked),
            data_expired=[_FLAGS[flags] for flags in state.expired.tolist()],
        ).bodies()

    def _durations(self, calls: NDArray[np.int64]) -> list[bytes]:
        started, ended = self._ledger.started_at[calls], self._ledger.ended_at[calls]
        return wire_text.durations(np.where(started == NEVER, -1, ended - started))

    def _links(
        self,
        kind: Literal["recordings", "transcripts"],
        notices: Notices,
        ids: NDArray[np.bytes_],
        removed: NDArray[np.bool_],
    ) -> Iterable[bytes]:
        """Links to the files of answered calls; null where there is none, or none any more."""
        there = (self._ledger.started_at[notices.call] != NEVER) & ~removed
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
        agents = self._owner.settings.agents
        agent = self._block.agent
        position = next(place for place, other in enumerate(agents) if other.name == agent.name)
        derived = agent_id(self._trace.world.seed, self._ledger.organization, position)
        return agent_part(agent.id or derived, agent.name, agent.params_schema)

    @cached_property
    def _settings(self) -> list[bytes]:
        """The campaign's part of the payload, for each of its `settings`."""
        place = self._ledger.organization, self._ledger.campaign
        scheduled = self._trace.requests[place]
        return [
            campaign_part(
                self._block.id,
                self._block.name,
                status=setting.status,
                max_concurrent_calls=setting.limit,
                request=scheduled.request,
                start_at=scheduled.start_at,
            )
            for setting in settings(self._trace, self._ledger)
        ]
