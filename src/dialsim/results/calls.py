"""The calls table: one row per call."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray

from dialsim.engine.identity import call_ids, session_ids
from dialsim.interface.status import AgentStatus
from dialsim.results.columns import campaign_columns, counts, instants, joined, names, texts
from dialsim.results.cost import call_costs
from dialsim.results.ledger import CALL_STATUSES, NEVER, Ledger
from dialsim.results.reading import Reading
from dialsim.results.stream.flaws import Flaw
from dialsim.results.stream.verdicts import VERDICTS

AGENT_STATUSES = tuple(AgentStatus)

_INSTANTS = {
    "created_at": "created_at",
    "queued_at": "queued_at",
    "initiated_at": "initiated_at",
    "ringing_at": "ringing_at",
    "call_started_at": "started_at",
    "call_ended_at": "ended_at",
}


def calls_table(reading: Reading) -> pd.DataFrame:
    """One row per call, by (organization, campaign, recipient, call); instants in UTC, to the ms.

    `attempt`, `initiated_at`, `caller_id` and `voice_key` are null for a call never dialled, or
    whose dial was withdrawn and not repeated (P5); `queued_at` is the newest release; `cost` is
    null where the scenario names no costs; `voice_engine` is 2 for campaigns scheduled with
    ttsVoiceKeys, else 1 (F3). `analysis` is one of `Verdict`, and `funnel` the funnel's value in
    the newest result, null where there is no conversation. Names and statuses are categorical.
    """
    ledgers = list(reading.ledgers.values())
    attempt = joined(ledgers, np.int32, lambda ledger: ledger.attempt)
    talk_ms = joined(ledgers, np.int64, _conversation_ms)
    return pd.DataFrame(
        {
            **campaign_columns(reading, [len(ledger.recipient) for ledger in ledgers]),
            **_identity(reading, ledgers),
            "attempt": counts(attempt, attempt == 0),
            "status": names(joined(ledgers, np.int8, lambda ledger: ledger.status), CALL_STATUSES),
            "agent_status": names(
                joined(ledgers, np.int8, lambda ledger: agent_status(reading, ledger)),
                AGENT_STATUSES,
            ),
            **_dialled_with(reading, ledgers),
            **{
                name: instants(joined(ledgers, np.int64, attrgetter(column)))
                for name, column in _INSTANTS.items()
            },
            "call_duration_ms": counts(talk_ms, talk_ms < 0),
            **_analyzed(reading, ledgers),
            "cost": call_costs(reading, ledgers),
            "voice_engine": joined(ledgers, np.int8, lambda ledger: _engine(reading, ledger)),
        },
        copy=False,
    )


def agent_status(reading: Reading, ledger: Ledger) -> NDArray[np.int8]:
    """How the agent fared in each call (F2), as an index into `AGENT_STATUSES`.

    -1 (null) while a conversation is still going on.
    """
    completed, error, not_started = (
        np.int8(AGENT_STATUSES.index(status))
        for status in (AgentStatus.COMPLETED, AgentStatus.ERROR, AgentStatus.NOT_STARTED)
    )
    status = np.where(ledger.started_at != NEVER, np.int8(-1), not_started)
    analyses = reading.analyses[ledger.organization, ledger.campaign]
    stopped = analyses.flaw == Flaw.AGENT_ERROR
    status[analyses.call] = np.where(stopped, error, completed)
    return status


def _analyzed(reading: Reading, ledgers: list[Ledger]) -> dict[str, Any]:
    """The columns analysis and funnel."""
    known = [reading.verdicts[ledger.organization, ledger.campaign] for ledger in ledgers]
    codes = np.concatenate([np.empty(0, np.int8), *(verdicts.code for verdicts in known)])
    return {
        "analysis": names(codes, VERDICTS),
        "funnel": names(
            joined(ledgers, np.int16, lambda ledger: _funnel(reading, ledger)),
            reading.catalog.funnel_steps,
        ),
    }


def _funnel(reading: Reading, ledger: Ledger) -> NDArray[np.int16]:
    """The funnel's value in each call's newest result, as a code of the catalog."""
    place = ledger.organization, ledger.campaign
    return reading.catalog.funnel_codes(reading.block(place).agent, reading.verdicts[place])


def _identity(reading: Reading, ledgers: list[Ledger]) -> dict[str, Any]:
    """The columns recipient, call_id, session_id and call."""

    def ids(make: Callable[..., NDArray[np.bytes_]]) -> ExtensionArray:
        seed = reading.world.seed
        return texts(
            joined(
                ledgers,
                "S36",
                lambda of: make(seed, of.organization, of.campaign, of.recipient, of.call),
            )
        )

    return {
        "recipient": joined(ledgers, np.int32, lambda ledger: ledger.recipient),
        "call_id": ids(call_ids),
        "session_id": ids(session_ids),
        "call": joined(ledgers, np.int32, lambda ledger: ledger.call),
    }


def _dialled_with(reading: Reading, ledgers: list[Ledger]) -> dict[str, Any]:
    """The columns caller_id, voice_key and segment."""

    def segment(ledger: Ledger) -> NDArray[np.int16]:
        return reading.catalog.segment_codes(reading.world, ledger)[ledger.recipient]

    numbers = joined(ledgers, np.int32, lambda ledger: ledger.number)
    voices = joined(ledgers, np.int32, lambda ledger: ledger.voice)
    return {
        "caller_id": names(numbers, reading.world.numbers),
        "voice_key": names(voices, reading.world.voice_keys),
        "segment": names(joined(ledgers, np.int16, segment), reading.catalog.segments),
    }


def _engine(reading: Reading, ledger: Ledger) -> NDArray[np.int8]:
    """The generation of the voice engine (F3), of each call."""
    request = reading.lives[ledger.organization, ledger.campaign].request
    generation = 2 if request is not None and request.tts_voice_keys else 1
    return np.full(len(ledger.recipient), generation, dtype=np.int8)


def _conversation_ms(ledger: Ledger) -> NDArray[np.int64]:
    """The length of each conversation (F1); -1 where none has ended."""
    talked = (ledger.started_at != NEVER) & (ledger.ended_at != NEVER)
    return np.where(talked, ledger.ended_at - ledger.started_at, -1)
